//! Implements balls in bins: in each pass every unit falls into one batch at random, independently of all others.

use accountant::DpEvent;

use super::poisson::poisson_sample;
use super::{DrawnPass, Pass, TrainingMechanism};
use crate::{GaussianMechanism, MechanismError, Permutation, PrivacyRng, Purpose, Stream};

/// Gaussian noise on the sum over each batch of a pass in which every unit falls into one batch at random.
///
/// The event is that of a whole pass. It does not depend on the number of units.
///
/// ```
/// use mechanisms::{BallsInBinsGaussian, TestRng, TrainingMechanism};
/// let mut pass = BallsInBinsGaussian::new(10, 1.1)?.sample(0, 1000, &TestRng::from_seed(1))?;
/// assert_eq!((0..10).map(|batch| pass.batch(batch).len()).sum::<usize>(), 1000);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BallsInBinsGaussian {
    batches: u64,
    noise: GaussianMechanism,
}

impl BallsInBinsGaussian {
    /// Returns the mechanism of a pass of `batches` batches.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] for 0 batches or a wrong noise multiplier.
    pub fn new(batches: u64, noise_multiplier: f64) -> Result<Self, MechanismError> {
        let batches = super::at_least_one("batches", batches)?;
        Ok(Self { batches, noise: GaussianMechanism::new(noise_multiplier)? })
    }
}

impl TrainingMechanism for BallsInBinsGaussian {
    fn event(&self) -> DpEvent {
        let noise_multiplier = self.noise.noise_multiplier();
        DpEvent::BallsInBinsGaussian { noise_multiplier, batches: self.batches, epochs: 1 }
    }

    fn noise(&self) -> GaussianMechanism {
        self.noise
    }

    fn steps_per_pass(&self) -> u64 {
        self.batches
    }

    fn sample(&self, pass: u64, population: u64, rng: &dyn PrivacyRng) -> DrawnPass {
        let [order, sizes] = [0, 1].map(|index| rng.stream(Purpose::Sampling, pass, index));
        Ok(Box::new(BallsInBinsPass::new(population, self.batches, order, sizes)))
    }
}

/// A random order of the units, cut at multinomial sizes that are drawn one after another.
///
/// # Proof
/// Let each of n units choose one of b batches uniformly and independently. Batch 0 is chosen by a Binomial(n, 1/b)
/// number of units. Given that r units chose none of the batches before k, batch k is chosen by a Binomial(r, 1/(b−k))
/// number of them. These are the sizes drawn here, each as the number of units in a Poisson sample of r. Given all
/// sizes, every assignment with those sizes is equally likely: a uniform order cut at the sizes.
struct BallsInBinsPass {
    population: u64,
    batches: u64,
    order: Permutation,
    sizes: Stream,
    /// The batch whose size is drawn next.
    next: u64,
    /// The position in the order at which the batch begins.
    begin: u64,
}

impl BallsInBinsPass {
    fn new(population: u64, batches: u64, order: Stream, sizes: Stream) -> Self {
        let order = Permutation::new(population, order);
        Self { population, batches, order, sizes, next: 0, begin: 0 }
    }

    /// Draws sizes up to that of `batch`, beginning anew if later ones have been drawn.
    fn bounds(&mut self, batch: u64) -> std::ops::Range<u64> {
        if self.next > batch {
            self.sizes.seek(0);
            (self.next, self.begin) = (0, 0);
        }
        loop {
            let left = self.population - self.begin;
            let probability = 1.0 / (self.batches - self.next) as f64;
            let size = poisson_sample(probability, left, &mut self.sizes).len() as u64;
            let bounds = self.begin..self.begin + size;
            (self.next, self.begin) = (self.next + 1, bounds.end);
            if self.next > batch {
                return bounds;
            }
        }
    }
}

impl Pass for BallsInBinsPass {
    fn batch(&mut self, batch: u64) -> Vec<u64> {
        if batch >= self.batches {
            return Vec::new();
        }
        self.bounds(batch).map(|position| self.order.at(position)).collect()
    }
}
