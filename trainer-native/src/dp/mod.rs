//! Differentially private gradients: records → per-example norms → clipped sum → noise.
//!
//! Types carry the state: [`ClippedSum`] inside [`mechanisms::Bounded`] inside nothing but [`PrivateGradient`] reaches
//! an optimizer.
//!
//! # References
//! Abadi et al. 2016, <https://arxiv.org/abs/1607.00133>; norms without per-example gradients: Bu et al. 2023,
//! "Differentially private optimization on large model at small cost", <https://arxiv.org/abs/2210.00038>.

mod clip;
mod lot;
mod noise;
mod norms;
mod step;
mod workers;

pub use clip::{ClippedSum, clip};
pub use lot::Lot;
pub use noise::{BaselineGradient, PrivateGradient, privatize};
pub use norms::{PerExampleNorms, per_example_norms};
#[cfg(test)]
pub(crate) use step::clipped_sum;
pub use step::{DpStep, PlainStep, dp_gradient, plain_gradient};
pub use workers::fold_in_order;

#[cfg(all(test, feature = "wgpu"))]
mod device_tests;
#[cfg(test)]
mod family_tests;
#[cfg(test)]
pub(crate) mod reference;
#[cfg(test)]
mod tests;
