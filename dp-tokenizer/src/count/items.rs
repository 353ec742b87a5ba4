//! Items: the parts of text that are counted. No learnt piece crosses their bounds.

use mechanisms::Words;

use super::scan::scan;
use crate::tokenizer::BLANK;

/// Longer items are not counted: they are keys or sequences and never worth a token.
pub const MAX_ITEM_CHARS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Letter,
    Number,
    Space,
    Other,
}

impl Class {
    /// The class that bounds items: as written, all that is not white space is one.
    #[inline]
    pub(super) fn bounding(self, words: Words) -> Self {
        match words {
            Words::AsWritten if self != Self::Space => Self::Letter,
            _ => self,
        }
    }
}

/// Calls `found` for each item of `text`: a run of letters, of digits, of white space or of other characters, with `▁` in
/// front if a blank precedes it. As written, all that is not white space is one run.
///
/// ```
/// use dp_tokenizer::count::{Words, items};
/// let (mut by_class, mut as_written) = (Vec::new(), Vec::new());
/// items("No fever (37.2 C).", Words::ByClass, |item| by_class.push(item.to_owned()));
/// assert_eq!(by_class, ["No", "▁fever", "▁(", "37", ".", "2", "▁C", ")."]);
/// items("No fever (37.2 C).", Words::AsWritten, |item| as_written.push(item.to_owned()));
/// assert_eq!(as_written, ["No", "▁fever", "▁(37.2", "▁C)."]);
/// ```
pub fn items(text: &str, words: Words, mut found: impl FnMut(&str)) {
    let mut marked = String::new();
    scan(text, words, |bytes, range| {
        // Items end at character bounds.
        let Ok(item) = std::str::from_utf8(&bytes[range]) else { return };
        match item.strip_prefix(' ') {
            Some(rest) => {
                marked.clear();
                marked.push(BLANK);
                marked.push_str(rest);
                found(&marked);
            }
            None => found(item),
        }
    });
}

pub(super) fn classify(c: char) -> Class {
    if c.is_ascii() {
        return match c {
            'a'..='z' | 'A'..='Z' => Class::Letter,
            '0'..='9' => Class::Number,
            '\t'..='\r' => Class::Space,
            _ => Class::Other,
        };
    }
    if crate::character_class::is_letter(c) || unicode_normalization::char::is_combining_mark(c) {
        Class::Letter
    } else if crate::character_class::is_number(c) {
        Class::Number
    } else if c.is_whitespace() {
        Class::Space
    } else {
        Class::Other
    }
}

/// Whether this item is known without the data: one printable ASCII character, with or without a blank before it, or a blank
/// alone. Such items need no release, only a count.
#[must_use]
pub fn is_public_item(item: &str) -> bool {
    let rest = item.strip_prefix(BLANK).unwrap_or(item);
    rest.is_empty() || (rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_graphic()))
}

/// All public items, in a fixed order.
pub fn public_items() -> impl Iterator<Item = String> {
    let characters = || std::iter::once(String::new()).chain(('!'..='~').map(String::from));
    characters().skip(1).chain(characters().map(|c| format!("{BLANK}{c}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(text: &str, words: Words) -> Vec<String> {
        let mut found = Vec::new();
        items(text, words, |item| found.push(item.to_owned()));
        found
    }

    fn all(text: &str) -> Vec<String> {
        cut(text, Words::ByClass)
    }

    #[test]
    fn classes_part_items_and_marks_stay_with_their_letters() {
        assert_eq!(all("a  b\n\nc"), ["a", "▁", "▁b", "\n\n", "c"]);
        assert_eq!(all("cafe\u{301} Ⅻ4 Straße—x"), ["cafe\u{301}", "▁Ⅻ4", "▁Straße", "—", "x"]);
        assert!(all(&"x".repeat(65)).is_empty());
        assert_eq!(all(&"x".repeat(64)).len(), 1);
    }

    #[test]
    fn words_as_written_are_parted_by_white_space_alone() {
        let written = |text: &str| cut(text, Words::AsWritten);
        assert_eq!(
            written("It's 37.2 °C,  café—x!\n\n(No)"),
            ["It's", "▁37.2", "▁°C,", "▁", "▁café—x!", "\n\n", "(No)"]
        );
        assert!(written(&"x.".repeat(33)).is_empty());
        assert_eq!(written(&"x.".repeat(32)).len(), 1);
    }

    #[test]
    fn only_single_ascii_characters_are_public() {
        for public in ["a", "▁a", "▁", "~", "7"] {
            assert!(is_public_item(public), "{public}");
        }
        assert_eq!(public_items().filter(|i| is_public_item(i)).count(), 2 * 94 + 1);
        for private in ["ab", "▁ab", "é", "▁é", "\n", "37"] {
            assert!(!is_public_item(private), "{private}");
        }
    }

    /// The definition, character by character.
    fn by_definition(text: &str, words: Words) -> Vec<String> {
        let class_of = |c: char| match words {
            Words::ByClass => classify(c),
            Words::AsWritten if c.is_whitespace() => Class::Space,
            Words::AsWritten => Class::Other,
        };
        let mut found: Vec<String> = Vec::new();
        let mut class = None;
        for c in text.chars() {
            let is_blank = c == ' ' || c == BLANK;
            let here = (!is_blank).then(|| class_of(c));
            match found.last_mut() {
                Some(open) if !is_blank && (class.is_none() || class == here) => open.push(c),
                _ => found.push(String::from(if is_blank { BLANK } else { c })),
            }
            class = here;
        }
        found.retain(|item| item.chars().count() <= MAX_ITEM_CHARS);
        found
    }

    proptest! {
        #[test]
        fn the_fast_scan_equals_the_definition(text in "([a-zA-Z]{0,12}[ -~▁é中\t\u{300}Ⅻ\u{a0}😀]{0,3}){0,30}|[xé]{50,90}.{0,20}") {
            for words in [Words::ByClass, Words::AsWritten] {
                prop_assert_eq!(cut(&text, words), by_definition(&text, words));
            }
        }

        #[test]
        fn any_text_is_scanned_as_defined(text in ".{0,60}") {
            for words in [Words::ByClass, Words::AsWritten] {
                prop_assert_eq!(cut(&text, words), by_definition(&text, words));
            }
        }

        #[test]
        fn items_put_together_are_the_text_with_marked_blanks(text in "[a-c1é,. \n▁]{0,40}") {
            for words in [Words::ByClass, Words::AsWritten] {
                prop_assert_eq!(cut(&text, words).concat(), text.replace(' ', "▁"));
            }
        }

        #[test]
        fn words_as_written_are_those_of_the_standard_library(text in "([!-~é中]{0,20}[ \t\n\u{85}\u{2003}]{1,3}){0,12}") {
            let written = cut(&text, Words::AsWritten);
            let words = written.iter().map(|item| item.trim_start_matches(BLANK));
            let words: Vec<&str> = words.filter(|word| !word.trim().is_empty()).collect();
            prop_assert_eq!(words, text.split_whitespace().collect::<Vec<_>>());
        }
    }
}
