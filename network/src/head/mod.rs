//! What is predicted from a model's hidden states. A head belongs to no family.

mod lm;
mod loss;
mod sequence;
mod token;

pub use lm::{LmHead, Transform};
pub use loss::Loss;
pub use sequence::{Pooling, SequenceHead};
pub use token::TokenHead;

/// Standard deviation of the weights of a new head for labels.
pub const LABELS_STD: f64 = 0.02;

/// What a model predicts.
#[derive(Clone, Copy, Debug)]
pub enum Head {
    /// Tokens and, if the model does, the order of two sentences.
    Tokens {
        /// Of each token.
        tokens: LmHead,
        /// Of a pair of sentences.
        sentence: Option<SequenceHead>,
        /// Of the tokens. Sentences have plain cross entropy.
        loss: Loss,
    },
    /// The label of a text, or its labels.
    Sequence {
        /// Logits of the labels.
        head: SequenceHead,
        /// Whether a text has one label or any number.
        loss: Loss,
    },
    /// The tag of each word.
    Words {
        /// Logits of the tags.
        head: TokenHead,
        /// Of the tags.
        loss: Loss,
    },
}

impl Head {
    /// The loss of its predictions.
    #[must_use]
    pub fn loss(&self) -> Loss {
        match self {
            Self::Tokens { loss, .. } | Self::Sequence { loss, .. } | Self::Words { loss, .. } => *loss,
        }
    }
}
