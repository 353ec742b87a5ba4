//! The letters and digits of a text, with case folded and marks dropped.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// What a character is to the comparison of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// A letter or a digit of a script with blanks between words.
    Letter(char),
    /// A character of a script without them.
    Unspaced(char),
    /// White space.
    Blank,
}

/// The signs of a character that is not ASCII. Punctuation, marks and symbols have none.
pub(super) fn each_sign(c: char, mut take: impl FnMut(Sign)) {
    for part in std::iter::once(c).nfkd() {
        if part.is_whitespace() {
            take(Sign::Blank);
            continue;
        }
        // The lower case of the upper case folds ß to ss, and both forms of σ to one.
        for folded in part.to_uppercase().flat_map(char::to_lowercase) {
            if !folded.is_alphanumeric() || folded.general_category_group() == GeneralCategoryGroup::Mark {
                continue;
            }
            take(if is_unspaced(folded) { Sign::Unspaced(folded) } else { Sign::Letter(folded) });
        }
    }
}

/// Whether the script of a character has no blanks between words: Thai, Lao, Tibetan, Myanmar, Khmer, kana, Yi and Han.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0FFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3005..=0x3007 | 0x3040..=0x30FF | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xA000..=0xA4CF | 0xA9E0..=0xA9FF | 0xAA60..=0xAA7F | 0xF900..=0xFAFF
        | 0x1B000..=0x1B16F | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            each_sign(c, |sign| match sign {
                Sign::Letter(c) => out.push(c),
                Sign::Unspaced(c) => out.extend(['|', c]),
                Sign::Blank => out.push(' '),
            });
        }
        out
    }

    #[test]
    fn forms_of_one_letter_are_one_and_marks_and_punctuation_are_nothing() {
        for (given, want) in [
            ("Straße STRASSE", "strasse strasse"),
            ("É e\u{301} e", "e e e"),
            ("ﬁ ｆｕｌｌ Ⅳ ²", "fi full iv 2"),
            ("ΣΑΣ σας", "σασ σασ"),
            ("a\u{200B}b\u{AD}c—d…", "abcd"),
            ("\u{A0}\u{3000}", "  "),
            ("漢字ｶﾅ ภาษา", "|漢|字|カ|ナ |ภ|า|ษ|า"),
            ("한국어 ё и", "한국어 е и"),
            // Marks that Unicode counts as alphabetic.
            ("हिन्दी", "हनद"),
        ] {
            let want: String =
                want.nfkd().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '|').collect();
            assert_eq!(signs(given), want, "{given}");
        }
    }
}
