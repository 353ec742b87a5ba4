//! Poisson sampling with an upper limit on the batch size.

use accountant::DpEvent;

use super::fixed_size::fixed_size_sample;
use super::poisson::poisson_sample;
use super::{DrawnPass, OneStep, TrainingMechanism};
use crate::{GaussianMechanism, MechanismError, PrivacyRng, Purpose, Stream};

/// Gaussian noise on a sum over a Poisson sample that is cut to a largest size by leaving out units at random.
///
/// ```
/// use mechanisms::{TestRng, TrainingMechanism, TruncatedPoissonSampledGaussian};
/// let mechanism = TruncatedPoissonSampledGaussian::new(0.5, 1000, 100, 1.1)?;
/// assert_eq!(mechanism.sample(0, 1000, &TestRng::from_seed(1))?.batch(0).len(), 100);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TruncatedPoissonSampledGaussian {
    sampling_probability: f64,
    units: u64,
    largest_batch: u64,
    noise: GaussianMechanism,
}

impl TruncatedPoissonSampledGaussian {
    /// Returns the mechanism of Poisson sampling of `units` units, of which a batch keeps `largest_batch` at most.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] for a probability outside 0 < q ≤ 1, a count of 0 or a wrong noise multiplier.
    pub fn new(
        sampling_probability: f64,
        units: u64,
        largest_batch: u64,
        noise_multiplier: f64,
    ) -> Result<Self, MechanismError> {
        let sampling_probability = super::probability(sampling_probability)?;
        let units = super::at_least_one("units", units)?;
        let largest_batch = super::at_least_one("largest batch", largest_batch)?;
        let noise = GaussianMechanism::new(noise_multiplier)?;
        Ok(Self { sampling_probability, units, largest_batch, noise })
    }
}

impl TrainingMechanism for TruncatedPoissonSampledGaussian {
    fn event(&self) -> DpEvent {
        DpEvent::TruncatedPoissonSampledGaussian {
            sampling_probability: self.sampling_probability,
            noise_multiplier: self.noise.noise_multiplier(),
            units: self.units,
            largest_batch: self.largest_batch,
        }
    }

    fn noise(&self) -> GaussianMechanism {
        self.noise
    }

    fn sample(&self, pass: u64, population: u64, rng: &dyn PrivacyRng) -> DrawnPass {
        super::check_population(self.units, population)?;
        let mut stream = rng.stream(Purpose::Sampling, pass, 0);
        let (probability, largest) = (self.sampling_probability, self.largest_batch);
        Ok(Box::new(OneStep(truncated_poisson_sample(probability, population, largest, &mut stream))))
    }
}

/// Draws a Poisson sample. If it is larger than `largest`, a uniformly random part of that size is
/// kept.
fn truncated_poisson_sample(
    probability: f64,
    population: u64,
    largest: u64,
    stream: &mut Stream,
) -> Vec<u64> {
    let drawn = poisson_sample(probability, population, stream);
    if drawn.len() as u64 <= largest {
        return drawn;
    }
    let kept = fixed_size_sample(largest, drawn.len() as u64, stream);
    kept.into_iter().map(|at| drawn[at as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::tests::stream;

    /// Oracle: sizes are min(Binomial(6, ½), 3), and all sets of a size are equally likely: 1, 6, 15 sets at 1/64 each and
    /// 20 sets at (20 + 15 + 6 + 1)/(64·20) each.
    #[test]
    fn a_cut_sample_has_the_law_of_a_random_part_and_an_uncut_one_is_rejected() {
        let draws = 40_000_u64;
        let statistic = |largest| {
            let mut counts = std::collections::HashMap::<Vec<u64>, f64>::new();
            for step in 0..draws {
                *counts.entry(truncated_poisson_sample(0.5, 6, largest, &mut stream(step))).or_default() +=
                    1.0;
            }
            let want = |set: &Vec<u64>| draws as f64 * if set.len() < 3 { 1.0 / 64.0 } else { 42.0 / 1280.0 };
            counts.iter().map(|(set, hits)| (hits - want(set)).powi(2) / want(set)).sum::<f64>()
        };
        // 41 degrees of freedom exceed 99.2 with probability 1e-6 (scipy 1.17, chi2.isf).
        assert!(statistic(3) < 99.2, "{}", statistic(3));
        assert!(statistic(6) > 99.2);
    }

    #[test]
    fn a_largest_size_of_zero_keeps_nobody() {
        assert!(truncated_poisson_sample(0.5, 100, 0, &mut stream(0)).is_empty());
    }
}
