//! Marks that stand for spaces: `Metaspace` and `BPEDecoder`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Decode;
use crate::FormatError;
use crate::pretokenize::{Metaspace, PreTokenize, PrependScheme};

/// Turns marks into spaces. Those of the first token are dropped, unless no mark is put before a text.
impl Decode for Metaspace {
    fn decode(&self, mut tokens: Vec<String>, _: usize) -> Vec<String> {
        for (place, token) in tokens.iter_mut().enumerate() {
            let drops = place == 0 && self.prepend_scheme != PrependScheme::Never;
            *token = token.replace(self.replacement, if drops { "" } else { " " });
        }
        tokens
    }

    fn json(&self) -> Value {
        PreTokenize::json(self)
    }
}

/// A step that turns the suffix of each word into a space, and drops that of the last token.
#[derive(Debug)]
pub(super) struct Bpe {
    suffix: String,
}

impl Bpe {
    pub(super) fn read(part: &Value) -> Result<Arc<dyn Decode>, FormatError> {
        Ok(Arc::new(Self { suffix: part["suffix"].as_str().unwrap_or("</w>").to_owned() }))
    }
}

impl Decode for Bpe {
    fn decode(&self, mut tokens: Vec<String>, _: usize) -> Vec<String> {
        let last = tokens.len().saturating_sub(1);
        for (place, token) in tokens.iter_mut().enumerate() {
            *token = token.replace(&self.suffix, if place == last { "" } else { " " });
        }
        tokens
    }

    // The last word has no space after it.
    fn tokens_that_may_change(&self) -> Option<usize> {
        Some(1)
    }

    fn json(&self) -> Value {
        json!({"type": "BPEDecoder", "suffix": self.suffix})
    }
}
