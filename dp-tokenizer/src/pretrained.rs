//! Tokenizers from the files of well-known models.

use crate::decode::{Cleanup, Decoder};
use crate::encode::{Alphabet, Bpe, Model, WordPiece, WordPieceConfig};
use crate::format::FormatError;
use crate::normalize::{BertNormalizer, Normalizer};
use crate::postprocess::PostProcessor;
use crate::pretokenize::PreTokenizer;
use crate::tokenizer::{Role, RoleTokens, SpecialTokens, Stage, Tokenizer};
use crate::vocabulary::Vocabulary;

impl Tokenizer {
    /// BERT's tokenizer over the tokens of a `vocab.txt`.
    ///
    /// ```
    /// use dp_tokenizer::{Tokenizer, format::vocab_txt, normalize::BertNormalizer};
    /// let vocabulary = vocab_txt::read("[UNK]\nthe\ncafe\n##s\n.\n".as_bytes())?;
    /// let tokenizer = Tokenizer::bert(vocabulary, BertNormalizer::uncased())?;
    /// let ids = tokenizer.encode("The cafés.");
    /// assert_eq!(ids, [1, 2, 3, 4]);
    /// assert_eq!(tokenizer.decode(&ids), "the cafes.");
    /// # Ok::<(), dp_tokenizer::FormatError>(())
    /// ```
    ///
    /// # Errors
    /// If the vocabulary lacks `[UNK]`.
    pub fn bert(vocabulary: Vocabulary, normalizer: BertNormalizer) -> Result<Self, FormatError> {
        Self::bert_with_roles(vocabulary, normalizer, &RoleTokens::of_bert())
    }

    /// The same with special tokens of other names.
    ///
    /// # Errors
    /// If the vocabulary lacks the token for the unknown.
    pub(crate) fn bert_with_roles(
        vocabulary: Vocabulary,
        normalizer: BertNormalizer,
        roles: &RoleTokens,
    ) -> Result<Self, FormatError> {
        let name = |role, default| roles.find(role).map_or(default, |token| token.1);
        let (unk, cls, sep) = (name(Role::Unk, "[UNK]"), name(Role::Cls, "[CLS]"), name(Role::Sep, "[SEP]"));
        let special = named(&vocabulary, &roles.names().collect::<Vec<_>>());
        let ends = vocabulary.id(cls).zip(vocabulary.id(sep));
        let config = WordPieceConfig { unk_token: unk.to_owned(), ..WordPieceConfig::default() };
        let prefix = config.continuing_prefix.clone();
        let model = WordPiece::new(vocabulary, config).ok_or_else(|| FormatError::Inconsistent {
            reason: format!("the vocabulary lacks the token {unk}; add it"),
        })?;
        let mut tokenizer = Self::of_model(Model::WordPiece(model));
        tokenizer.normalizer = Stage::Normalizer(Normalizer::Bert(normalizer));
        tokenizer.pre_tokenizer = Some(PreTokenizer::Bert);
        tokenizer.decoder = Decoder::WordPiece { prefix, cleanup: Cleanup::Text };
        tokenizer.special = special;
        if let Some((first, last)) = ends {
            tokenizer.post_processor = PostProcessor::bert((cls, first), (sep, last));
        }
        Ok(tokenizer.with_roles(roles))
    }

    /// GPT-2's tokenizer over the tokens of a `vocab.json` and the merges of a `merges.txt`.
    ///
    /// ```
    /// use dp_tokenizer::{Tokenizer, format::gpt2};
    /// let vocabulary = gpt2::read_vocab(r#"{"a": 0, "Ġ": 1, "Ġa": 2}"#.as_bytes())?;
    /// let tokenizer = Tokenizer::gpt2(vocabulary, gpt2::read_merges("Ġ a\n".as_bytes())?)?;
    /// assert_eq!(tokenizer.encode("a a"), [0, 2]);
    /// # Ok::<(), dp_tokenizer::FormatError>(())
    /// ```
    ///
    /// # Errors
    /// If a merge speaks of a token that the vocabulary lacks.
    pub fn gpt2(vocabulary: Vocabulary, merges: Vec<(String, String)>) -> Result<Self, FormatError> {
        let special = named(&vocabulary, &["<|endoftext|>"]);
        let model = Bpe::new(vocabulary, merges, Alphabet::Bytes)
            .map_err(|e| FormatError::Inconsistent { reason: e.to_string() })?;
        let mut tokenizer = Self::of_model(Model::Bpe(model));
        tokenizer.pre_tokenizer = Some(PreTokenizer::GPT2);
        tokenizer.decoder = Decoder::ByteLevel;
        tokenizer.special = special;
        Ok(tokenizer)
    }
}

fn named(vocabulary: &Vocabulary, names: &[&str]) -> SpecialTokens {
    let found = names.iter().filter_map(|name| Some((vocabulary.id(name)?, (*name).to_owned())));
    SpecialTokens::new(found.collect())
}
