//! Classes of characters on which tokenizers agree, by Unicode general category.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Whether `c` is a letter: general category L, the `\p{L}` of regular expressions.
///
/// Narrower than [`char::is_alphabetic`], which also takes letter-like numbers and marks.
pub fn is_letter(c: char) -> bool {
    belongs(c, char::is_ascii_alphabetic, GeneralCategoryGroup::Letter)
}

/// Whether `c` is a number: general category N, the `\p{N}` of regular expressions.
pub fn is_number(c: char) -> bool {
    belongs(c, char::is_ascii_digit, GeneralCategoryGroup::Number)
}

/// Whether BERT isolates `c`: all ASCII that is neither letter, digit, blank nor control, and category P.
pub fn is_bert_punctuation(c: char) -> bool {
    belongs(c, char::is_ascii_punctuation, GeneralCategoryGroup::Punctuation)
}

/// Whether an ASCII character is in `ascii`, or any other in `group`.
fn belongs(c: char, ascii: impl Fn(&char) -> bool, group: GeneralCategoryGroup) -> bool {
    if c.is_ascii() { ascii(&c) } else { c.general_category_group() == group }
}

/// Whether `c` is a mark without a width of its own (category Mn): what is left of an accent once decomposed.
pub(crate) fn is_nonspacing_mark(c: char) -> bool {
    !c.is_ascii() && c.general_category() == GeneralCategory::NonspacingMark
}

/// Whether BERT drops `c` as invisible: controls, formats and private use, but not tab, newline and return.
///
/// Code points without a character stay, as they may be characters of a later Unicode.
pub(crate) fn is_bert_control(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        _ if c.is_ascii() => c.is_ascii_control(),
        _ => matches!(
            c.general_category(),
            GeneralCategory::Control | GeneralCategory::Format | GeneralCategory::PrivateUse
        ),
    }
}

/// Whether `c` lies in a block of Chinese characters, which BERT takes one by one.
///
/// Hangul, Hiragana and Katakana are written with other blocks and stay words.
pub fn is_cjk_ideograph(c: char) -> bool {
    matches!(c,
        '\u{4E00}'..='\u{9FFF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{20000}'..='\u{2A6DF}'
        | '\u{2A700}'..='\u{2B73F}'
        | '\u{2B740}'..='\u{2B81F}'
        | '\u{2B820}'..='\u{2CEAF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{2F800}'..='\u{2FA1F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_the_standard_library_calls_numeric() {
        // Oracle: std documents `is_numeric` as categories Nd, Nl and No. Unicode versions may differ by a few
        // fresh characters, which must not reach the planes in daily use.
        let differs = ('\0'..='\u{FFFF}').find(|c| c.is_numeric() != is_number(*c));
        assert_eq!(differs, None);
    }

    #[test]
    fn every_letter_is_alphabetic_but_not_the_other_way_round() {
        // Oracle: DerivedCoreProperties defines Alphabetic as L and more; blocks that no Unicode version adds to.
        assert!(('\0'..='\u{52F}').filter(|&c| is_letter(c)).all(char::is_alphabetic));
        // U+2160 ROMAN NUMERAL ONE is alphabetic, yet a number.
        assert!('\u{2160}'.is_alphabetic() && !is_letter('\u{2160}') && is_number('\u{2160}'));
    }

    #[test]
    fn no_character_is_in_two_classes() {
        for c in '\0'..=char::MAX {
            let classes = [is_letter(c), is_number(c), is_bert_punctuation(c), c.is_whitespace()];
            assert!(classes.iter().filter(|x| **x).count() <= 1, "U+{:04X}", c as u32);
        }
    }
}
