//! Batches of a fixed size, drawn without replacement.

use std::collections::HashSet;

use accountant::DpEvent;

use super::{DrawnPass, OneStep, TrainingMechanism};
use crate::{GaussianMechanism, MechanismError, PrivacyRng, Purpose, Stream};

/// Gaussian noise on a sum over a batch of a fixed number of units, drawn without replacement.
///
/// ```
/// use mechanisms::{FixedSizeSampledGaussian, TestRng, TrainingMechanism};
/// let mechanism = FixedSizeSampledGaussian::new(8192, 5_000_000_000, 1.1)?;
/// let mut pass = mechanism.sample(0, 5_000_000_000, &TestRng::from_seed(1))?;
/// assert_eq!(pass.batch(0).len(), 8192);
/// assert!(mechanism.sample(0, 4_999_999_999, &TestRng::from_seed(1)).is_err(), "the event names 5e9 units");
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FixedSizeSampledGaussian {
    sample_size: u64,
    population: u64,
    noise: GaussianMechanism,
}

impl FixedSizeSampledGaussian {
    /// Returns the mechanism with batches of `sample_size` of `population` units.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] if one of them is 0, or for a wrong noise multiplier.
    pub fn new(sample_size: u64, population: u64, noise_multiplier: f64) -> Result<Self, MechanismError> {
        let sample_size = super::at_least_one("sample size", sample_size)?;
        let population = super::at_least_one("population", population)?;
        Ok(Self { sample_size, population, noise: GaussianMechanism::new(noise_multiplier)? })
    }
}

impl TrainingMechanism for FixedSizeSampledGaussian {
    fn event(&self) -> DpEvent {
        DpEvent::FixedSizeSampledGaussian {
            sample_size: self.sample_size,
            population: self.population,
            noise_multiplier: self.noise.noise_multiplier(),
        }
    }

    fn noise(&self) -> GaussianMechanism {
        self.noise
    }

    fn sample(&self, pass: u64, population: u64, rng: &dyn PrivacyRng) -> DrawnPass {
        super::check_population(self.population, population)?;
        let mut stream = rng.stream(Purpose::Sampling, pass, 0);
        Ok(Box::new(OneStep(fixed_size_sample(self.sample_size, population, &mut stream))))
    }
}

/// Returns a uniformly random set of `size` numbers below `population`, ascending; all of them if there are no more.
///
/// Work and memory are O(`size`), whatever the population.
///
/// # References
/// Floyd's algorithm: Bentley & Floyd 1987, doi:10.1145/30401.315746.
pub(crate) fn fixed_size_sample(size: u64, population: u64, stream: &mut Stream) -> Vec<u64> {
    if size >= population {
        return (0..population).collect();
    }
    let mut taken = HashSet::with_capacity(size as usize);
    for last in population - size..population {
        let drawn = stream.below(last + 1);
        if !taken.insert(drawn) {
            taken.insert(last);
        }
    }
    let mut taken: Vec<u64> = taken.into_iter().collect();
    taken.sort_unstable();
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::poisson::poisson_sample;
    use crate::training::tests::stream;

    /// Returns χ² of the subsets drawn against all `subsets` of them being equally likely.
    fn chi2(subsets: f64, draws: u64, draw: impl Fn(u64) -> Vec<u64>) -> f64 {
        let mut counts = std::collections::HashMap::<Vec<u64>, f64>::new();
        (0..draws).for_each(|step| *counts.entry(draw(step)).or_default() += 1.0);
        let want = draws as f64 / subsets;
        let unseen = (subsets - counts.len() as f64).max(0.0) * want;
        counts.values().map(|hits| (hits - want).powi(2) / want).sum::<f64>() + unseen
    }

    /// The value that χ² with 19 degrees of freedom exceeds with probability 1e-6 (scipy 1.17, chi2.isf).
    const CHI2_19: f64 = 63.7;

    #[test]
    fn all_sets_of_the_size_are_equally_likely_and_poisson_samples_are_rejected() {
        let got = chi2(20.0, 20_000, |step| fixed_size_sample(3, 6, &mut stream(step)));
        assert!(got < CHI2_19, "{got}");
        let poisson = chi2(20.0, 20_000, |step| poisson_sample(0.5, 6, &mut stream(step)));
        assert!(poisson > CHI2_19, "{poisson}");
        // This draw takes three neighbours on a ring: each number is equally likely, the sets are not.
        let ring = chi2(20.0, 20_000, |step| {
            let start = stream(step).below(6);
            let mut set: Vec<u64> = (0..3).map(|at| (start + at) % 6).collect();
            set.sort_unstable();
            set
        });
        assert!(ring > CHI2_19, "{ring}");
    }

    #[test]
    fn extremes_are_handled() {
        assert!(fixed_size_sample(0, 5, &mut stream(0)).is_empty());
        assert!(fixed_size_sample(5, 0, &mut stream(0)).is_empty());
        assert_eq!(fixed_size_sample(5, 5, &mut stream(0)), [0, 1, 2, 3, 4]);
    }
}
