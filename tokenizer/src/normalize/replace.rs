//! Normalizers that put other text in: `Replace` and `Prepend`.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::Rewrite;
use crate::aligned_text::AlignedText;
use crate::pattern::Pattern;

/// Puts `content` in place of each match of a pattern.
#[derive(Debug)]
pub(crate) struct Replace {
    pub(crate) pattern: Pattern,
    pub(crate) content: String,
}

impl Rewrite for Replace {
    fn normalize<'a>(&self, text: &'a str, most: usize) -> Cow<'a, str> {
        self.pattern.replace(text, &self.content, most).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    fn align(&self, text: &mut AlignedText, most: usize) {
        let (mut found, mut length) = (Vec::new(), text.text.len());
        self.pattern.each_match(&text.text, |range| {
            length = length.saturating_add(self.content.len()) - range.len();
            found.push(range);
        });
        if length <= most.max(text.text.len()) {
            text.replace(&found, &self.content);
        }
    }

    fn json(&self) -> Value {
        json!({"type": "Replace", "pattern": self.pattern.json(), "content": self.content})
    }
}

/// Puts a text before every text that is not empty.
#[derive(Debug)]
pub(crate) struct Prepend {
    pub(crate) prepend: String,
}

impl Rewrite for Prepend {
    fn normalize<'a>(&self, text: &'a str, _: usize) -> Cow<'a, str> {
        match text {
            "" => Cow::Borrowed(text),
            _ => Cow::Owned([&self.prepend, text].concat()),
        }
    }

    fn align(&self, text: &mut AlignedText, _: usize) {
        text.prepend(&self.prepend);
    }

    fn json(&self) -> Value {
        json!({"type": "Prepend", "prepend": self.prepend})
    }
}
