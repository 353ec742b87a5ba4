//! Shuffled passes: the units in random order, cut into batches of equal size.

use accountant::DpEvent;

use super::{DrawnPass, Pass, TrainingMechanism};
use crate::{GaussianMechanism, MechanismError, Permutation, PrivacyRng, Purpose};

/// Gaussian noise on the sum over each batch of a pass over the shuffled units.
///
/// The event is that of a whole pass: a unit takes part in one batch of each pass.
///
/// ```
/// use mechanisms::{ShuffledGaussian, TestRng, TrainingMechanism};
/// let mut pass = ShuffledGaussian::new(10, 1.1)?.sample(0, 1000, &TestRng::from_seed(1))?;
/// assert_eq!(pass.batch(3).len(), 100);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ShuffledGaussian {
    batches: u64,
    noise: GaussianMechanism,
}

impl ShuffledGaussian {
    /// Returns the mechanism of a pass of `batches` batches of equal size, or of two sizes that differ by one.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] for 0 batches or a wrong noise multiplier.
    pub fn new(batches: u64, noise_multiplier: f64) -> Result<Self, MechanismError> {
        let batches = super::at_least_one("batches", batches)?;
        Ok(Self { batches, noise: GaussianMechanism::new(noise_multiplier)? })
    }
}

impl TrainingMechanism for ShuffledGaussian {
    fn event(&self) -> DpEvent {
        let noise_multiplier = self.noise.noise_multiplier();
        DpEvent::ShuffledGaussian { noise_multiplier, batches: self.batches, epochs: 1 }
    }

    fn noise(&self) -> GaussianMechanism {
        self.noise
    }

    fn steps_per_pass(&self) -> u64 {
        self.batches
    }

    fn sample(&self, pass: u64, population: u64, rng: &dyn PrivacyRng) -> DrawnPass {
        let order = Permutation::new(population, rng.stream(Purpose::Sampling, pass, 0));
        Ok(Box::new(ShuffledPass { population, batches: self.batches, order }))
    }
}

struct ShuffledPass {
    population: u64,
    batches: u64,
    order: Permutation,
}

impl Pass for ShuffledPass {
    fn batch(&mut self, batch: u64) -> Vec<u64> {
        if batch >= self.batches {
            return Vec::new();
        }
        let bound =
            |at: u64| (u128::from(self.population) * u128::from(at) / u128::from(self.batches)) as u64;
        (bound(batch)..bound(batch + 1)).map(|position| self.order.at(position)).collect()
    }
}
