//! Unicode's normalization forms, and lower case.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization;

use super::Normalize;
use crate::aligned_text::AlignedText;

/// A normalization form of Unicode.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

impl Normalize for Form {
    fn normalize<'a>(&self, text: &'a str, _: usize) -> Cow<'a, str> {
        match self {
            Self::Nfc => beyond_ascii(text, |part, out| out.extend(part.nfc())),
            Self::Nfd => beyond_ascii(text, |part, out| out.extend(part.nfd())),
            Self::Nfkc => beyond_ascii(text, |part, out| out.extend(part.nfkc())),
            Self::Nfkd => beyond_ascii(text, |part, out| out.extend(part.nfkd())),
        }
    }

    fn align(&self, text: &mut AlignedText, _: usize) {
        let is_compatible = matches!(self, Self::Nfkc | Self::Nfkd);
        text.unicode(is_compatible, matches!(self, Self::Nfc | Self::Nfkc));
    }

    fn json(&self) -> Value {
        json!({"type": format!("{self:?}").to_uppercase()})
    }
}

/// A normalizer that lowercases character by character.
#[derive(Debug)]
pub(super) struct Lowercase;

impl Normalize for Lowercase {
    fn normalize<'a>(&self, text: &'a str, _: usize) -> Cow<'a, str> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(Range { start, end }) = stretch_beyond_ascii(rest) {
            out.push_str(&rest[..start]);
            out.extend(rest[start..end].chars().flat_map(char::to_lowercase));
            rest = &rest[end..];
        }
        out.push_str(rest);
        out.make_ascii_lowercase();
        Cow::Owned(out)
    }

    fn align(&self, text: &mut AlignedText, _: usize) {
        text.lowercase();
    }

    fn json(&self) -> Value {
        json!({"type": "Lowercase"})
    }
}

/// Returns where the first stretch of characters outside ASCII begins and ends.
pub(super) fn stretch_beyond_ascii(text: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let start = bytes.iter().position(|byte| !byte.is_ascii())?;
    let length = bytes[start..].iter().position(u8::is_ascii);
    Some(start..length.map_or(bytes.len(), |length| start + length))
}

/// Returns the text in one of Unicode's forms, to which `form` brings a part of it. No form changes ASCII or joins an
/// ASCII character to what is before it, so each stretch outside ASCII is a part of its own, with the character before
/// it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stretches_outside_ascii_are_normalized_as_the_whole_text_is(
            text in "([a-cA-C ]{0,3}[éÉe\u{301}\u{327}\u{345}ﬁ½ẛ\u{323}가ᄀ\u{1161}\u{11a8}ΣİſK中👩\u{200d}\\PC]{0,4}){0,8}"
        ) {
            let forms: [(&dyn Normalize, String); 5] = [
                (&Form::Nfc, text.nfc().collect::<String>()),
                (&Form::Nfd, text.nfd().collect()),
                (&Form::Nfkc, text.nfkc().collect()),
                (&Form::Nfkd, text.nfkd().collect()),
                (&Lowercase, text.chars().flat_map(char::to_lowercase).collect()),
            ];
            for (normalizer, want) in forms {
                prop_assert_eq!(normalizer.normalize(&text, 0), want, "{:?}", normalizer);
            }
        }
    }
}
