//! Normalizers that put other text in: `Replace` and `Prepend`.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Normalize;
use crate::FormatError;
use crate::aligned_text::AlignedText;
use crate::pattern::Pattern;
use crate::stage;

/// Puts `content` in place of each match of a pattern.
#[derive(Debug)]
pub(super) struct Replace {
    pattern: Pattern,
    content: String,
}

impl Replace {
    pub(super) fn read(part: &Value) -> Result<Arc<dyn Normalize>, FormatError> {
        Ok(Arc::new(Self { content: stage::text(part, "content")?, pattern: Pattern::read(part)? }))
    }
}

impl Normalize for Replace {
    fn normalize<'a>(&self, text: &'a str, limit: usize) -> Cow<'a, str> {
        self.pattern.replace(text, &self.content, limit).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    fn align(&self, text: &mut AlignedText, limit: usize) {
        let (mut found, mut length) = (Vec::new(), text.text.len());
        self.pattern.each_match(&text.text, |range| {
            length = length.saturating_add(self.content.len()) - range.len();
            found.push(range);
        });
        if length <= limit.max(text.text.len()) {
            text.replace(&found, &self.content);
        }
    }

    fn json(&self) -> Value {
        json!({"type": "Replace", "pattern": self.pattern.json(), "content": self.content})
    }
}

/// Puts a text before every text that is not empty.
#[derive(Debug)]
pub(super) struct Prepend(String);

impl Prepend {
    pub(super) fn read(part: &Value) -> Result<Arc<dyn Normalize>, FormatError> {
        Ok(Arc::new(Self(stage::text(part, "prepend")?)))
    }
}

impl Normalize for Prepend {
    fn normalize<'a>(&self, text: &'a str, _: usize) -> Cow<'a, str> {
        match text {
            "" => Cow::Borrowed(text),
            _ => Cow::Owned([&self.0, text].concat()),
        }
    }

    fn align(&self, text: &mut AlignedText, _: usize) {
        text.prepend(&self.0);
    }

    fn json(&self) -> Value {
        json!({"type": "Prepend", "prepend": self.0})
    }
}
