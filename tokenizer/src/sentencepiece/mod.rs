//! SentencePiece's `.model` file.
//!
//! # References
//! `sentencepiece_model.proto` of SentencePiece 0.2 (field numbers and defaults).

mod protobuf;

use crate::FormatError;
use protobuf::{Fields, Message, Value};

const NAME: &str = "SentencePiece .model";

/// The type of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// An ordinary piece.
    Normal = 1,
    /// The piece for unknown characters.
    Unknown = 2,
    /// A control symbol, never found in text.
    Control = 3,
    /// A symbol that is always one token.
    UserDefined = 4,
    /// A piece that the model does not use.
    Unused = 5,
    /// One byte, `<0x00>` to `<0xFF>`, for byte fallback.
    Byte = 6,
}

impl PieceKind {
    fn from_number(number: i32) -> Option<Self> {
        [Self::Normal, Self::Unknown, Self::Control, Self::UserDefined, Self::Unused, Self::Byte]
            .into_iter()
            .find(|kind| *kind as i32 == number)
    }
}

/// A piece with its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The text, with U+2581 for spaces.
    pub text: String,
    /// Log-probability (unigram) or minus the rank (BPE).
    pub score: f32,
    /// The type.
    pub kind: PieceKind,
}

/// The algorithm that finds pieces in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelType {
    /// Unigram: the best path by log-probability.
    Unigram = 1,
    /// BPE: merges by score.
    Bpe = 2,
    /// Words, which are separated at spaces.
    Word = 3,
    /// Single characters.
    Char = 4,
}

/// A `.model` file: the fields that encoding needs, with all others kept unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct SentencePieceModel {
    /// The pieces, in order of id.
    pub pieces: Vec<Piece>,
    /// The algorithm that finds pieces.
    pub model_type: ModelType,
    /// Whether unknown characters become byte pieces.
    pub byte_fallback: bool,
    /// Whether spaces close words instead of opening them.
    pub treat_whitespace_as_suffix: bool,
    /// The ids of the unknown piece and of begin, end and padding; -1 means none.
    pub special_ids: SpecialIds,
    /// The text to which an unknown piece decodes.
    pub unk_surface: String,
    /// The rules that change text before it is encoded.
    pub normalizer: NormalizerSpec,
    /// The rules that change decoded text.
    pub denormalizer: Option<NormalizerSpec>,
    other_trainer_fields: Vec<u8>,
    other_fields: Vec<u8>,
}

/// Ids of special pieces; -1 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialIds {
    /// The unknown piece.
    pub unk: i32,
    /// The piece that begins a text.
    pub bos: i32,
    /// The piece that ends a text.
    pub eos: i32,
    /// The piece for padding.
    pub pad: i32,
}

/// Settings of the normalizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalizerSpec {
    /// The name of the rules, such as `nmt_nfkc`.
    pub name: String,
    /// The character map, as [`crate::normalize::Charsmap`] reads it.
    pub precompiled_charsmap: Vec<u8>,
    /// Whether a space is put before the text.
    pub add_dummy_prefix: bool,
    /// Whether spaces at both ends and repeated ones are dropped.
    pub remove_extra_whitespaces: bool,
    /// Whether spaces become U+2581.
    pub escape_whitespaces: bool,
    other_fields: Vec<u8>,
}

impl Default for NormalizerSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            precompiled_charsmap: Vec::new(),
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
            other_fields: Vec::new(),
        }
    }
}

impl SentencePieceModel {
    /// Returns a model of `pieces` with SentencePiece's defaults for all else.
    pub fn new(pieces: Vec<Piece>, model_type: ModelType) -> Self {
        Self {
            pieces,
            model_type,
            byte_fallback: false,
            treat_whitespace_as_suffix: false,
            special_ids: SpecialIds { unk: 0, bos: 1, eos: 2, pad: -1 },
            unk_surface: " \u{2047} ".to_owned(),
            normalizer: NormalizerSpec::default(),
            denormalizer: None,
            other_trainer_fields: Vec::new(),
            other_fields: Vec::new(),
        }
    }

