//! Normalizers, which transform a text before pre-tokenization.

mod bert;
mod characters;
mod charsmap;
mod replace;
mod rules;
mod sentencepiece;

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use crate::aligned_text::AlignedText;

pub use bert::BertNormalizer;
pub(crate) use characters::{ByteLevel, Nmt, Strip, StripAccents};
pub use charsmap::Charsmap;
pub(crate) use replace::{Prepend, Replace};
pub use rules::NormalizationRules;
pub(crate) use sentencepiece::SentencePieceNormalizer;

/// A normalizer as in a `tokenizer.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Normalizer {
    /// BERT's.
    Bert(BertNormalizer),
    /// SentencePiece's map, grapheme by grapheme as Hugging Face applies it.
    Precompiled(Charsmap),
    /// Lower case, character by character.
    Lowercase,
    /// Unicode normalization form C.
    Nfc,
    /// Unicode normalization form D.
    Nfd,
    /// Unicode normalization form KC.
    Nfkc,
    /// Unicode normalization form KD.
    Nfkd,
    /// One of those that only a `tokenizer.json` asks for.
    OfFile(OfFile),
    /// One after the other.
    Sequence(Vec<Normalizer>),
}

/// A normalizer that only a `tokenizer.json` asks for. It is behind a trait, so that a program that reads no such file, as a
/// page, does not contain it.
#[derive(Clone, Debug)]
pub struct OfFile(pub(crate) Arc<dyn Rewrite>);

impl PartialEq for OfFile {
    fn eq(&self, other: &Self) -> bool {
        self.0.json() == other.0.json()
    }
}

impl Eq for OfFile {}

/// A normalizer with its form in a `tokenizer.json`.
pub(crate) trait Rewrite: Debug + Send + Sync {
    /// The normalized text.
    fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str>;

    /// The same with the places of what it comes from.
    fn align(&self, text: &mut AlignedText);

    /// As a `tokenizer.json` writes it.
    fn json(&self) -> Value;
}

impl Normalizer {
    /// The normalized text.
    ///
    /// ```
    /// use dp_tokenizer::normalize::Normalizer;
    /// let both = Normalizer::Sequence(vec![Normalizer::Nfkc, Normalizer::Lowercase]);
    /// assert_eq!(both.normalize("ﬁﬀ Ⅷ"), "fiff viii");
    /// ```
    pub fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self {
            Self::Bert(bert) => bert.normalize(text),
            Self::Precompiled(map) => map.normalize_graphemes(text),
            Self::Lowercase => Cow::Owned(text.chars().flat_map(char::to_lowercase).collect()),
            Self::Nfc | Self::Nfd | Self::Nfkc | Self::Nfkd if text.is_ascii() => Cow::Borrowed(text),
            Self::Nfc => Cow::Owned(text.nfc().collect()),
            Self::Nfd => Cow::Owned(text.nfd().collect()),
            Self::Nfkc => Cow::Owned(text.nfkc().collect()),
            Self::Nfkd => Cow::Owned(text.nfkd().collect()),
            Self::OfFile(OfFile(rewrite)) => rewrite.normalize(text),
            Self::Sequence(all) => all.iter().fold(Cow::Borrowed(text), |text, one| match text {
                Cow::Borrowed(text) => one.normalize(text),
                Cow::Owned(text) => Cow::Owned(one.normalize(&text).into_owned()),
            }),
        }
    }

    /// The same with the places of what it comes from.
    pub(crate) fn align(&self, text: &mut AlignedText) {
        match self {
            Self::Bert(bert) => bert.align(text),
            Self::Precompiled(map) => map.align(text),
            Self::Lowercase => text.lowercase(),
            Self::Nfc => text.unicode(false, true),
            Self::Nfd => text.unicode(false, false),
            Self::Nfkc => text.unicode(true, true),
            Self::Nfkd => text.unicode(true, false),
            Self::OfFile(OfFile(rewrite)) => rewrite.align(text),
            Self::Sequence(all) => all.iter().for_each(|one| one.align(text)),
        }
    }
}
