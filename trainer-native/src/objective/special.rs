//! The special tokens that objectives need of a vocabulary.

use dp_tokenizer::Tokenizer;

use super::corruption_lengths;
use crate::RunError;

/// Names of the tokens that a vocabulary made for this objective gets beside padding, end and unknown.
#[must_use]
pub fn special_tokens(objective: plan::Objective, context: usize) -> Vec<String> {
    match objective {
        plan::Objective::CausalLm | plan::Objective::PrefixLm => Vec::new(),
        plan::Objective::SpanCorruption => (0..corruption_lengths(context).spans).map(sentinel).collect(),
        plan::Objective::MaskedLm | plan::Objective::MaskedLmNextSentence => {
            ["[CLS]", "[SEP]", "[MASK]"].map(str::to_owned).to_vec()
        }
    }
}

/// The name of the token that stands for a run, as T5's vocabularies have it.
fn sentinel(at: usize) -> String {
    format!("<extra_id_{at}>")
}

/// A tokenizer asked for what an objective needs.
pub(super) struct Special<'a> {
    pub objective: plan::Objective,
    pub tokenizer: &'a Tokenizer,
}

impl Special<'_> {
    /// The sentinels of as many runs as a window of this context has.
    pub fn sentinels(&self, context: usize) -> Result<Vec<u32>, RunError> {
        (0..corruption_lengths(context).spans).map(|at| self.token(&sentinel(at))).collect()
    }

    /// The padding token, from which T5's decoder starts.
    pub fn padding(&self) -> Result<u32, RunError> {
        self.tokenizer.pad_id().ok_or_else(|| self.lacks("a padding token"))
    }

    /// The token of this name.
    pub fn token(&self, name: &str) -> Result<u32, RunError> {
        self.tokenizer.id(name).ok_or_else(|| self.lacks(name))
    }

    fn lacks(&self, what: &str) -> RunError {
        let family = match self.objective {
            plan::Objective::MaskedLm | plan::Objective::MaskedLmNextSentence => "BERT",
            _ => "T5",
        };
        RunError::Refused(format!(
            "tokenizer: it lacks {what}, which training.objective needs; give a vocabulary made for {family}, or have \
             one trained, which gets its tokens"
        ))
    }
}