    /// Reads a `.model` file. Fields that encoding does not need are kept for [`SentencePieceModel::to_bytes`].
    ///
    /// # Errors
    /// If the bytes are not a model with at least one piece.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut model = Self::new(Vec::new(), ModelType::Unigram);
        for field in Fields::new(NAME, bytes) {
            match field? {
                (1, Value::Bytes(piece), _) => {
                    let id = model.pieces.len() as u64;
                    model.pieces.push(read_piece(piece, id)?);
                }
                (2, Value::Bytes(trainer), _) => model.read_trainer(trainer)?,
                (3, Value::Bytes(normalizer), _) => model.normalizer.read(normalizer)?,
                (5, Value::Bytes(message), _) => {
                    model.denormalizer.get_or_insert_default().read(message)?;
                }
                (_, _, raw) => model.other_fields.extend(raw),
            }
        }
        if model.pieces.is_empty() {
            return Err(FormatError::malformed(NAME, 0, "it holds no pieces"));
        }
        Ok(model)
    }

    fn read_trainer(&mut self, message: &[u8]) -> Result<(), FormatError> {
        for field in Fields::new(NAME, message) {
            let (number, value, raw) = field?;
            match (number, value) {
                (3, Value::Varint(kind)) => self.model_type = model_type(kind)?,
                // This field is the size of the vocabulary, which is the number of pieces.
                (4, Value::Varint(_)) => {}
                (24, Value::Varint(x)) => self.treat_whitespace_as_suffix = x != 0,
                (35, Value::Varint(x)) => self.byte_fallback = x != 0,
                (40, Value::Varint(x)) => self.special_ids.unk = x as i32,
                (41, Value::Varint(x)) => self.special_ids.bos = x as i32,
                (42, Value::Varint(x)) => self.special_ids.eos = x as i32,
                (43, Value::Varint(x)) => self.special_ids.pad = x as i32,
                (44, Value::Bytes(x)) => self.unk_surface = utf8(x, "unk_surface")?,
                // These fields are the names of the special pieces, which have the ids above.
                (45..=48, Value::Bytes(_)) => {}
                _ => self.other_trainer_fields.extend(raw),
            }
        }
        Ok(())
    }

    /// Returns the bytes of a file that SentencePiece and Hugging Face read.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = Message::default();
        for piece in &self.pieces {
            let mut message = Message::default();
            message.bytes(1, piece.text.as_bytes());
            message.float(2, piece.score);
            message.int(3, piece.kind as i32);
            file.bytes(1, &message.0);
        }
        let mut trainer = Message::default();
        trainer.int(3, self.model_type as i32);
        trainer.int(4, i32::try_from(self.pieces.len()).unwrap_or(i32::MAX));
        trainer.int(24, self.treat_whitespace_as_suffix.into());
        trainer.int(35, self.byte_fallback.into());
        let ids = self.special_ids;
        for (number, id) in [(40, ids.unk), (41, ids.bos), (42, ids.eos), (43, ids.pad)] {
            trainer.int(number, id);
        }
        trainer.bytes(44, self.unk_surface.as_bytes());
        for (number, id) in [(45, ids.unk), (46, ids.bos), (47, ids.eos), (48, ids.pad)] {
            let piece = usize::try_from(id).ok().and_then(|id| self.pieces.get(id));
            let is_special = |kind| matches!(kind, PieceKind::Control | PieceKind::Unknown);
            if let Some(piece) = piece.filter(|piece| is_special(piece.kind)) {
                trainer.bytes(number, piece.text.as_bytes());
            }
        }
        trainer.0.extend(&self.other_trainer_fields);
        file.bytes(2, &trainer.0);
        file.bytes(3, &self.normalizer.message().0);
        if let Some(denormalizer) = &self.denormalizer {
            file.bytes(5, &denormalizer.message().0);
        }
        file.0.extend(&self.other_fields);
        file.0
    }
}

impl NormalizerSpec {
    fn read(&mut self, message: &[u8]) -> Result<(), FormatError> {
        for field in Fields::new(NAME, message) {
            let (number, value, raw) = field?;
            match (number, value, value.as_bool()) {
                (1, Value::Bytes(name), _) => self.name = utf8(name, "the normalizer's name")?,
                (2, Value::Bytes(map), _) => self.precompiled_charsmap = map.to_vec(),
                (3, _, Some(x)) => self.add_dummy_prefix = x,
                (4, _, Some(x)) => self.remove_extra_whitespaces = x,
                (5, _, Some(x)) => self.escape_whitespaces = x,
                _ => self.other_fields.extend(raw),
            }
        }
        Ok(())
    }

    fn message(&self) -> Message {
        let mut message = Message::default();
        message.bytes(1, self.name.as_bytes());
        message.bytes(2, &self.precompiled_charsmap);
        message.int(3, self.add_dummy_prefix.into());
        message.int(4, self.remove_extra_whitespaces.into());
        message.int(5, self.escape_whitespaces.into());
        message.0.extend(&self.other_fields);
        message
    }
}

