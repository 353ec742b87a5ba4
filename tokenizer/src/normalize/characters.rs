//! Normalizers that drop or change single characters: `Strip`, `StripAccents`, `Nmt` and `ByteLevel`.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};
use unicode_normalization::char::is_combining_mark;

use super::Normalize;
use crate::FormatError;
use crate::aligned_text::AlignedText;
use crate::byte_alphabet::spell_bytes;
use crate::stage::flag;

/// Drops blanks at the ends of a text.
#[derive(Debug)]
pub(super) struct Strip {
    left: bool,
    right: bool,
}

impl Strip {
    pub(super) fn read(part: &Value) -> Result<Arc<dyn Normalize>, FormatError> {
        let (left, right) = (flag(part, "strip_left", true), flag(part, "strip_right", true));
        Ok(Arc::new(Self { left, right }))
    }

    fn kept<'a>(&self, text: &'a str) -> &'a str {
        let text = if self.left { text.trim_start() } else { text };
        if self.right { text.trim_end() } else { text }
    }
}

impl Normalize for Strip {
    fn normalize<'a>(&self, text: &'a str, _: usize) -> Cow<'a, str> {
        Cow::Borrowed(self.kept(text))
    }

    fn align(&self, text: &mut AlignedText, _: usize) {
        let kept = self.kept(&text.text);
        let start = kept.as_ptr() as usize - text.text.as_ptr() as usize;
        text.keep(start..start + kept.len());
    }

    fn json(&self) -> Value {
        json!({"type": "Strip", "strip_left": self.left, "strip_right": self.right})
    }
}

/// Drops combining marks (category M); characters must be decomposed before.
#[derive(Debug)]
pub(super) struct StripAccents;

impl Normalize for StripAccents {
    fn normalize<'a>(&self, text: &'a str, _: usize) -> Cow<'a, str> {
        match text.is_ascii() {
            true => Cow::Borrowed(text),
            false => Cow::Owned(text.chars().filter(|c| !is_combining_mark(*c)).collect()),
        }
    }

    fn align(&self, text: &mut AlignedText, _: usize) {
        text.filter(|c| !is_combining_mark(c));
    }

    fn json(&self) -> Value {
        json!({"type": "StripAccents"})
    }
}

/// SentencePiece's first rules of `nmt_nfkc`: control characters are removed, uncommon blanks become spaces.
#[derive(Debug)]
pub(super) struct Nmt;

fn is_nmt_control(c: char) -> bool {
    matches!(u32::from(c), 0x1..=0x8 | 0xB | 0xE..=0x1F | 0x7F | 0x8F | 0x9F)
}

fn nmt_space(c: char) -> char {
    match u32::from(c) {
        0x9 | 0xA | 0xC | 0xD | 0x1680 | 0x200B..=0x200F | 0x2028 | 0x2029 | 0x2581 | 0xFEFF | 0xFFFD => ' ',
        _ => c,
    }
}

impl Normalize for Nmt {
    fn normalize<'a>(&self, text: &'a str, _: usize) -> Cow<'a, str> {
        Cow::Owned(text.chars().filter(|c| !is_nmt_control(*c)).map(nmt_space).collect())
    }

    fn align(&self, text: &mut AlignedText, _: usize) {
        text.filter(|c| !is_nmt_control(c));
        text.map(nmt_space);
    }

    fn json(&self) -> Value {
        json!({"type": "Nmt"})
    }
}

/// Spells each byte as GPT-2's printable character.
#[derive(Debug)]
pub(super) struct ByteLevel;

impl Normalize for ByteLevel {
    fn normalize<'a>(&self, text: &'a str, _: usize) -> Cow<'a, str> {
        Cow::Owned(spell_bytes(text))
    }

    fn align(&self, text: &mut AlignedText, _: usize) {
        text.spell_bytes();
    }

    fn json(&self) -> Value {
        json!({"type": "ByteLevel"})
    }
}
