//! Writes a tokenizer in the formats of other tools.

use super::{gpt2, vocab_txt};
use crate::FormatError;
use crate::encode::{Alphabet, Encode, Model, Unigram};
use crate::pretokenize::PrependScheme;
use crate::sentencepiece::{ModelType, NormalizerSpec, Piece, PieceKind, SentencePieceModel, SpecialIds};
use crate::tokenizer::{EOS, PAD, Role, Tokenizer};
use crate::vocabulary::byte_token;

fn refused(file: &'static str, allowed: &'static str) -> FormatError {
    FormatError::Inconsistent { reason: format!("this tokenizer cannot be written as {file}; {allowed} can") }
}

impl Tokenizer {
    /// Returns BERT's `vocab.txt` of a WordPiece tokenizer. The normalizer's settings are not part of that file.
    ///
    /// # Errors
    /// If it is no WordPiece tokenizer, or a token holds a line break.
    pub fn to_vocab_txt(&self) -> Result<String, FormatError> {
        match &self.model {
            Model::WordPiece(model) => vocab_txt::write(model.vocabulary()),
            _ => Err(refused("vocab.txt", "a WordPiece tokenizer")),
        }
    }

    /// Returns GPT-2's `vocab.json` and `merges.txt` of a byte-level BPE tokenizer.
    ///
    /// # Errors
    /// If it is no byte-level BPE tokenizer.
    pub fn to_gpt2(&self) -> Result<(String, String), FormatError> {
        match &self.model {
            Model::Bpe(model) if *model.alphabet() == Alphabet::Bytes => {
                Ok((gpt2::write_vocab(model.vocabulary()), gpt2::write_merges(model.merges())?))
            }
            _ => Err(refused("vocab.json and merges.txt", "a byte-level BPE tokenizer")),
        }
    }

    /// Returns SentencePiece's `.model` of a unigram tokenizer. Scores become single precision, as that file has them.
    ///
    /// ```
    /// use tokenizer::Tokenizer;
    /// let tokenizer = Tokenizer::from_json(include_str!("../../tests/fixtures/unigram.json"))?;
    /// let read = Tokenizer::from_sentencepiece(&tokenizer.to_sentencepiece()?)?;
    /// assert_eq!(read.encode("then, é"), tokenizer.encode("then, é"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If it is no unigram tokenizer, has no unknown token, or its other stages have no counterpart there.
    pub fn to_sentencepiece(&self) -> Result<SentencePieceModel, FormatError> {
        let model = match &self.model {
            Model::SentencePiece(model) => return Ok(model.model().clone()),
            Model::Unigram(model) if model.unk_id().is_some() => model,
            _ => return Err(refused("a .model", "a unigram tokenizer with an unknown token")),
        };
        let normalizer = self.sentencepiece_normalizer().ok_or_else(|| {
            refused("a .model", "one with Metaspace, and no normalizer or a precompiled one")
        })?;
        let mut file = SentencePieceModel::new(self.pieces(model), ModelType::Unigram);
        file.byte_fallback = model.falls_back_to_bytes();
        let of = |id: Option<u32>| id.and_then(|id| i32::try_from(id).ok()).unwrap_or(-1);
        file.special_ids = SpecialIds {
            unk: of(model.unk_id()),
            bos: of(self.roles.of(Role::Bos)),
            eos: of(self.roles.of(Role::Eos).or_else(|| model.id(EOS))),
            pad: of(self.roles.of(Role::Pad).or_else(|| model.id(PAD))),
        };
        file.normalizer = normalizer;
        Ok(file)
    }

    fn pieces(&self, model: &Unigram) -> Vec<Piece> {
        let bytes: Vec<String> =
            if model.falls_back_to_bytes() { (0..=255).map(byte_token).collect() } else { Vec::new() };
        let control_roles = [Role::Pad, Role::Eos, Role::Bos].map(|role| self.roles.of(role));
        let controls = |id: u32, text: &str| [PAD, EOS].contains(&text) || control_roles.contains(&Some(id));
        let kind = |id: u32, text: &String| match () {
            () if model.unk_id() == Some(id) => PieceKind::Unknown,
            // A special token is found in text here. In a `.model`, only a user-defined symbol is.
            () if self.special.name(id).is_some() && !controls(id, text) => PieceKind::UserDefined,
            () if self.special.name(id).is_some() => PieceKind::Control,
            () if bytes.contains(text) => PieceKind::Byte,
            () => PieceKind::Normal,
        };
        let pieces = (0u32..).zip(model.pieces());
        pieces
            .map(|(id, (text, score))| Piece {
                text: text.clone(),
                score: *score as f32,
                kind: kind(id, text),
            })
            .collect()
    }

    fn sentencepiece_normalizer(&self) -> Option<NormalizerSpec> {
        let mut spec = NormalizerSpec::default();
        if self.normalizer.is_identity() {
            spec.name = "identity".to_owned();
        } else {
            spec.precompiled_charsmap = self.normalizer.charsmap()?.to_bytes();
        }
        if !self.pre_tokenizer.is_t5() {
            let space = self.pre_tokenizer.metaspace()?;
            if space.prepend_scheme != PrependScheme::Never {
                return None;
            }
            spec.add_dummy_prefix = false;
            spec.remove_extra_whitespaces = false;
        }
        Some(spec)
    }
}
