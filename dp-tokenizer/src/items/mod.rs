//! Items: the parts of text that are counted. No learnt piece crosses their bounds.

mod scan;

use mechanisms::Words;

pub(crate) use scan::{scan, words_end};

use tokenizer::BLANK;

/// The most characters of an item. Longer ones are not counted: they are keys or sequences and never worth a token.
pub(crate) const MAX_ITEM_CHARS: usize = 64;

/// The item that begins and ends a text in pairs of words. A literal one in a text adds to the same counts.
pub(crate) const BOUNDARY: char = '\u{2403}';

/// The separator between a label and a word, or a boundary, in the items of labelled records.
pub(crate) const OF_LABEL: char = '\u{241F}';

/// The most characters of a run of words. Longer ones are not counted: no token is that long.
const MAX_RUN_CHARS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Space,
    Other,
}

impl Class {
    /// Returns the class that bounds items. As written, all characters but white space are of one class.
    #[inline]
    fn bounding(self, words: Words) -> Self {
        match words {
            Words::AsWritten | Words::Runs if self != Self::Space => Self::Letter,
            _ => self,
        }
    }
}

/// Calls `found` for each item of `text`: a run of letters, of digits, of white space or of other characters, with `▁` in
/// front if a blank precedes it. As written, all that is not white space is one run. With [`Words::Runs`], runs of such words
/// are items beside them, with [`Words::Pairs`] pairs of items by class, of which `␃` before the first and after the last is one.
/// With [`Words::PairsByLabel`], the first line of `text` is a label, and so are not its words but each item by class of the rest, and one
/// `␃`, together with it.
///
/// ```
/// use dp_tokenizer::count::{Words, items};
/// let (mut by_class, mut as_written, mut runs, mut pairs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
/// items("No fever (37.2 C).", Words::ByClass, |item| by_class.push(item.to_owned()));
/// assert_eq!(by_class, ["No", "▁fever", "▁(", "37", ".", "2", "▁C", ")."]);
/// items("No fever (37.2 C).", Words::AsWritten, |item| as_written.push(item.to_owned()));
/// assert_eq!(as_written, ["No", "▁fever", "▁(37.2", "▁C)."]);
/// items("No fever at  37.2 C", Words::Runs, |item| runs.push(item.to_owned()));
/// let words = ["No", "▁fever", "▁at", "▁", "▁37.2", "▁C"];
/// let found = ["No▁fever", "▁fever▁at", "No▁fever▁at", "▁37.2▁C"];
/// assert!(words.iter().chain(&found).all(|item| runs.contains(&(*item).to_owned())));
/// assert_eq!(runs.len(), words.len() + found.len());
/// items("No fever.", Words::Pairs, |item| pairs.push(item.to_owned()));
/// assert_eq!(pairs, ["No", "␃No", "▁fever", "No▁fever", ".", "▁fever.", ".␃"]);
/// let mut by_label = Vec::new();
/// items("ill\nNo fever", Words::PairsByLabel, |item| by_label.push(item.to_owned()));
/// assert_eq!(by_label, ["No", "␃No", "▁fever", "No▁fever", "▁fever␃", "ill␟No", "ill␟▁fever", "ill␟␃"]);
/// ```
pub fn items(text: &str, words: Words, mut found: impl FnMut(&str)) {
    let mut marked = String::new();
    scan(text, words, |bytes, range| {
        // Items end at character bounds.
        let Ok(item) = std::str::from_utf8(&bytes[range]) else { return };
        if item.contains(' ') {
            marked.clear();
            marked.extend(item.chars().map(|c| if c == ' ' { BLANK } else { c }));
            found(&marked);
        } else {
            found(item);
        }
    });
}

/// Returns the two words of an item that [`Words::Pairs`] counts beside words; `None` for a word.
///
/// ```
/// use dp_tokenizer::count::words_of_pair;
/// let pair = |first: &str, second: &str| Some([first, second].map(str::to_owned));
/// assert_eq!(words_of_pair("▁fever."), pair("▁fever", "."));
/// assert_eq!(words_of_pair(".␃"), pair(".", "␃"));
/// assert_eq!(words_of_pair("▁fever"), None);
/// ```
#[must_use]
pub fn words_of_pair(item: &str) -> Option<[String; 2]> {
    let boundary = || String::from(BOUNDARY);
    match (item.strip_prefix(BOUNDARY), item.strip_suffix(BOUNDARY)) {
        (Some(word), _) if !word.is_empty() => return Some([boundary(), word.to_owned()]),
        (_, Some(word)) if !word.is_empty() => return Some([word.to_owned(), boundary()]),
        _ => {}
    }
    let mut words = Vec::new();
    items(item, Words::ByClass, |word| words.push(word.to_owned()));
    words.try_into().ok()
}

/// Returns the label and the word, or boundary of texts, of an item that [`Words::PairsByLabel`] counts beside words
/// and pairs; `None` for the latter.
///
/// ```
/// use dp_tokenizer::count::word_of_label;
/// assert_eq!(word_of_label("ill␟▁fever"), Some(("ill", "▁fever")));
/// assert_eq!(word_of_label("ill␟␃"), Some(("ill", "␃")));
/// assert_eq!(word_of_label("▁fever.").or(word_of_label("␃▁fever")), None);
/// ```
#[must_use]
pub fn word_of_label(item: &str) -> Option<(&str, &str)> {
    item.split_once(OF_LABEL).filter(|(label, word)| !label.is_empty() && !word.is_empty())
}

