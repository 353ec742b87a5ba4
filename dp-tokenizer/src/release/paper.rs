//! The word histograms of two papers, for comparison.

use mechanisms::ReleaseMethod;
use serde::{Deserialize, Serialize};

use super::contribution::Contribution;

/// The word histogram of a paper: one thresholded round, whose weights are the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaperHistogram {
    /// The paper.
    pub paper: Paper,
    /// The number of words of a unit that count: the N of the papers, from 1 to 4096.
    pub words: u32,
}

/// A paper that releases words by a single thresholded histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Paper {
    /// Each unit adds 1 for each of its at most N distinct words; the noise multiplier is σ/√N.
    ///
    /// Hoory et al. 2021, "Learning and Evaluating a Differentially Private Pre-trained Language Model", §3.2
    Hoory2021,
    /// Each unit adds its word counts, at most N in total; the noise multiplier is σ/N.
    ///
    /// Ponomareva, Bastings, Vassilvitskii 2022, "Training Text-to-Text Transformers with Privacy Guarantees", §3.1
    Ponomareva2022,
}

impl Paper {
    /// Returns the paper whose histogram a plan names, if it names one.
    pub(super) fn of(method: ReleaseMethod) -> Option<Self> {
        match method {
            ReleaseMethod::Hoory2021 => Some(Self::Hoory2021),
            ReleaseMethod::Ponomareva2022 => Some(Self::Ponomareva2022),
            ReleaseMethod::Sips | ReleaseMethod::Pooled | ReleaseMethod::Policy | ReleaseMethod::Mad2r => {
                None
            }
        }
    }

    pub(super) fn contribution(self) -> Contribution {
        match self {
            Self::Hoory2021 => Contribution::Presence,
            Self::Ponomareva2022 => Contribution::Counts,
        }
    }

    /// Returns x of the printed threshold m + σ·erf⁻¹(1 − x), where m is the largest weight.
    pub(super) fn printed_tail(self, delta: f64, words: u32) -> f64 {
        let words = f64::from(words);
        match self {
            Self::Hoory2021 => delta / words,
            Self::Ponomareva2022 => delta / (2.0 * words),
        }
    }
}
