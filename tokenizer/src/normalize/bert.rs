//! BERT's normalizer.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization;

use super::Normalize;
use super::unicode::stretch_beyond_ascii;
use crate::FormatError;
use crate::aligned_text::AlignedText;
use crate::character_class::{is_bert_control, is_cjk_ideograph, is_nonspacing_mark};
use crate::stage::flag;

/// The normalizer of BERT's training: cleans up, puts spaces around Chinese characters, then drops accents and case.
///
/// ```
/// use tokenizer::normalize::BertNormalizer;
/// assert_eq!(BertNormalizer::uncased().normalize("\u{FEFF}Él\tvio 中国"), "el vio  中  国 ");
/// ```
///
/// # References
/// Devlin et al. 2019, <https://arxiv.org/abs/1810.04805>, and its `BasicTokenizer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BertNormalizer {
    /// Whether to drop invisible characters and turn every blank into a space.
    pub clean_text: bool,
    /// Whether to put spaces around each Chinese character.
    pub handle_chinese_chars: bool,
    /// Whether to drop accents. `None` drops them if and only if `lowercase` is set.
    pub strip_accents: Option<bool>,
    /// Whether to lower-case character by character (a final sigma is not treated apart).
    pub lowercase: bool,
}

impl BertNormalizer {
    /// Returns the settings of `bert-base-uncased`.
    pub fn uncased() -> Self {
        Self { clean_text: true, handle_chinese_chars: true, strip_accents: None, lowercase: true }
    }

    /// Returns the settings of `bert-base-cased`.
    pub fn cased() -> Self {
        Self { lowercase: false, ..Self::uncased() }
    }

    pub(super) fn read(part: &Value) -> Result<Arc<dyn Normalize>, FormatError> {
        Ok(Arc::new(Self {
            clean_text: flag(part, "clean_text", true),
            handle_chinese_chars: flag(part, "handle_chinese_chars", true),
            strip_accents: part["strip_accents"].as_bool(),
            lowercase: flag(part, "lowercase", true),
        }))
    }

    /// Returns the normalized text.
    pub fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.is_ascii() {
            return self.normalize_ascii(text);
        }
        let mut out = String::with_capacity(text.len() + text.len() / 8);
        let mut rest = text;
        while let Some(Range { start, end }) = stretch_beyond_ascii(rest) {
            out.push_str(&self.normalize_ascii(&rest[..start]));
            out.push_str(&self.normalize_any(&rest[start..end]));
            rest = &rest[end..];
        }
        out.push_str(&self.normalize_ascii(rest));
        Cow::Owned(out)
    }

    /// Normalizes a text with characters outside ASCII.
    fn normalize_any(&self, text: &str) -> String {
        let strip_accents = self.strip_accents.unwrap_or(self.lowercase);
        let mut spaced = String::with_capacity(text.len() + 2);
        for c in text.chars() {
            if self.clean_text {
                if is_dropped(c) {
                    continue;
                }
                if c.is_whitespace() {
                    spaced.push(' ');
                    continue;
                }
            }
            if self.handle_chinese_chars && is_cjk_ideograph(c) {
                spaced.extend([' ', c, ' ']);
            } else {
                spaced.push(c);
            }
        }
        if strip_accents {
            spaced = spaced.nfd().filter(|c| !is_nonspacing_mark(*c)).collect();
        }
        if self.lowercase {
            spaced = spaced.chars().flat_map(char::to_lowercase).collect();
        }
        spaced
    }

    fn normalize_ascii<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let cleaned = |b: u8| self.clean_text && b.is_ascii_control();
        let lowered = |b: u8| self.lowercase && b.is_ascii_uppercase();
        if !text.bytes().any(|b| cleaned(b) || lowered(b)) {
            return Cow::Borrowed(text);
        }
        let kept = text.chars().filter_map(|c| match c {
            // Vertical tab and form feed are blanks to Unicode, but controls to BERT, which asks that first.
            '\t' | '\n' | '\r' if self.clean_text => Some(' '),
            _ if self.clean_text && c.is_ascii_control() => None,
            _ if self.lowercase => Some(c.to_ascii_lowercase()),
            _ => Some(c),
        });
        Cow::Owned(kept.collect())
    }
}

impl Normalize for BertNormalizer {
    fn normalize<'a>(&self, text: &'a str, _: usize) -> Cow<'a, str> {
        self.normalize(text)
    }

    fn align(&self, text: &mut AlignedText, _: usize) {
        if self.clean_text {
            text.filter(|c| !is_dropped(c));
            text.map(|c| if c.is_whitespace() { ' ' } else { c });
        }
        if self.handle_chinese_chars {
            text.expand(|c, out| match is_cjk_ideograph(c) {
                true => out.extend([(' ', 0), (c, 1), (' ', 1)]),
                false => out.push((c, 0)),
            });
        }
        if self.strip_accents.unwrap_or(self.lowercase) {
            text.unicode(false, false);
            text.filter(|c| !is_nonspacing_mark(c));
        }
        if self.lowercase {
            text.lowercase();
        }
    }

    fn json(&self) -> Value {
        json!({
            "type": "BertNormalizer",
            "clean_text": self.clean_text,
            "handle_chinese_chars": self.handle_chinese_chars,
            "strip_accents": self.strip_accents,
            "lowercase": self.lowercase,
        })
    }
}

/// Whether clean-up drops this character.
fn is_dropped(c: char) -> bool {
    c == '\0' || c == char::REPLACEMENT_CHARACTER || is_bert_control(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_shortcut_equals_the_general_way() {
        let all: String = (0u8..128).map(char::from).collect();
        for bits in 0..4u8 {
            let normalizer = BertNormalizer {
                clean_text: bits & 1 == 1,
                lowercase: bits & 2 == 2,
                ..BertNormalizer::uncased()
            };
            assert_eq!(normalizer.normalize_any(&all), normalizer.normalize(&all));
            // This text has stretches of both kinds, inside and outside ASCII.
            let mixed = format!("É{all}e\u{301}\u{327}{all}中ΣA\u{345}");
            assert_eq!(normalizer.normalize_any(&mixed), normalizer.normalize(&mixed));
        }
    }

    #[test]
    fn text_already_normal_is_not_copied() {
        assert!(matches!(BertNormalizer::uncased().normalize("plain text."), Cow::Borrowed(_)));
    }

    #[test]
    fn cased_model_keeps_accents_and_case() {
        assert_eq!(BertNormalizer::cased().normalize("Été\u{200B} Σ"), "Été Σ");
    }

    #[test]
    fn accents_can_be_stripped_without_lowering_case() {
        let normalizer = BertNormalizer { strip_accents: Some(true), ..BertNormalizer::cased() };
        assert_eq!(normalizer.normalize("Ångström naïve"), "Angstrom naive");
    }
}
