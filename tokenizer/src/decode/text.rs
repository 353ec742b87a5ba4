//! Steps that change the text of tokens or join them: `Strip`, `Replace`, `Fuse`, and spaces between tokens.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Decode;
use crate::FormatError;
use crate::pattern::Pattern;
use crate::stage::{character, lacking, text};

/// A step that puts a space between all tokens, as Hugging Face's library does without a decoder.
#[derive(Debug)]
pub(super) struct Spaces;

impl Decode for Spaces {
    fn decode(&self, tokens: Vec<String>, _: usize) -> Vec<String> {
        vec![tokens.join(" ")]
    }

    fn json(&self) -> Value {
        Value::Null
    }
}

/// A step that joins all tokens to one.
#[derive(Debug)]
pub(super) struct Fuse;

impl Decode for Fuse {
    fn decode(&self, tokens: Vec<String>, _: usize) -> Vec<String> {
        vec![tokens.concat()]
    }

    fn json(&self) -> Value {
        json!({"type": "Fuse"})
    }
}

/// A step that removes a character from both ends of each token.
#[derive(Debug)]
pub(super) struct Strip {
    /// The character to remove.
    content: char,
    /// The most characters to remove at the start of a token.
    start: usize,
    /// The most characters to remove at the end of a token.
    stop: usize,
}

impl Strip {
    pub(super) fn read(part: &Value) -> Result<Arc<dyn Decode>, FormatError> {
        let count = |name: &str| {
            let count = part[name].as_u64().and_then(|count| usize::try_from(count).ok());
            count.ok_or_else(|| lacking(part, name, "a count"))
        };
        Ok(Arc::new(Self {
            content: character(part, "content")?,
            start: count("start")?,
            stop: count("stop")?,
        }))
    }
}

impl Decode for Strip {
    fn decode(&self, mut tokens: Vec<String>, _: usize) -> Vec<String> {
        for token in &mut tokens {
            let opening = token.chars().take(self.start).take_while(|c| *c == self.content).count();
            token.drain(..opening * self.content.len_utf8());
            let closing = token.chars().rev().take(self.stop).take_while(|c| *c == self.content).count();
            token.truncate(token.len() - closing * self.content.len_utf8());
        }
        tokens
    }

    // After `Fuse`, the end of the only token is that of the text, which may still be to come.
    fn tokens_that_may_change(&self) -> Option<usize> {
        (self.stop == 0).then_some(0)
    }

    fn json(&self) -> Value {
        json!({"type": "Strip", "content": self.content, "start": self.start, "stop": self.stop})
    }
}

/// A step that replaces each match of a pattern in a token.
#[derive(Debug)]
pub(super) struct Replace {
    pattern: Pattern,
    content: String,
}

impl Replace {
    pub(super) fn read(part: &Value) -> Result<Arc<dyn Decode>, FormatError> {
        Ok(Arc::new(Self { pattern: Pattern::read(part)?, content: text(part, "content")? }))
    }
}

impl Decode for Replace {
    fn decode(&self, mut tokens: Vec<String>, limit: usize) -> Vec<String> {
        let mut length: usize = tokens.iter().map(String::len).sum();
        for token in &mut tokens {
            let others = length - token.len();
            if let Some(replaced) = self.pattern.replace(token, &self.content, limit.saturating_sub(others)) {
                length = others + replaced.len();
                *token = replaced;
            }
        }
        tokens
    }

    // After `Fuse`, a match may reach into a token that is still to come.
    fn tokens_that_may_change(&self) -> Option<usize> {
        self.pattern.is_character().then_some(0)
    }

    fn json(&self) -> Value {
        json!({"type": "Replace", "pattern": self.pattern.json(), "content": self.content})
    }
}
