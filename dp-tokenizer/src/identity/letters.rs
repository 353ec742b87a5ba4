//! Reads the letters and digits of a text, with case folded and marks dropped.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// The meaning of a character for the comparison of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// A letter or a digit of a script with blanks between words.
    Letter(char),
    /// A character of a script without blanks between words.
    Unspaced(char),
    /// The end of a word: white space, or punctuation between words.
    Blank,
}

/// Hands the signs of a character that is not ASCII to `take`. Marks, symbols and punctuation within words have none.
pub(super) fn each_sign(c: char, mut take: impl FnMut(Sign)) {
    for part in std::iter::once(c).nfkd() {
        if ends_word(part) {
            take(Sign::Blank);
            continue;
        }
        // Lower-casing the upper case folds ß to ss, and both forms of σ to one.
        for folded in part.to_uppercase().flat_map(char::to_lowercase) {
            if !folded.is_alphanumeric()
                || folded.general_category_group() == GeneralCategoryGroup::Mark
                || is_no_letter(folded)
            {
                continue;
            }
            let folded = digit(folded).unwrap_or(folded);
            take(if is_unspaced(folded) { Sign::Unspaced(folded) } else { Sign::Letter(folded) });
        }
    }
}

/// Whether a character ends a word: white space, and marks beside which a text may have a blank or none. Apostrophes, full stops and
/// colons stand within words, abbreviations and numbers.
pub(super) fn ends_word(c: char) -> bool {
    let is_within = |c| matches!(c, '.' | ':' | '\'' | '`');
    c.is_whitespace()
        || (c.is_ascii_punctuation() && !is_within(c))
        || matches!(c, '‐' | '–' | '—' | '―' | '«' | '»' | '“' | '”' | '„' | '،' | '؛' | '؟')
}

/// Whether Unicode counts a character as a letter that readers do not: an apostrophe, the line that lengthens an Arabic or N'Ko word,
/// and the invisible fillers of Hangul.
fn is_no_letter(c: char) -> bool {
    matches!(u32::from(c), 0x02B9..=0x02C1 | 0x02EE | 0x0640 | 0x07FA | 0x115F..=0x1160 | 0xA78B..=0xA78C)
}

/// Returns the ASCII digit of a decimal digit. Unicode has the digits of a script in a row that begins at 0 or 6 of its
/// row of 16.
fn digit(c: char) -> Option<char> {
    let is_decimal =
        |code| char::from_u32(code).is_some_and(|c| c.general_category() == GeneralCategory::DecimalNumber);
    let (code, row) = (u32::from(c), u32::from(c) | 0xF);
    let first = row - if is_decimal(row) { 9 } else { 15 };
    is_decimal(code).then(|| char::from_digit(code.checked_sub(first)?, 10))?
}

/// Whether the script of a character has no blanks between words: Thai, Lao, Tibetan, Myanmar, Khmer, Tai, Balinese, Javanese, kana,
/// Yi and Han.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0FFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x1950..=0x19FF | 0x1A20..=0x1AAF | 0x1B00..=0x1B7F | 0x3005..=0x3007 | 0x3040..=0x30FF | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xA000..=0xA4CF | 0xA980..=0xA9FF | 0xAA60..=0xAADF | 0xF900..=0xFAFF
        | 0x11700..=0x1174F | 0x1B000..=0x1B16F | 0x20000..=0x3FFFF)
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
            ("a\u{200B}b\u{AD}c—d…", "abc d"),
            ("dogs,cats;“birds”", "dogs cats  birds "),
            ("well-known_words/all don't 3.5 U.S.", "well known words all dont 35 us"),
            ("٣٤ ३४ ৩৪ ๓๔ ３４ 𑁩𑁪", "34 34 34 34 34 34"),
            // An apostrophe is no letter, whichever character writes it. Neither is a lengthening line or an invisible
            // filler.
            ("oʻzbek o'zbek o‘zbek ꞌ", "ozbek ozbek ozbek "),
            ("كتاب كـتـاب", "كتاب كتاب"),
            ("a\u{3164}b\u{FFA0}c\u{115F}d", "abcd"),
            ("\u{A0}\u{3000}", "  "),
            ("漢字ｶﾅ ภาษา", "|漢|字|カ|ナ |ภ|า|ษ|า"),
            ("ꦗꦮ ᬅᬓ ᦅᦆ ᨠᨡ", "|ꦗ|ꦮ |ᬅ|ᬓ |ᦅ|ᦆ |ᨠ|ᨡ"),
            ("한국어 ё и", "한국어 е и"),
            // Unicode counts these marks as alphabetic.
            ("हिन्दी", "हनद"),
        ] {
            let want: String =
                want.nfkd().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '|').collect();
            assert_eq!(signs(given), want, "{given}");
        }
    }
}
