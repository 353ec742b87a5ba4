//! Cuts texts into words as sacreBLEU does.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::is_space;

/// The way in which a text is cut into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokenization {
    /// Tokenization of mteval-v13a of the WMT shared tasks, which is the usual one.
    V13a,
    /// Cuts at punctuation and symbols of every script, as mteval-v14 does with `--international`.
    International,
    /// Cuts at white space only, for texts that are tokenized already.
    None,
}

impl Tokenization {
    /// Returns the tokenization's name in signatures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V13a => "13a",
            Self::International => "intl",
            Self::None => "none",
        }
    }

    /// Returns the words of a text.
    pub fn words(self, text: &str) -> Vec<String> {
        let text = text.trim_end_matches(is_space);
        let text = match self {
            Self::V13a => v13a(text),
            Self::International => international(text),
            Self::None => text.to_owned(),
        };
        text.split(is_space).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
}

fn v13a(text: &str) -> String {
    let mut text = text.replace("<skipped>", "").replace("-\n", "").replace('\n', " ");
    for (entity, character) in [("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")] {
        text = text.replace(entity, character);
    }
    let apart = |c: char| matches!(c, '{'..='~' | '['..='`' | ' '..='&' | '('..='+' | ':'..='@' | '/');
    let mut spaced = String::with_capacity(2 * text.len());
    for c in format!(" {text} ").chars() {
        if apart(c) {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    let digit = |c: char| c.is_ascii_digit();
    let stop = |c: char| c == '.' || c == ',';
    let text = pairs(&spaced, |a, b| !digit(a) && stop(b), |a, b| format!("{a} {b} "));
    let text = pairs(&text, |a, b| stop(a) && !digit(b), |a, b| format!(" {a} {b}"));
    pairs(&text, |a, b| digit(a) && b == '-', |a, b| format!("{a} {b} "))
}

fn international(text: &str) -> String {
    let group = |c: char| c.general_category_group();
    let number = |c: char| group(c) == GeneralCategoryGroup::Number;
    let punctuation = |c: char| group(c) == GeneralCategoryGroup::Punctuation;
    let text = pairs(text, |a, b| !number(a) && punctuation(b), |a, b| format!("{a} {b} "));
    let text = pairs(&text, |a, b| punctuation(a) && !number(b), |a, b| format!(" {a} {b}"));
    let mut spaced = String::with_capacity(2 * text.len());
    for c in text.chars() {
        if group(c) == GeneralCategoryGroup::Symbol {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    spaced
}

/// Replaces pairs of characters from left to right, as a regular expression does: pairs do not overlap.
fn pairs(
    text: &str,
    matches: impl Fn(char, char) -> bool,
    replacement: impl Fn(char, char) -> String,
) -> String {
    let mut result = String::with_capacity(2 * text.len());
    let mut characters = text.chars().peekable();
    while let Some(first) = characters.next() {
        match characters.next_if(|&second| matches(first, second)) {
            Some(second) => result += &replacement(first, second),
            None => result.push(first),
        }
    }
    result
}
