//! Heads, which predict from a model's hidden states. They are independent of model families.

mod lm;
mod loss;
mod output_bias;
mod sequence;
mod token;

pub use lm::{LmHead, Transform};
pub use loss::Loss;
pub use output_bias::Common;
pub use sequence::{MEAN_CLASSIFIER, Pooling, SequenceHead};
pub use token::TokenHead;

/// Standard deviation of the weights of a new head for labels.
pub const LABELS_STD: f64 = 0.02;

/// The predictions of a model.
#[derive(Clone, Copy, Debug)]
pub enum Head {
    /// Tokens and, in some models, the order of two sentences.
    Tokens {
        /// Head for each token.
        tokens: LmHead,
        /// Head for a pair of sentences.
        sentence: Option<SequenceHead>,
        /// Loss of the tokens. Sentence pairs have plain cross entropy.
        loss: Loss,
    },
    /// The label of a text, or its labels.
    Sequence {
        /// Logits of the labels.
        head: SequenceHead,
        /// Loss of the labels. It says whether a text has one label or any number.
        loss: Loss,
    },
    /// The tag of each word.
    Words {
        /// Logits of the tags.
        head: TokenHead,
        /// Loss of the tags.
        loss: Loss,
    },
}

impl Head {
    /// Returns the loss of the head's predictions.
    #[must_use]
    pub fn loss(&self) -> Loss {
        match self {
            Self::Tokens { loss, .. } | Self::Sequence { loss, .. } | Self::Words { loss, .. } => *loss,
        }
    }
}
