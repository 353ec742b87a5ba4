//! GPT-2's pre-tokenizer.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::{PreTokenize, place};
use crate::FormatError;
use crate::aligned_text::AlignedText;
use crate::ascii_words::{AsciiWords, letters};
use crate::character_class::{is_letter, is_number};
use crate::stage::flag;

#[derive(Debug)]
pub(super) struct ByteLevel {
    /// Whether a text that does not start with a space gets one.
    pub(super) add_prefix_space: bool,
    /// Whether words are cut by GPT-2's rule.
    pub(super) use_regex: bool,
}

impl ByteLevel {
    pub(super) fn read(part: &Value) -> Result<Arc<dyn PreTokenize>, FormatError> {
        Ok(Arc::new(Self {
            add_prefix_space: flag(part, "add_prefix_space", true),
            use_regex: flag(part, "use_regex", true),
        }))
    }

    fn adds_space(&self, text: &str) -> bool {
        self.add_prefix_space && !text.starts_with(' ')
    }
}

impl PreTokenize for ByteLevel {
    fn mark<'a>(&self, text: &'a str, _: bool) -> Cow<'a, str> {
        if self.adds_space(text) { Cow::Owned([" ", text].concat()) } else { Cow::Borrowed(text) }
    }

    fn align(&self, text: &mut AlignedText) {
        if self.adds_space(&text.text) {
            text.prepend(" ");
        }
    }

    fn cut(&self, text: &str, take: &mut dyn FnMut(Range<usize>)) {
        match self.use_regex {
            true => byte_level_words(text).for_each(|word| take(place(text, word))),
            false => take(0..text.len()),
        }
    }

    fn json(&self) -> Value {
        json!({
            "type": "ByteLevel", "add_prefix_space": self.add_prefix_space, "trim_offsets": true, "use_regex": self.use_regex,
        })
    }

    fn spells_bytes(&self) -> bool {
        true
    }

    fn is_identity(&self) -> bool {
        !self.add_prefix_space && !self.use_regex
    }

    fn cuts_as_gpt2(&self) -> bool {
        !self.add_prefix_space && self.use_regex
    }
}

