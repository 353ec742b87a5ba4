//! Changes that bring a plan within its ε.

use core::fmt;

/// A change after which an [`Unknown`](crate::Unknown) can be found within the plan's ε.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Remedy {
    /// An expected batch size of at most this number.
    ExpectedBatchSize(u64),
    /// A number of steps of at most this.
    Steps(u64),
    /// A noise multiplier of training of at least this.
    NoiseMultiplier(f64),
    /// No spare steps.
    NoSpareSteps,
}

impl Remedy {
    /// Returns all remedies and a larger ε, in one line.
    pub(crate) fn list(remedies: &[Self]) -> String {
        let all: Vec<String> = remedies.iter().map(Self::to_string).collect();
        [all.as_slice(), &["raise privacy.epsilon".to_owned()]].concat().join(", or ")
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExpectedBatchSize(size) => write!(f, "lower the batch size to {size}"),
            Self::Steps(steps) => write!(f, "lower the number of steps to {steps}"),
            Self::NoiseMultiplier(noise) => write!(f, "raise the training noise σ to {noise}"),
            Self::NoSpareSteps => write!(f, "remove the reserve steps"),
        }
    }
}
