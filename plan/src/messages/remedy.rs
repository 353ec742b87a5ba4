//! Changes that bring a plan within its ε.

use core::fmt;

/// A change after which an [`Unknown`](crate::Unknown) can be found within the plan's ε.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Remedy {
    /// At most this expected batch size.
    ExpectedBatchSize(u64),
    /// At most so many steps.
    Steps(u64),
    /// At least this noise multiplier of training.
    NoiseMultiplier(f64),
    /// No spare steps.
    NoSpareSteps,
}

impl Remedy {
    /// All of them and a larger ε, in one line.
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
