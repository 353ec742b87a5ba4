//! One interface for all models.

use super::{Alphabet, Bpe, Edge, SentencePiece, Unigram, WordLevel, WordPiece};
use crate::format::sentencepiece::{ModelType, PieceKind};

/// A token, and its bytes in the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) id: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A model that encodes words.
pub(crate) enum Model {
    /// A word's best path by log-probability.
    Unigram(Unigram),
    /// Longest tokens first.
    WordPiece(WordPiece),
    /// Merges by rank.
    Bpe(Bpe),
    /// Whole words.
    WordLevel(WordLevel),
    /// The best path of a whole text, as SentencePiece finds it.
    SentencePiece(Box<SentencePiece>),
}

impl Model {
    /// Appends the ids of `word` to `out`.
    pub(crate) fn encode(&self, word: &str, out: &mut Vec<u32>) {
        match self {
            Self::Unigram(model) => model.encode(word, out),
            Self::WordPiece(model) => model.encode(word, out),
            Self::Bpe(model) => model.encode(word, out),
            Self::WordLevel(model) => model.encode(word, out),
            Self::SentencePiece(model) => model.encode(word, out),
        }
    }

    /// The same with the places of the tokens in `word`.
    pub(crate) fn tokens(&self, word: &str, out: &mut Vec<Token>) {
        match self {
            Self::Unigram(model) => model.tokens(word, out),
            Self::WordPiece(model) => model.tokens(word, out),
            Self::Bpe(model) => model.tokens(word, out),
            Self::WordLevel(model) => model.tokens(word, out),
            Self::SentencePiece(model) => model.tokens(word, out),
        }
    }

    /// The name of its kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Unigram(_) => "unigram",
            Self::WordPiece(_) => "WordPiece",
            Self::Bpe(_) => "BPE",
            Self::WordLevel(_) => "WordLevel",
            Self::SentencePiece(model) => match model.model().model_type {
                ModelType::Unigram => "unigram",
                ModelType::Bpe => "BPE",
                ModelType::Word => "word",
                ModelType::Char => "char",
            },
        }
    }

    /// Every piece that can stand in `word`, with its log-probability; `None` if the model has none.
    pub(crate) fn edges(&self, word: &str) -> Option<Vec<Edge>> {
        let mut edges = Vec::new();
        match self {
            Self::Unigram(model) => model.each_edge(word, |edge| edges.push(edge)),
            Self::SentencePiece(model) if model.model().model_type == ModelType::Unigram => {
                model.each_edge(word, |edge| edges.push(edge));
            }
            _ => return None,
        }
        Some(edges)
    }

    /// The tokens of a path of [`Self::edges`].
    pub(crate) fn tokens_of_path(&self, word: &str, path: &[Edge], out: &mut Vec<Token>) {
        match self {
            Self::Unigram(model) => model.tokens_of_path(word, path, out),
            Self::SentencePiece(model) => model.tokens_of_path(word, path, out),
            _ => {}
        }
    }

    /// The tokens of `word` where each merge is left out if `drops` says so; false if the model does not merge.
    pub(crate) fn tokens_with_dropout(
        &self,
        word: &str,
        drops: &mut dyn FnMut() -> bool,
        out: &mut Vec<Token>,
    ) -> bool {
        match self {
            Self::Bpe(model) => model.tokens_with_dropout(word, drops, out),
            Self::SentencePiece(model) if model.model().model_type == ModelType::Bpe => {
                model.tokens_with_dropout(word, drops, out);
            }
            _ => return false,
        }
        true
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Unigram(model) => model.pieces().len(),
            Self::WordPiece(model) => model.vocabulary().len(),
            Self::Bpe(model) => model.vocabulary().len(),
            Self::WordLevel(model) => model.vocabulary().len(),
            Self::SentencePiece(model) => model.model().pieces.len(),
        }
    }

    /// The token as the vocabulary writes it.
    pub(crate) fn token(&self, id: u32) -> Option<&str> {
        match self {
            Self::Unigram(model) => model.pieces().get(id as usize).map(|p| p.0.as_str()),
            Self::WordPiece(model) => model.vocabulary().token(id),
            Self::Bpe(model) => model.vocabulary().token(id),
            Self::WordLevel(model) => model.vocabulary().token(id),
            Self::SentencePiece(model) => model.model().pieces.get(id as usize).map(|p| p.text.as_str()),
        }
    }

    /// What decoding starts from: the token, or what a `.model` says to show for it.
    pub(crate) fn surface(&self, id: u32) -> Option<&str> {
        let Self::SentencePiece(model) = self else { return self.token(id) };
        let piece = model.model().pieces.get(id as usize)?;
        match piece.kind {
            PieceKind::Unknown => Some(&model.model().unk_surface),
            PieceKind::Control => None,
            _ => Some(&piece.text),
        }
    }

    pub(crate) fn id(&self, token: &str) -> Option<u32> {
        match self {
            Self::Unigram(model) => model.id(token),
            Self::WordPiece(model) => model.vocabulary().id(token),
            Self::Bpe(model) => model.vocabulary().id(token),
            Self::WordLevel(model) => model.vocabulary().id(token),
            Self::SentencePiece(model) => model.id(token),
        }
    }

    pub(crate) fn unk_id(&self) -> Option<u32> {
        match self {
            Self::Unigram(model) => model.unknown_id(),
            Self::WordPiece(model) => Some(model.unk_id()),
            Self::Bpe(model) => model.unk_id(),
            Self::WordLevel(model) => Some(model.unk_id()),
            Self::SentencePiece(model) => Some(model.unk_id()),
        }
    }

    /// Whether words reach it as they are and it spells their bytes in GPT-2's alphabet.
    pub(crate) fn spells_bytes(&self) -> bool {
        matches!(self, Self::Bpe(model) if *model.alphabet() == Alphabet::Bytes)
    }

    /// Whether `<0x00>` to `<0xFF>` stand for bytes.
    pub(crate) fn falls_back_to_bytes(&self) -> bool {
        match self {
            Self::Unigram(model) => model.falls_back_to_bytes(),
            Self::WordPiece(_) | Self::WordLevel(_) => false,
            Self::Bpe(model) => model.falls_back_to_bytes(),
            Self::SentencePiece(model) => model.model().byte_fallback,
        }
    }
}
