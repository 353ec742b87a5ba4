//! Mechanisms that draw their own batches, each with the event of the very figures it draws by.

use accountant::DpEvent;

use crate::{
    GaussianMechanism, MechanismError, Pass, PrivacyRng, Purpose, SampledGaussian, Stream, fixed_size_sample,
    truncated_poisson_sample,
};

/// Gaussian noise on a sum over a Poisson sample that is cut to a largest size by leaving out units at random.
///
/// ```
/// use mechanisms::TruncatedSampledGaussian;
/// let step = TruncatedSampledGaussian::new(0.01, 1.1, 10_000, 140)?;
/// assert!(matches!(step.event(), accountant::DpEvent::TruncatedPoissonSampledGaussian { largest_batch: 140, .. }));
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TruncatedSampledGaussian {
    sampled: SampledGaussian,
    sampling_probability: f64,
    units: u64,
    largest_batch: u64,
}

impl TruncatedSampledGaussian {
    /// Accepts what [`SampledGaussian::new`] does, for `units` units of which a batch keeps `largest_batch` at most.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`].
    pub fn new(
        sampling_probability: f64,
        noise_multiplier: f64,
        units: u64,
        largest_batch: u64,
    ) -> Result<Self, MechanismError> {
        let sampled = SampledGaussian::new(sampling_probability, noise_multiplier)?;
        at_least_one("units", units)?;
        at_least_one("largest batch", largest_batch)?;
        Ok(Self { sampled, sampling_probability, units, largest_batch })
    }

    /// What one step costs.
    #[must_use]
    pub fn event(&self) -> DpEvent {
        DpEvent::TruncatedPoissonSampledGaussian {
            sampling_probability: self.sampling_probability,
            noise_multiplier: self.gaussian().noise_multiplier(),
            units: self.units,
            largest_batch: self.largest_batch,
        }
    }

    /// The units that take part in one step.
    #[must_use]
    pub fn sample(&self, stream: &mut Stream) -> Vec<u64> {
        truncated_poisson_sample(self.sampling_probability, self.units, self.largest_batch, stream)
    }

    /// The noise on the sampled sum.
    #[must_use]
    pub fn gaussian(&self) -> GaussianMechanism {
        self.sampled.gaussian()
    }
}

/// Gaussian noise on the sum over each batch of a pass over the shuffled data set.
///
/// What it costs is stated a pass, not a step: a unit takes part in one batch of each pass.
///
/// ```
/// use mechanisms::{PrivacyRng, ShuffledGaussian, TestRng};
/// let mechanism = ShuffledGaussian::new(1000, 10, 1.1)?;
/// let mut pass = mechanism.pass(0, &TestRng::from_seed(1));
/// assert_eq!(pass.batch(3).len(), 100);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShuffledGaussian {
    population: u64,
    batches: u64,
    gaussian: GaussianMechanism,
}

impl ShuffledGaussian {
    /// `population` units, all of which are dealt out to `batches` batches of equal size.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] if one of them is 0, or for a wrong noise multiplier.
    pub fn new(population: u64, batches: u64, noise_multiplier: f64) -> Result<Self, MechanismError> {
        at_least_one("population", population)?;
        at_least_one("batches", batches)?;
        Ok(Self { population, batches, gaussian: GaussianMechanism::new(noise_multiplier)? })
    }

    /// What all batches of one pass together cost.
    #[must_use]
    pub fn event(&self) -> DpEvent {
        let noise_multiplier = self.gaussian.noise_multiplier();
        DpEvent::ShuffledGaussian { noise_multiplier, batches: self.batches, epochs: 1 }
    }

    /// The batches of pass number `pass`.
    #[must_use]
    pub fn pass(&self, pass: u64, rng: &impl PrivacyRng) -> Pass {
        Pass::shuffled(self.population, self.batches, rng.stream(Purpose::Sampling, pass, 0))
    }

    /// The noise on a batch's sum.
    #[must_use]
    pub fn gaussian(&self) -> GaussianMechanism {
        self.gaussian
    }
}

/// Gaussian noise on a sum over a batch of exactly so many units, drawn without replacement.
///
/// ```
/// use mechanisms::{FixedSizeSampledGaussian, PrivacyRng, Purpose, TestRng};
/// let step = FixedSizeSampledGaussian::new(100, 10_000, 1.1)?;
/// let mut stream = TestRng::from_seed(1).stream(Purpose::Sampling, 0, 0);
/// assert_eq!(step.sample(&mut stream).len(), 100);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedSizeSampledGaussian {
    sample_size: u64,
    population: u64,
    gaussian: GaussianMechanism,
}

impl FixedSizeSampledGaussian {
    /// `sample_size` of `population` units a batch.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] if one of them is 0, or for a wrong noise multiplier.
    pub fn new(sample_size: u64, population: u64, noise_multiplier: f64) -> Result<Self, MechanismError> {
        at_least_one("sample size", sample_size)?;
        at_least_one("population", population)?;
        Ok(Self { sample_size, population, gaussian: GaussianMechanism::new(noise_multiplier)? })
    }

