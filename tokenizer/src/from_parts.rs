//! Tokenizers from a vocabulary, with the stages of a well-known model.

use crate::FormatError;
use crate::byte_alphabet::byte_to_char;
use crate::decode::Decoder;
use crate::encode::{Alphabet, Bpe, Model, Unigram, WordPiece, WordPieceConfig};
use crate::normalize::{BertNormalizer, Normalizer};
use crate::postprocess::PostProcessor;
use crate::pretokenize::{Metaspace, PreTokenizer, PrependScheme};
use crate::special_tokens::SpecialTokens;
use crate::tokenizer::{Role, RoleTokens, Tokenizer};
use crate::vocabulary::Vocabulary;

/// The settings with which the pieces of a unigram vocabulary encode text. Blanks become `▁` and open words.
#[derive(Clone, Debug)]
pub struct UnigramPipeline {
    /// The normalizer that changes a text first; `None` leaves it as it is.
    pub normalizer: Option<Normalizer>,
    /// Whether no piece goes across a blank.
    pub split_by_whitespace: bool,
    /// Whether characters outside the vocabulary are encoded as bytes. The vocabulary then has [`crate::byte_token`]s.
    pub byte_fallback: bool,
    /// The tokens with the first ids.
    pub roles: RoleTokens,
}

impl Default for UnigramPipeline {
    /// Returns the default: no normalizer, no piece across a blank, no byte fallback, and the special tokens of T5.
    fn default() -> Self {
        Self { normalizer: None, split_by_whitespace: true, byte_fallback: false, roles: RoleTokens::of_t5() }
    }
}

impl Tokenizer {
    /// A unigram tokenizer over pieces with their log-probabilities. `special` lists special tokens by id.
    ///
    /// ```
    /// use tokenizer::{Tokenizer, UnigramPipeline};
    /// let pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁the", -1.0), ("n", -2.0)];
    /// let pieces = pieces.map(|(piece, score)| (piece.to_owned(), score)).to_vec();
    /// let tokenizer = Tokenizer::unigram(pieces, Vec::new(), &UnigramPipeline::default())?;
    /// assert_eq!(tokenizer.encode(" then"), [3, 4]);
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    ///
    /// # Errors
    /// If the vocabulary lacks the token for the unknown or, with byte fallback, the token of a byte.
    pub fn unigram(
        pieces: Vec<(String, f64)>,
        special: Vec<(u32, String)>,
        pipeline: &UnigramPipeline,
    ) -> Result<Self, FormatError> {
        let unknown = pipeline.roles.id(Role::Unk);
        let model = Unigram::new(pieces, unknown, pipeline.byte_fallback).ok_or_else(|| {
            let reason =
                "the vocabulary lacks the token for the unknown, or that of a byte; add it".to_owned();
            FormatError::Inconsistent { reason }
        })?;
        let mut tokenizer = Self::of_model(Model::Unigram(model));
        if let Some(normalizer) = &pipeline.normalizer {
            tokenizer.normalizer = normalizer.clone();
        }
        tokenizer.pre_tokenizer = PreTokenizer::of_metaspace(Metaspace {
            prepend_scheme: PrependScheme::Never,
            split: pipeline.split_by_whitespace,
            ..Metaspace::default()
        });
        tokenizer.words = tokenizer.pre_tokenizer.words();
        tokenizer.special = SpecialTokens::new(special);
        Ok(tokenizer.with_roles(&pipeline.roles))
    }

    /// A byte-level BPE tokenizer over symbols in GPT-2's alphabet. `special` names the special tokens of the vocabulary.
    ///
    /// # Errors
    /// If a merge speaks of a symbol that the vocabulary lacks.
    pub fn byte_level<S: AsRef<str>>(
        vocabulary: Vocabulary,
        merges: Vec<(String, String)>,
        special: &[S],
        split_by_whitespace: bool,
    ) -> Result<Self, FormatError> {
        let special = named(&vocabulary, special.iter().map(AsRef::as_ref));
        let model = Bpe::new(vocabulary, merges, Alphabet::Bytes)
            .map_err(|error| FormatError::Inconsistent { reason: error.to_string() })?;
        let mut tokenizer = Self::of_model(Model::Bpe(model));
        tokenizer.pre_tokenizer = PreTokenizer::byte_level(split_by_whitespace);
        tokenizer.words = tokenizer.pre_tokenizer.words();
        tokenizer.decoder = Decoder::byte_level();
        tokenizer.special = special;
        Ok(tokenizer)
    }

