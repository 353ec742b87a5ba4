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
    fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.pattern.replace(text, &self.content).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    fn align(&self, text: &mut AlignedText) {
        let mut found = Vec::new();
        self.pattern.each_match(&text.text, |range| found.push(range));
        text.replace(&found, &self.content);
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
    fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match text {
            "" => Cow::Borrowed(text),
            _ => Cow::Owned([&self.prepend, text].concat()),
        }
    }

    fn align(&self, text: &mut AlignedText) {
        text.prepend(&self.prepend);
    }

    fn json(&self) -> Value {
        json!({"type": "Prepend", "prepend": self.prepend})
    }
}