    /// What one step costs.
    #[must_use]
    pub fn event(&self) -> DpEvent {
        DpEvent::FixedSizeSampledGaussian {
            sample_size: self.sample_size,
            population: self.population,
            noise_multiplier: self.gaussian.noise_multiplier(),
        }
    }

    /// The units that take part in one step.
    #[must_use]
    pub fn sample(&self, stream: &mut Stream) -> Vec<u64> {
        fixed_size_sample(self.sample_size, self.population, stream)
    }

    /// The noise on the batch's sum.
    #[must_use]
    pub fn gaussian(&self) -> GaussianMechanism {
        self.gaussian
    }
}

/// Gaussian noise on the sum over each of the batches of a pass into one of which every unit falls at random.
///
/// What it costs is stated a pass, not a step. The number of units is no part of it.
///
/// ```
/// use mechanisms::{BallsInBinsGaussian, TestRng};
/// let mut pass = BallsInBinsGaussian::new(10, 1.1)?.pass(1000, 0, &TestRng::from_seed(1));
/// assert_eq!((0..10).map(|batch| pass.batch(batch).len()).sum::<usize>(), 1000);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BallsInBinsGaussian {
    batches: u64,
    gaussian: GaussianMechanism,
}

impl BallsInBinsGaussian {
    /// `batches` batches a pass.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] if there is none, or for a wrong noise multiplier.
    pub fn new(batches: u64, noise_multiplier: f64) -> Result<Self, MechanismError> {
        at_least_one("batches", batches)?;
        Ok(Self { batches, gaussian: GaussianMechanism::new(noise_multiplier)? })
    }

    /// What all batches of one pass together cost.
    #[must_use]
    pub fn event(&self) -> DpEvent {
        let noise_multiplier = self.gaussian.noise_multiplier();
        DpEvent::BallsInBinsGaussian { noise_multiplier, batches: self.batches, epochs: 1 }
    }

    /// The batches of pass number `pass` over `population` units.
    #[must_use]
    pub fn pass(&self, population: u64, pass: u64, rng: &impl PrivacyRng) -> Pass {
        let [order, sizes] = [0, 1].map(|index| rng.stream(Purpose::Sampling, pass, index));
        Pass::balls_in_bins(population, self.batches, order, sizes)
    }

    /// The noise on a batch's sum.
    #[must_use]
    pub fn gaussian(&self) -> GaussianMechanism {
        self.gaussian
    }
}

fn at_least_one(name: &'static str, value: u64) -> Result<(), MechanismError> {
    if value >= 1 {
        Ok(())
    } else {
        Err(MechanismError::OutOfRange { name, value: value as f64, allowed: "at least 1" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_parameters_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(TruncatedSampledGaussian::new(0.5, bad, 10, 5).is_err());
            assert!(TruncatedSampledGaussian::new(bad, 1.0, 10, 5).is_err());
            assert!(ShuffledGaussian::new(10, 5, bad).is_err());
            assert!(FixedSizeSampledGaussian::new(5, 10, bad).is_err());
            assert!(BallsInBinsGaussian::new(5, bad).is_err());
        }
        assert!(TruncatedSampledGaussian::new(0.5, 1.0, 0, 5).is_err());
        assert!(TruncatedSampledGaussian::new(0.5, 1.0, 10, 0).is_err());
        assert!(ShuffledGaussian::new(0, 5, 1.0).is_err() && ShuffledGaussian::new(10, 0, 1.0).is_err());
        assert!(FixedSizeSampledGaussian::new(0, 5, 1.0).is_err());
        assert!(FixedSizeSampledGaussian::new(10, 0, 1.0).is_err());
        assert!(BallsInBinsGaussian::new(0, 1.0).is_err());
    }

    /// PITFALLS 1: no sampler but Poisson's has Poisson's event.
    #[test]
    fn every_sampler_emits_its_own_event() {
        let events = [
            SampledGaussian::new(0.1, 1.0).map(|mechanism| mechanism.event()),
            TruncatedSampledGaussian::new(0.1, 1.0, 100, 12).map(|mechanism| mechanism.event()),
            ShuffledGaussian::new(100, 10, 1.0).map(|mechanism| mechanism.event()),
            FixedSizeSampledGaussian::new(10, 100, 1.0).map(|mechanism| mechanism.event()),
            BallsInBinsGaussian::new(10, 1.0).map(|mechanism| mechanism.event()),
        ];
        let (sampling_probability, noise_multiplier) = (0.1, 1.0);
        let own = [
            DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier },
            DpEvent::TruncatedPoissonSampledGaussian {
                sampling_probability,
                noise_multiplier,
                units: 100,
                largest_batch: 12,
            },
            DpEvent::ShuffledGaussian { noise_multiplier, batches: 10, epochs: 1 },
            DpEvent::FixedSizeSampledGaussian { sample_size: 10, population: 100, noise_multiplier },
            DpEvent::BallsInBinsGaussian { noise_multiplier, batches: 10, epochs: 1 },
        ];
        for (event, own) in events.iter().zip(&own) {
            assert_eq!(event.as_ref().ok(), Some(own));
        }
    }
}