    /// A tokenizer whose tokens are `special` and the 256 bytes, in this order. It depends on no data. Encoded texts are long.
    ///
    /// ```
    /// let tokenizer = tokenizer::Tokenizer::bytes(&["</s>".to_owned()])?;
    /// assert_eq!(tokenizer.encode("Aé</s>"), [1 + 0x41, 1 + 0xC3, 1 + 0xA9, 0]);
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    ///
    /// # Errors
    /// If a special token is listed twice or is the name of a byte.
    pub fn bytes(special: &[String]) -> Result<Self, FormatError> {
        let bytes = (0..=255).map(|byte| byte_to_char(byte).to_string());
        let vocabulary =
            Vocabulary::new(special.iter().cloned().chain(bytes).collect()).map_err(|twice| {
                FormatError::malformed("special tokens", twice.second.into(), twice.to_string())
            })?;
        Self::byte_level(vocabulary, Vec::new(), special, true)
    }

    /// Makes BERT's tokenizer over the tokens of a `vocab.txt`.
    ///
    /// ```
    /// use tokenizer::{Tokenizer, format::vocab_txt, normalize::BertNormalizer};
    /// let vocabulary = vocab_txt::read("[UNK]\nthe\ncafe\n##s\n.\n".as_bytes())?;
    /// let tokenizer = Tokenizer::bert(vocabulary, BertNormalizer::uncased())?;
    /// let ids = tokenizer.encode("The cafés.");
    /// assert_eq!(ids, [1, 2, 3, 4]);
    /// assert_eq!(tokenizer.decode(&ids), "the cafes.");
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    ///
    /// # Errors
    /// If the vocabulary lacks `[UNK]`.
    pub fn bert(vocabulary: Vocabulary, normalizer: BertNormalizer) -> Result<Self, FormatError> {
        Self::bert_with_roles(vocabulary, normalizer, &RoleTokens::of_bert())
    }

    /// Makes BERT's tokenizer with special tokens of other names.
    ///
    /// # Errors
    /// If the vocabulary lacks the token for the unknown.
    pub fn bert_with_roles(
        vocabulary: Vocabulary,
        normalizer: BertNormalizer,
        roles: &RoleTokens,
    ) -> Result<Self, FormatError> {
        let name = |role, default| roles.find(role).map_or(default, |token| token.1);
        let (unk, cls, sep) = (name(Role::Unk, "[UNK]"), name(Role::Cls, "[CLS]"), name(Role::Sep, "[SEP]"));
        let special = named(&vocabulary, roles.names());
        let ends = vocabulary.id(cls).zip(vocabulary.id(sep));
        let config = WordPieceConfig { unk_token: unk.to_owned(), ..WordPieceConfig::default() };
        let prefix = config.continuing_prefix.clone();
        let model = WordPiece::new(vocabulary, config).ok_or_else(|| FormatError::Inconsistent {
            reason: format!("the vocabulary lacks the token {unk}; add it"),
        })?;
        let mut tokenizer = Self::of_model(Model::WordPiece(model));
        tokenizer.normalizer = normalizer.into();
        tokenizer.pre_tokenizer = PreTokenizer::bert();
        tokenizer.words = tokenizer.pre_tokenizer.words();
        tokenizer.decoder = Decoder::Bert { prefix };
        tokenizer.special = special;
        if let Some((first, last)) = ends {
            tokenizer.post_processor = PostProcessor::bert((cls, first), (sep, last));
        }
        Ok(tokenizer.with_roles(roles))
    }

    /// Makes GPT-2's tokenizer over the tokens of a `vocab.json` and the merges of a `merges.txt`.
    ///
    /// ```
    /// use tokenizer::{Tokenizer, format::gpt2};
    /// let vocabulary = gpt2::read_vocab(r#"{"a": 0, "Ġ": 1, "Ġa": 2}"#.as_bytes())?;
    /// let tokenizer = Tokenizer::gpt2(vocabulary, gpt2::read_merges("Ġ a\n".as_bytes())?)?;
    /// assert_eq!(tokenizer.encode("a a"), [0, 2]);
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    ///
    /// # Errors
    /// If a merge speaks of a token that the vocabulary lacks.
    pub fn gpt2(vocabulary: Vocabulary, merges: Vec<(String, String)>) -> Result<Self, FormatError> {
        Self::byte_level(vocabulary, merges, &["<|endoftext|>"], true)
    }
}

fn named<'a>(vocabulary: &Vocabulary, names: impl Iterator<Item = &'a str>) -> SpecialTokens {
    let found = names.filter_map(|name| Some((vocabulary.id(name)?, name.to_owned())));
    SpecialTokens::new(found.collect())
}
