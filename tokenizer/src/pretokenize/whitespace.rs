//! Pre-tokenizers that cut a text at blanks: `WhitespaceSplit` and `Whitespace`.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{PreTokenize, place};
use crate::FormatError;
use crate::regex::Regex;

/// A pre-tokenizer whose words are the parts between blanks.
#[derive(Debug)]
pub(super) struct WhitespaceSplit;

impl PreTokenize for WhitespaceSplit {
    fn cut(&self, text: &str, take: &mut dyn FnMut(Range<usize>)) {
        text.split_whitespace().for_each(|word| take(place(text, word)));
    }

    fn json(&self) -> Value {
        json!({"type": "WhitespaceSplit"})
    }
}

/// A pre-tokenizer whose words are runs of word characters and runs of others. Blanks are dropped.
#[derive(Debug)]
pub(super) struct Whitespace(Regex);

impl Whitespace {
    pub(super) fn read(_: &Value) -> Result<Arc<dyn PreTokenize>, FormatError> {
        // The joiners are word characters here, as in the `regex` crate.
        let regex = Regex::new("[\\w\\u200C\\u200D]+|[^\\w\\s\\u200C\\u200D]+");
        Ok(Arc::new(Self(regex.map_err(FormatError::inconsistent)?)))
    }
}

impl PreTokenize for Whitespace {
    fn cut(&self, text: &str, take: &mut dyn FnMut(Range<usize>)) {
        self.0.each_match(text, take);
    }

    fn json(&self) -> Value {
        json!({"type": "Whitespace"})
    }
}