fn read_piece(message: &[u8], id: u64) -> Result<Piece, FormatError> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: PieceKind::Normal };
    for field in Fields::new(NAME, message) {
        let (number, value, _) = field?;
        match (number, value) {
            (1, Value::Bytes(text)) => piece.text = utf8(text, "a piece")?,
            (2, _) => {
                piece.score = value.as_float().filter(|x| x.is_finite()).ok_or_else(|| {
                    FormatError::malformed(NAME, id, "the score of this piece is not a finite number")
                })?;
            }
            (3, _) => {
                piece.kind = value.as_int().and_then(PieceKind::from_number).ok_or_else(|| {
                    FormatError::malformed(NAME, id, "the type of this piece is not one of 1 to 6")
                })?;
            }
            _ => {}
        }
    }
    if piece.text.is_empty() {
        return Err(FormatError::malformed(NAME, id, "this piece is empty"));
    }
    Ok(piece)
}

fn model_type(number: u64) -> Result<ModelType, FormatError> {
    match number {
        1 => Ok(ModelType::Unigram),
        2 => Ok(ModelType::Bpe),
        3 => Ok(ModelType::Word),
        4 => Ok(ModelType::Char),
        _ => {
            let reason = format!("model type {number} is unknown; 1 (unigram) to 4 (char) are allowed");
            Err(FormatError::malformed(NAME, 0, reason))
        }
    }
}

fn utf8(bytes: &[u8], what: &'static str) -> Result<String, FormatError> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| FormatError::malformed(NAME, 0, format!("{what} is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> SentencePieceModel {
        let piece = |text: &str, score, kind| Piece { text: text.to_owned(), score, kind };
        let pieces = vec![
            piece("<unk>", 0.0, PieceKind::Unknown),
            piece("<s>", 0.0, PieceKind::Control),
            piece("▁a", -1.5, PieceKind::Normal),
            piece("<0x41>", -9.0, PieceKind::Byte),
            piece("<mask>", 0.0, PieceKind::UserDefined),
        ];
        let mut model = SentencePieceModel::new(pieces, ModelType::Unigram);
        model.byte_fallback = true;
        model.normalizer.name = "nmt_nfkc".to_owned();
        model.normalizer.add_dummy_prefix = false;
        model
    }

    #[test]
    fn unknown_fields_are_kept() {
        let mut bytes = sample().to_bytes();
        let mut extra = Message::default();
        extra.bytes(200, b"future");
        bytes.extend(&extra.0);
        let written = SentencePieceModel::from_bytes(&bytes).unwrap().to_bytes();
        assert!(written.ends_with(&extra.0));
    }

    #[test]
    fn a_piece_without_text_or_with_a_wild_score_is_refused() {
        let mut model = sample();
        model.pieces[2].text.clear();
        assert!(
            SentencePieceModel::from_bytes(&model.to_bytes()).unwrap_err().to_string().contains("(at 2)")
        );
        let mut model = sample();
        model.pieces[3].score = f32::NAN;
        assert!(
            SentencePieceModel::from_bytes(&model.to_bytes()).unwrap_err().to_string().contains("(at 3)")
        );
        assert!(SentencePieceModel::from_bytes(b"").is_err());
    }

    proptest! {
        #[test]
        fn models_survive_the_round_trip(texts in prop::collection::vec("\\PC{1,6}", 1..20), scores: [i16; 20]) {
            let mut model = sample();
            let score = |i: usize| f32::from(scores[i]) / 7.0;
            let normal = |(i, text)| Piece { text, score: score(i), kind: PieceKind::Normal };
            model.pieces.extend(texts.into_iter().enumerate().map(normal));
            let bytes = model.to_bytes();
            let read = SentencePieceModel::from_bytes(&bytes).unwrap();
            prop_assert_eq!(&read.pieces, &model.pieces);
            prop_assert_eq!(read.to_bytes().len(), bytes.len());
        }

        #[test]
        fn mutated_files_are_read_or_refused(changes: Vec<(u16, u8)>, cut: u16) {
            let mut bytes = sample().to_bytes();
            for (at, value) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] = value;
            }
            bytes.truncate(usize::from(cut) % (bytes.len() + 1));
            if let Ok(model) = SentencePieceModel::from_bytes(&bytes) {
                prop_assert_eq!(SentencePieceModel::from_bytes(&model.to_bytes()).unwrap().pieces, model.pieces);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = SentencePieceModel::from_bytes(&bytes);
        }
    }
}
