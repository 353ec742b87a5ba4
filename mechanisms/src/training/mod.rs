//! Training mechanisms: how a step draws its batch, the noise on the batch's sum, and the event of
//! both.
//!
//! Each sampling scheme is one type in one file. `plan` certifies a [`TrainingMechanism`] and the
//! trainer runs that same object, so the batches drawn and the event charged come from the same
//! figures.

mod balls_in_bins;
mod cyclic_poisson;
mod fixed_size;
mod poisson;
mod poisson_examples;
mod shuffled;
mod truncated_poisson;

use std::fmt;
use std::sync::Arc;

use accountant::DpEvent;

pub use balls_in_bins::BallsInBinsGaussian;
pub use cyclic_poisson::CyclicPoissonGaussian;
pub use fixed_size::FixedSizeSampledGaussian;
pub use poisson::PoissonSampledGaussian;
pub use poisson_examples::PoissonSampledExamplesGaussian;
pub use shuffled::ShuffledGaussian;
pub use truncated_poisson::TruncatedPoissonSampledGaussian;

use crate::{Bands, GaussianMechanism, MechanismError, PrivacyRng, out_of_range};

/// The batches of a pass, or the reason why its mechanism draws none.
pub type DrawnPass = Result<Box<dyn Pass>, MechanismError>;

/// A sampling scheme with Gaussian noise on each batch's sum, and the event of both.
///
/// Steps are grouped into passes. A scheme that draws every step independently has passes of one
/// step. A scheme that divides all units among batches has as many steps in a pass as batches.
pub trait TrainingMechanism: fmt::Debug + Send + Sync {
    /// Returns the event of one pass, however many of its steps are taken.
    fn event(&self) -> DpEvent;

    /// Returns the noise on a batch's sum. With [`Self::bands`], its sensitivity is a column norm of the matrix times
    /// that of the sum.
    fn noise(&self) -> GaussianMechanism;

    /// Returns the matrix that correlates the noise of the steps; `None` where each step's noise is independent.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] if no matrix can be used.
    fn bands(&self) -> Result<Option<Arc<Bands>>, MechanismError> {
        Ok(None)
    }

    /// Returns the number of steps in a pass.
    fn steps_per_pass(&self) -> u64 {
        1
    }

    /// Draws pass number `pass` over `population` units.
    ///
    /// # Errors
    /// [`MechanismError::Population`] if the event names another number of units. An event that names none holds for every
    /// population.
    fn sample(&self, pass: u64, population: u64, rng: &dyn PrivacyRng) -> DrawnPass;
}

/// The batches of one pass.
///
/// A batch takes time and memory proportional to its size. The order of a divided pass takes at
/// most 4 MiB more.
pub trait Pass: Send {
    /// Returns the units of a batch, by their numbers below the population. Empty past the last batch.
    ///
    /// Batches may be asked for in any order, and more than once.
    fn batch(&mut self, batch: u64) -> Vec<u64>;
}

/// The pass of a scheme that draws every step independently.
struct OneStep(Vec<u64>);

impl Pass for OneStep {
    fn batch(&mut self, batch: u64) -> Vec<u64> {
        if batch == 0 { self.0.clone() } else { Vec::new() }
    }
}

/// Accepts only the population that the event names.
fn check_population(certified: u64, given: u64) -> Result<(), MechanismError> {
    if certified == given { Ok(()) } else { Err(MechanismError::Population { certified, given }) }
}

fn probability(value: f64) -> Result<f64, MechanismError> {
    if value > 0.0 && value <= 1.0 {
        Ok(value)
    } else {
        out_of_range("sampling probability", value, "0 < q <= 1")
    }
}

fn at_least_one(name: &'static str, value: u64) -> Result<u64, MechanismError> {
    if value >= 1 { Ok(value) } else { out_of_range(name, value as f64, "at least 1") }
}

#[cfg(test)]
mod tests;
