//! Differentially private gradients: `step` is one step of DP-SGD.
//!
//! The types force the order of a step, and each move consumes the value before: `PerExampleGrads` → `ClippedSum` →
//! [`mechanisms::Bounded`] → [`PrivateGradient`]. An optimizer takes nothing else, except the [`BaselineGradient`] of a
//! run that is marked as not private.
//!
//! # References
//! Abadi et al. 2016, <https://arxiv.org/abs/1607.00133>. Norms without per-example gradients: Bu et al. 2023,
//! "Differentially private optimization on large model at small cost", <https://arxiv.org/abs/2210.00038>.

mod adaptive;
mod banded;
mod baseline;
mod clip;
mod error;
mod exact;
mod gradients;
mod grid_sum;
mod lot;
mod noise;
mod norms;
mod reduce;
mod shared;
mod step;
mod sum;
mod summing;

pub(crate) use banded::BandedNoise;
pub(crate) use baseline::plain_gradient;
pub(crate) use clip::ClippedSum;
pub use error::StepError;
pub(crate) use gradients::PerExampleGrads;
pub(crate) use lot::Lot;
pub use noise::{BaselineGradient, PrivateGradient};
pub(crate) use noise::{Carried, NoisyAverage};
pub(crate) use reduce::Reduce;
pub use step::DpStep;
pub(crate) use step::{TrainingData, TrainingSet, private_gradient};
pub(crate) use summing::Summation;

#[cfg(test)]
pub(crate) use reference::{clip, clipped_sum, clipped_sum_on_grid, noise_alone, per_example_norms};

#[cfg(all(test, feature = "wgpu"))]
mod device_tests;
#[cfg(test)]
mod family_tests;
#[cfg(test)]
pub(crate) mod reference;
#[cfg(test)]
mod tests;