/// Whether this word of a pair is the beginning or end of a text.
#[must_use]
pub fn is_boundary(word: &str) -> bool {
    word.strip_prefix(BOUNDARY) == Some("")
}

fn classify(c: char) -> Class {
    if c.is_ascii() {
        return match c {
            'a'..='z' | 'A'..='Z' => Class::Letter,
            '0'..='9' => Class::Number,
            '\t'..='\r' => Class::Space,
            _ => Class::Other,
        };
    }
    if tokenizer::character_class::is_letter(c) || unicode_normalization::char::is_combining_mark(c) {
        Class::Letter
    } else if tokenizer::character_class::is_number(c) {
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
pub(crate) fn is_public_item(item: &str) -> bool {
    let rest = item.strip_prefix(BLANK).unwrap_or(item);
    rest.is_empty() || (rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_graphic()))
}

/// Returns all public items, in a fixed order.
pub(crate) fn public_items() -> impl Iterator<Item = String> {
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
            Words::ByClass | Words::Pairs | Words::PairsByLabel => classify(c),
            Words::AsWritten | Words::Runs if c.is_whitespace() => Class::Space,
            Words::AsWritten | Words::Runs => Class::Other,
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

    /// Returns the runs that `by_definition` has beside words, from the words of a text without literal marks.
    fn runs_by_definition(text: &str) -> Vec<String> {
        let words = by_definition(text, Words::AsWritten);
        let is_word = |item: &String| !item.trim_start_matches(BLANK).trim().is_empty();
        let mut found = words.clone();
        for length in 2..=3 {
            for run in words.windows(length) {
                let joins = run.iter().all(is_word) && run[1..].iter().all(|word| word.starts_with(BLANK));
                found.extend(Some(run.concat()).filter(|run| joins && run.chars().count() <= MAX_RUN_CHARS));
            }
        }
        found.sort_unstable();
        found
    }

    /// A text that begins or ends with a word that is too long has no pair of a boundary and a shorter word.
    #[test]
    fn a_word_that_is_too_long_has_no_pair_with_a_boundary_nor_lends_it_to_its_neighbor() {
        let long = "x".repeat(70);
        let pairs = |text: &str| cut(text, Words::Pairs);
        assert_eq!(pairs("a b"), ["a", "␃a", "▁b", "a▁b", "▁b␃"]);
        assert_eq!(pairs(&format!("a b {long}")), ["a", "␃a", "▁b", "a▁b"]);
        assert_eq!(pairs(&format!("{long} a b")), ["▁a", "▁b", "▁a▁b", "▁b␃"]);
    }

    proptest! {
        #[test]
        fn runs_are_neighboring_words_with_one_blank_between(text in "([a-cé.]{1,5}[ \t\n\u{a0}]{1,2}){0,12}[ a]{0,3}") {
            let mut found = cut(&text, Words::Runs);
            found.sort_unstable();
            prop_assert_eq!(found, runs_by_definition(&text));
        }

        #[test]
        fn pairs_are_neighboring_words_by_class(text in "([a-cé]{1,4}|[.,]{1,2}|[12]| |\n|x{60,70}){0,30}") {
            let words = cut(&text, Words::ByClass);
            let mut found = cut(&text, Words::Pairs);
            // Words that are too long are no items, and no pair reaches over them.
            if !text.contains('x') {
                let boundary = (!words.is_empty()).then(|| String::from(BOUNDARY));
                let bounded: Vec<String> = boundary.iter().chain(&words).chain(&boundary).cloned().collect();
                let pairs = bounded.windows(2).map(|pair| pair.concat());
                let mut expected: Vec<String> = words.iter().cloned().chain(pairs).collect();
                found.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
            } else {
                prop_assert!(found.iter().all(|item| item.chars().count() <= MAX_ITEM_CHARS));
                let mut of_pairs = found.iter().filter_map(|item| words_of_pair(item)).flatten();
                prop_assert!(of_pairs.all(|word| is_boundary(&word) || words.contains(&word)));
                prop_assert!(words.iter().all(|word| found.contains(word)));
            }
        }

        #[test]
        fn words_by_label_are_those_of_the_other_lines_beside_the_first(
            label in "[a-c ]{1,3}|x{55,66}", text in "([a-cé]{1,4}|[.,]{1,2}|[12]| |\n|▁){0,30}"
        ) {
            let found = cut(&format!("{label}\n{text}"), Words::PairsByLabel);
            let words = cut(&text, Words::ByClass);
            let boundary = (!words.is_empty()).then(|| String::from(BOUNDARY));
            let label = label.replace(' ', "▁");
            let with_label = words.iter().chain(&boundary).map(|word| format!("{label}{OF_LABEL}{word}"));
            let short = with_label.filter(|item| item.chars().count() <= MAX_ITEM_CHARS);
            let expected: Vec<String> = cut(&text, Words::Pairs).into_iter().chain(short).collect();
            let told = found.iter().filter_map(|item| word_of_label(item));
            prop_assert!(told.into_iter().all(|(of, word)| of == label && (is_boundary(word) || words.contains(&word.to_owned()))));
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn the_fast_scan_equals_the_definition(text in "([a-zA-Z]{0,12}[ -~▁é中\t\u{300}Ⅻ\u{a0}😀]{0,3}){0,30}|[xé]{50,90}.{0,20}") {
            for words in [Words::ByClass, Words::AsWritten] {
                prop_assert_eq!(cut(&text, words), by_definition(&text, words));
            }
            let with_runs = cut(&text, Words::Runs);
            prop_assert!(cut(&text, Words::AsWritten).iter().all(|word| with_runs.contains(word)));
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
