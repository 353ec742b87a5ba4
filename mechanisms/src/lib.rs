//! Secure randomness, samplers and noise, each mechanism emitting its own privacy event.
//!
//! * [`PrivacyRng`]: ChaCha20 keyed by the operating system ([`OsRng`]) or by a test seed ([`TestRng`], which
//!   marks a run as not private); every random figure is addressed by (key, purpose, step, index, position).
//! * [`poisson_sample`], [`truncated_poisson_sample`], [`fixed_size_sample`], [`Pass`]: which units take part in a step,
//!   in time proportional to how many do.
//! * [`SampledGaussian`], [`TruncatedSampledGaussian`], [`FixedSizeSampledGaussian`], [`ShuffledGaussian`],
//!   [`BallsInBinsGaussian`]: a sampler and noise with the event of both.
//! * [`Stream::fill_gaussian_f32`], [`Stream::fill_gaussian_f64`]: Gaussian noise for sums of floats.
//! * [`DiscreteGaussian`]: exact noise for counts.
//! * [`Bounded`]: a value with a stated sensitivity, which only a mechanism opens.

mod bernoulli;
mod discrete_gaussian;
mod gaussian;
mod pass;
mod permutation;
mod poisson;
mod rng;
mod sampled;
mod sensitivity;
mod subset;

pub use discrete_gaussian::DiscreteGaussian;
pub use pass::Pass;
pub use permutation::Permutation;
pub use poisson::poisson_sample;
pub use rng::{OsRng, PrivacyRng, Purpose, RandomnessSource, Stream, TestRng};
pub use sampled::{
    BallsInBinsGaussian, FixedSizeSampledGaussian, ShuffledGaussian, TruncatedSampledGaussian,
};
pub use sensitivity::{Bounded, GaussianMechanism, L2Sensitivity, SampledGaussian};
pub use subset::{fixed_size_sample, truncated_poisson_sample};

/// Why a mechanism refuses to run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MechanismError {
    /// A parameter outside its domain.
    #[error("{name} = {value} is out of range; allowed: {allowed}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The operating system gave no random bytes.
    #[error(
        "the operating system gave no random key ({reason}); private noise needs one: make /dev/urandom or getrandom(2) available to this process"
    )]
    NoEntropy {
        /// What the system said.
        reason: String,
    },
}
