//! Normalizers, which transform a text before pre-tokenization.

mod bert;
mod characters;
mod charsmap;
mod named_rules;
mod replace;
mod rules;
mod sentencepiece;

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use crate::aligned_text::AlignedText;
use crate::pattern::Pattern;

pub use bert::BertNormalizer;
pub(crate) use characters::{ByteLevel, Nmt, Strip, StripAccents};
pub use charsmap::Charsmap;
pub use named_rules::RuleName;
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
    /// The normalized text, of at most `most` bytes where it would grow.
    fn normalize<'a>(&self, text: &'a str, most: usize) -> Cow<'a, str>;

    /// The same with the places of what it comes from.
    fn align(&self, text: &mut AlignedText, most: usize);

    /// As a `tokenizer.json` writes it.
    fn json(&self) -> Value;
}

impl Normalizer {
    /// The normalized text.
    ///
    /// ```
    /// use tokenizer::normalize::Normalizer;
    /// let both = Normalizer::Sequence(vec![Normalizer::Nfkc, Normalizer::Lowercase]);
    /// assert_eq!(both.normalize("ﬁﬀ Ⅷ"), "fiff viii");
    /// ```
    pub fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.normalize_within(text, Pattern::most_bytes(text.len()))
    }

    fn normalize_within<'a>(&self, text: &'a str, most: usize) -> Cow<'a, str> {
        match self {
            Self::Bert(bert) => bert.normalize(text),
            Self::Precompiled(map) => map.normalize_graphemes(text),
            Self::Lowercase => Cow::Owned(lowercase(text)),
            Self::Nfc => beyond_ascii(text, |part, out| out.extend(part.nfc())),
            Self::Nfd => beyond_ascii(text, |part, out| out.extend(part.nfd())),
            Self::Nfkc => beyond_ascii(text, |part, out| out.extend(part.nfkc())),
            Self::Nfkd => beyond_ascii(text, |part, out| out.extend(part.nfkd())),
            Self::OfFile(OfFile(rewrite)) => rewrite.normalize(text, most),
            Self::Sequence(all) => all.iter().fold(Cow::Borrowed(text), |text, one| match text {
                Cow::Borrowed(text) => one.normalize_within(text, most),
                Cow::Owned(text) => Cow::Owned(one.normalize_within(&text, most).into_owned()),
            }),
        }
    }

    /// The same with the places of what it comes from.
    pub(crate) fn align(&self, text: &mut AlignedText) {
        self.align_within(text, Pattern::most_bytes(text.text.len()));
    }

    fn align_within(&self, text: &mut AlignedText, most: usize) {
        match self {
            Self::Bert(bert) => bert.align(text),
            Self::Precompiled(map) => map.align(text),
            Self::Lowercase => text.lowercase(),
            Self::Nfc => text.unicode(false, true),
            Self::Nfd => text.unicode(false, false),
            Self::Nfkc => text.unicode(true, true),
            Self::Nfkd => text.unicode(true, false),
            Self::OfFile(OfFile(rewrite)) => rewrite.align(text, most),
            Self::Sequence(all) => all.iter().for_each(|one| one.align_within(text, most)),
        }
    }
}

/// Where the first stretch of characters outside ASCII begins and ends.
fn stretch_beyond_ascii(text: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let start = bytes.iter().position(|byte| !byte.is_ascii())?;
    let length = bytes[start..].iter().position(u8::is_ascii);
    Some(start..length.map_or(bytes.len(), |length| start + length))
}

/// The text in one of Unicode's forms, to which `form` brings a part of it. No form changes ASCII or joins an ASCII character to
/// what is before it, so each stretch outside ASCII is a part of its own, with the character before it.
fn beyond_ascii(text: &str, form: impl Fn(&str, &mut String)) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(Range { start, end }) = stretch_beyond_ascii(rest) {
        out.reserve(rest.len());
        let before = start.saturating_sub(1);
        out.push_str(&rest[..before]);
        form(&rest[before..end], &mut out);
        rest = &rest[end..];
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Lower case, character by character.
fn lowercase(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(Range { start, end }) = stretch_beyond_ascii(rest) {
        out.push_str(&rest[..start]);
        out.extend(rest[start..end].chars().flat_map(char::to_lowercase));
        rest = &rest[end..];
    }
    out.push_str(rest);
    out.make_ascii_lowercase();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stretches_outside_ascii_are_normalized_as_the_whole_text_is(
            text in "([a-cA-C ]{0,3}[éÉe\u{301}\u{327}\u{345}ﬁ½ẛ\u{323}가ᄀ\u{1161}\u{11a8}ΣİſK中👩\u{200d}\\PC]{0,4}){0,8}"
        ) {
            for (normalizer, want) in [
                (Normalizer::Nfc, text.nfc().collect::<String>()),
                (Normalizer::Nfd, text.nfd().collect()),
                (Normalizer::Nfkc, text.nfkc().collect()),
                (Normalizer::Nfkd, text.nfkd().collect()),
                (Normalizer::Lowercase, text.chars().flat_map(char::to_lowercase).collect()),
            ] {
                prop_assert_eq!(normalizer.normalize(&text), want, "{:?}", normalizer);
            }
        }
    }
}
