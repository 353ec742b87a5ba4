//! A record with an answer to be predicted.

use serde::{Deserialize, Serialize};

/// A record of a plan whose objective reads more than its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelledRecord {
    /// Index of the unit to which the record belongs.
    pub unit: u64,
    /// The text; if words have tags, the words joined by blanks.
    pub text: String,
    /// The words, if each has a tag.
    pub words: Vec<String>,
    /// The second text of a pair.
    pub second: Option<String>,
    /// The answer to be predicted. Empty in a record to be labelled.
    pub(crate) answer: Answer,
}

impl LabelledRecord {
    /// Returns the number of bytes that the record holds on the heap.
    pub(super) fn bytes(&self) -> usize {
        let answer = match &self.answer {
            Answer::Labels(labels) => size_of_val(labels.as_slice()),
            Answer::Text(text) => text.len(),
        };
        let words: usize = self.words.iter().map(|word| word.len() + size_of::<String>()).sum();
        self.text.len() + words + self.second.as_ref().map_or(0, String::len) + answer
    }
}

/// The answer that a model predicts for a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Indices of labels: the text's single label, all of its labels, or one label for each word.
    Labels(Vec<u32>),
    /// The text to be written.
    Text(String),
}
