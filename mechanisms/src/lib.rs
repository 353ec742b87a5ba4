//! Secure randomness, samplers and noise. Each mechanism states its own privacy event.
//!
//! * [`PrivacyRng`]: ChaCha20 keyed by the operating system ([`OsRng`]) or by a test seed ([`TestRng`], which
//!   marks a run as not private). The address of a random number is (key, purpose, step, index, position).
//! * [`TrainingMechanism`]: how a training step draws its batch, the noise on the batch's sum, and the event of both.
//!   [`PoissonSampledGaussian`], [`TruncatedPoissonSampledGaussian`], [`FixedSizeSampledGaussian`],
//!   [`BallsInBinsGaussian`], [`ShuffledGaussian`], [`CyclicPoissonGaussian`].
//! * [`Bands`]: noise that is correlated over steps.
//! * [`Grid`], [`RoundedGaussian`]: exact Gaussian noise for sums, which lie on a grid.
//! * [`DiscreteGaussian`]: exact noise for counts.
//! * [`Stream::fill_gaussian_f32`]: Gaussian numbers in floating point that protect nothing, such as initial weights.
//! * [`ExponentialMechanism`]: an exact draw of a token by public logits and clipped private ones.
//! * [`draw_trials`]: the secret number of trials of a private selection.
//! * [`Format`], [`Encoding`], [`PrivacyUnit`], [`Words`], [`ReleaseMethod`], [`is_field_name`]: terms that plans and corpora share. They name the
//!   format of a file, the unit, the words, the method that releases words, and the fields of a record.
//! * [`Bounded`]: a value with a stated sensitivity, which only a mechanism opens.

mod bands;
mod bernoulli;
mod discrete_gaussian;
mod encoding;
mod exponential;
mod field_name;
mod format;
mod gaussian;
mod grid;
mod permutation;
mod release;
mod rng;
mod rounded_gaussian;
mod sensitivity;
mod training;
mod trials;
mod unit;
mod words;

pub use bands::{Bands, InverseColumn};
pub use discrete_gaussian::DiscreteGaussian;
pub use encoding::Encoding;
pub use exponential::{ExponentialMechanism, TokenScores};
pub use field_name::is_field_name;
pub use format::Format;
pub use grid::Grid;
pub use permutation::Permutation;
pub use release::{COUNT_SHARE, MAX_ITEMS_PER_UNIT, ReleaseMethod};
pub use rng::{OsRng, PrivacyRng, Purpose, RandomnessSource, Stream, TestRng, random_id};
pub use rounded_gaussian::RoundedGaussian;
pub use sensitivity::{Bounded, GaussianMechanism, L2Sensitivity};
pub use training::{
    BallsInBinsGaussian, CyclicPoissonGaussian, DrawnPass, FixedSizeSampledGaussian, Pass,
    PoissonSampledExamplesGaussian, PoissonSampledGaussian, ShuffledGaussian, TrainingMechanism,
    TruncatedPoissonSampledGaussian,
};
pub use trials::draw_trials;
pub use unit::{PrivacyUnit, UnknownUnit};
pub use words::Words;

fn out_of_range<T>(name: &'static str, value: f64, allowed: &'static str) -> Result<T, MechanismError> {
    Err(MechanismError::OutOfRange { name, value, allowed })
}

/// The reasons why a mechanism refuses to run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MechanismError {
    /// A parameter outside its domain.
    #[error("{name} = {value} is out of range; allowed: {allowed}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The given value.
        value: f64,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A population for which the event does not hold.
    #[error("the event holds for {certified} units, but batches were to be drawn from {given}")]
    Population {
        /// The number of units that the event names.
        certified: u64,
        /// The number of units to draw from.
        given: u64,
    },
    /// The operating system gave no random bytes.
    #[error(
        "the operating system gave no random key ({reason}); private noise needs one: make /dev/urandom or getrandom(2) available to this process"
    )]
    NoEntropy {
        /// The message of the system.
        reason: String,
    },
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