/// The words of `text` by GPT-2's rule. They concatenate to `text`.
///
/// The rule is the regular expression
/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`, implemented by hand in one pass.
///
/// # References
/// Radford et al. 2019, "Language models are unsupervised multitask learners", section 2.2.
pub fn byte_level_words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (word, tail) = rest.split_at(first_word(rest));
        rest = tail;
        Some(word)
    })
}

/// Hands the words of [`byte_level_words`] to `take`, each with its place and its [`crate::short_key::short_key`], or 0.
#[inline]
pub(super) fn each_byte_level_word(text: &str, mut take: impl FnMut(Range<usize>, u128)) {
    let mut from = 0;
    while from < text.len() {
        let short = text.as_bytes()[from..].first_chunk().and_then(|next| WORDS.short(next));
        let (length, key) = short.unwrap_or_else(|| (first_word(&text[from..]), 0));
        take(from..from + length, key);
        from += length;
    }
}

/// The words of ASCII letters: a blank may open one, and one ends before every other ASCII character.
static WORDS: AsciiWords = {
    let mut words = AsciiWords { opens: [0; 256], ends: [false; 256], cuts_before_capitals: false };
    words.opens[b' ' as usize] = 1;
    let mut byte = 0_u8;
    while byte < 128 {
        words.ends[byte as usize] = !byte.is_ascii_alphabetic();
        byte += 1;
    }
    words
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Blank,
    Letter,
    Number,
    Other,
}

/// The class of each byte that is an ASCII character; `None` for the bytes of others.
static ASCII: [Option<Class>; 256] = {
    let mut classes = [None; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte as usize] = Some(match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Number,
            b'\t'..=b'\r' | b' ' => Class::Blank,
            _ => Class::Other,
        });
        byte += 1;
    }
    classes
};

/// The classes of each 256 characters of which one was sought. Searching Unicode's tables takes longer.
static PAGES: [OnceLock<Box<[Class; 256]>>; 0x1100] = [const { OnceLock::new() }; 0x1100];

fn class(c: char) -> Class {
    let (page, place) = (c as u32 >> 8, c as usize & 0xFF);
    let of = |code: u32| char::from_u32(page << 8 | code).map_or(Class::Other, sought_class);
    PAGES[page as usize].get_or_init(|| Box::new(std::array::from_fn(|code| of(code as u32))))[place]
}

fn sought_class(c: char) -> Class {
    if is_letter(c) {
        Class::Letter
    } else if c.is_whitespace() {
        Class::Blank
    } else if is_number(c) {
        Class::Number
    } else {
        Class::Other
    }
}

/// Returns the byte length of the first word of a text that is not empty.
fn first_word(text: &str) -> usize {
    if let Some(length) = contraction(text.as_bytes()) {
        return length;
    }
    let start = usize::from(text.starts_with(' '));
    match class_at(text, start) {
        // After the space comes a blank, or nothing: the space belongs to a run of blanks.
        None | Some(Class::Blank) => blank_run(text),
        Some(kind) => end_of_run(text, start, kind),
    }
}

/// Returns the class of the character at `at`; `None` at the end.
fn class_at(text: &str, at: usize) -> Option<Class> {
    let byte = *text.as_bytes().get(at)?;
    ASCII[usize::from(byte)].or_else(|| text[at..].chars().next().map(class))
}

/// Returns the end of the characters of one class from `from` on.
fn end_of_run(text: &str, from: usize, kind: Class) -> usize {
    let (bytes, mut end) = (text.as_bytes(), from);
    loop {
        if kind == Class::Letter {
            end += letters(&bytes[end..], 0x20);
        } else {
            end += bytes[end..].iter().take_while(|byte| ASCII[usize::from(**byte)] == Some(kind)).count();
        }
        match text[end..].chars().next() {
            Some(c) if !c.is_ascii() && class(c) == kind => end += c.len_utf8(),
            _ => return end,
        }
    }
}

fn contraction(text: &[u8]) -> Option<usize> {
    match text {
        [b'\'', b's' | b't' | b'm' | b'd', ..] => Some(2),
        [b'\'', b'r', b'e', ..] | [b'\'', b'v', b'e', ..] | [b'\'', b'l', b'l', ..] => Some(3),
        _ => None,
    }
}

/// Returns the length of a run of blanks: up to the end of the text, or all but the last, which belongs to the next
/// word.
fn blank_run(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len());
    if end == text.len() {
        return end;
    }
    match text[..end].char_indices().next_back() {
        Some((last, _)) if last > 0 => last,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<&str> {
        byte_level_words(text).collect()
    }

    #[test]
    fn words_follow_the_regular_expression() {
        assert_eq!(words("I'll pay  $5"), ["I", "'ll", " pay", " ", " $", "5"]);
        // Oracle: the expression run by Hugging Face tokenizers 0.23.3, `ByteLevel(add_prefix_space=False)`.
        assert_eq!(words("a  b"), ["a", " ", " b"]);
        assert_eq!(words("a \n\n b "), ["a", " \n\n", " b", " "]);
        assert_eq!(words("a\t b\t"), ["a", "\t", " b", "\t"]);
        assert_eq!(words("a\tb"), ["a", "\t", "b"]);
        assert_eq!(words("it's 'sane' 'S"), ["it", "'s", " '", "sane", "'", " '", "S"]);
        assert_eq!(words("x²½Ⅷ٣ !?..."), ["x", "²½Ⅷ٣", " !?..."]);
        assert_eq!(words("e\u{301}t"), ["e", "\u{301}", "t"]);
        assert_eq!(words("'ll've'd"), ["'ll", "'ve", "'d"]);
    }

    #[test]
    fn the_table_has_the_classes_of_ascii_and_of_nothing_else() {
        for byte in 0..=255_u8 {
            let want = byte.is_ascii().then(|| class(byte.into()));
            assert_eq!(ASCII[usize::from(byte)], want, "{byte}");
        }
    }

    #[test]
    fn pages_have_the_classes_of_their_characters() {
        for c in ('\0'..=char::MAX).step_by(7) {
            assert_eq!(class(c), sought_class(c), "{c:?}");
        }
    }

    #[test]
    fn runs_go_on_over_characters_outside_ascii() {
        assert_eq!(words("naïveté née 12٣4½ a—b…"), ["naïveté", " née", " 12٣4½", " a", "—", "b", "…"]);
    }

    proptest! {
        #[test]
        fn joined_words_are_the_text(text in "(\\PC|[ \t\n's])*") {
            let mut places = Vec::new();
            each_byte_level_word(&text, |place, _| places.push(&text[place]));
            prop_assert_eq!(words(&text), places);
            prop_assert_eq!(words(&text).concat(), text);
        }
    }
}
