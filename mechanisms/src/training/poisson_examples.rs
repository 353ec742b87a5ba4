//! Poisson sampling of examples, for units that have several examples each.

use accountant::DpEvent;

use super::poisson::poisson_sample;
use super::{DrawnPass, OneStep, TrainingMechanism};
use crate::{GaussianMechanism, MechanismError, PrivacyRng, Purpose, out_of_range};

/// Gaussian noise on a sum over a Poisson sample of examples. A unit has up to `examples_per_unit` of them, each with a norm of at most the
/// clip norm: the data must be bounded accordingly before any step. The population is the number of examples.
///
/// # References
/// Charles et al. 2024, "Fine-tuning large language models with user-level differential privacy", example-level sampling,
/// <https://arxiv.org/abs/2407.07737>.
///
/// ```
/// use accountant::{Delta, NeighboringRelation::AddOrRemoveOne, epsilon};
/// use mechanisms::{PoissonSampledExamplesGaussian, TrainingMechanism};
/// let delta = Delta::new(1e-5)?;
/// let [one, ten] = [1, 10].map(|examples| PoissonSampledExamplesGaussian::new(0.01, 1.0, examples).map(|step| step.event()));
/// let [one, ten] = [epsilon(&one?, delta, AddOrRemoveOne)?, epsilon(&ten?, delta, AddOrRemoveOne)?];
/// assert!(ten.lower > 2.0 * one.upper);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PoissonSampledExamplesGaussian {
    sampling_probability: f64,
    examples_per_unit: u32,
    noise: GaussianMechanism,
}

impl PoissonSampledExamplesGaussian {
    /// Accepts 0 < `sampling_probability` ≤ 1, a finite noise multiplier above 0 and 1 to 256 examples of a unit.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] otherwise, NaN included.
    pub fn new(
        sampling_probability: f64,
        noise_multiplier: f64,
        examples_per_unit: u32,
    ) -> Result<Self, MechanismError> {
        let sampling_probability = super::probability(sampling_probability)?;
        if !(1..=256).contains(&examples_per_unit) {
            return out_of_range("examples of a unit", f64::from(examples_per_unit), "1 to 256");
        }
        Ok(Self { sampling_probability, examples_per_unit, noise: GaussianMechanism::new(noise_multiplier)? })
    }
}

impl TrainingMechanism for PoissonSampledExamplesGaussian {
    fn event(&self) -> DpEvent {
        DpEvent::PoissonSampledExamplesGaussian {
            sampling_probability: self.sampling_probability,
            noise_multiplier: self.noise.noise_multiplier(),
            examples_per_unit: self.examples_per_unit,
        }
    }

    fn noise(&self) -> GaussianMechanism {
        self.noise
    }

    fn sample(&self, pass: u64, population: u64, rng: &dyn PrivacyRng) -> DrawnPass {
        let mut stream = rng.stream(Purpose::Sampling, pass, 0);
        Ok(Box::new(OneStep(poisson_sample(self.sampling_probability, population, &mut stream))))
    }
}
