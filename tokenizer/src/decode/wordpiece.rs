//! The decoder `WordPiece`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Decode;
use crate::FormatError;
use crate::stage::flag;

/// A step that puts a space before each token without the prefix.
#[derive(Debug)]
pub(super) struct WordPiece {
    /// The prefix of tokens inside a word.
    prefix: String,
    /// Whether spaces before punctuation and in English contractions are removed, token by token.
    cleanup: bool,
}

impl WordPiece {
    pub(super) fn read(part: &Value) -> Result<Arc<dyn Decode>, FormatError> {
        let prefix = part["prefix"].as_str().unwrap_or("##").to_owned();
        Ok(Arc::new(Self { prefix, cleanup: flag(part, "cleanup", true) }))
    }
}

impl Decode for WordPiece {
    fn decode(&self, mut tokens: Vec<String>, _: usize) -> Vec<String> {
        for (place, token) in tokens.iter_mut().enumerate() {
            let word = word_piece(place, token, &self.prefix);
            *token = if self.cleanup { clean_up(word) } else { word };
        }
        tokens
    }

    fn json(&self) -> Value {
        json!({"type": "WordPiece", "prefix": self.prefix, "cleanup": self.cleanup})
    }
}

/// Returns the text of a WordPiece token, with a space before it if it opens a word.
pub(super) fn word_piece(place: usize, token: &str, prefix: &str) -> String {
    match token.strip_prefix(prefix).filter(|_| place > 0) {
        Some(inner) => inner.to_owned(),
        None if place > 0 => format!(" {token}"),
        None => token.to_owned(),
    }
}

/// Removes spaces that English spelling does not have, in the order in which BERT's tools remove them.
pub(super) fn clean_up(text: String) -> String {
    const SPACED: [(&str, &str); 10] = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];
    SPACED
        .iter()
        .fold(text, |text, (from, to)| if text.contains(from) { text.replace(from, to) } else { text })
}
