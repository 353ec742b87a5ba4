//! Implements banded matrix factorization under cyclic Poisson sampling.

use std::sync::{Arc, OnceLock};

use accountant::DpEvent;

use super::poisson::poisson_sample;
use super::{DrawnPass, Pass, TrainingMechanism};
use crate::{Bands, GaussianMechanism, MechanismError, PrivacyRng, Purpose, Stream};

/// Gaussian noise that is correlated over steps, on sums over Poisson samples of one part of the units after another.
///
/// Each unit belongs to one of b parts, at random and independently of its content. A pass has b steps, and step k of each pass samples
/// from part k, so that two participations of a unit are at least b steps apart. The noise of a step is a row of C⁻¹z, where C has b
/// bands: [`Bands`].
///
/// # Guarantee
/// Consecutive steps of one process, from the first step of a phase or of the process on, are a block: they share the parts and
/// the noise. [`Bands`] proves that a block releases a function of Cx + z, and the accountant that each pass of a block costs
/// [`TrainingMechanism::event`] at most. A pass that begins or ends in the middle of its steps contains at most one participation of a
/// unit too, and is charged in full. A process that resumes a run has a new key: new parts, new z, and none of the noise drawn before.
/// It begins a new block, and the blocks compose, each with the passes that it touches. Steps that an earlier process took and lost
/// belong to that process's block, as if they had been released.
///
/// # References
/// Choquette-Choo et al. 2023, Algorithm 2 and Theorem 4, <https://arxiv.org/abs/2306.08153>.
///
/// ```
/// use mechanisms::{CyclicPoissonGaussian, TestRng, TrainingMechanism};
/// let mut pass = CyclicPoissonGaussian::new(150, 8, 0.5, 1.1)?.sample(0, 1600, &TestRng::from_seed(1))?;
/// assert!((50..150).contains(&pass.batch(3).len()), "half of an eighth of the units");
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CyclicPoissonGaussian {
    steps: u64,
    bands: u64,
    sampling_probability: f64,
    noise: GaussianMechanism,
    /// The matrix, which is found when it is first asked for: calibration needs the event alone.
    matrix: OnceLock<Result<Arc<Bands>, MechanismError>>,
}

impl CyclicPoissonGaussian {
    /// Returns the mechanism of at most `steps` steps with the matrix of `bands` bands that has the least error; more
    /// bands than steps count as that many. A unit takes part in a step of its part with `sampling_probability`. The
    /// noise multiplier is over what a participation moves, a column norm of C times its contribution.
    ///
    /// # Errors
    /// As [`Bands::least_error`]; [`MechanismError::OutOfRange`] for a probability outside 0 < q ≤ 1 or a wrong noise multiplier.
    pub fn new(
        steps: u64,
        bands: u64,
        sampling_probability: f64,
        noise_multiplier: f64,
    ) -> Result<Self, MechanismError> {
        crate::bands::check(super::at_least_one("steps", steps)?.max(bands), bands)?;
        let sampling_probability = super::probability(sampling_probability)?;
        let noise = GaussianMechanism::new(noise_multiplier)?;
        Ok(Self { steps, bands, sampling_probability, noise, matrix: OnceLock::new() })
    }
}

impl TrainingMechanism for CyclicPoissonGaussian {
    fn event(&self) -> DpEvent {
        DpEvent::CyclicPoissonSampledGaussian {
            sampling_probability: self.sampling_probability,
            noise_multiplier: self.noise.noise_multiplier(),
        }
    }

    fn noise(&self) -> GaussianMechanism {
        self.noise
    }

    fn bands(&self) -> Result<Option<Arc<Bands>>, MechanismError> {
        let found = || Bands::least_error(self.steps, self.bands.min(self.steps)).map(Arc::new);
        self.matrix.get_or_init(found).clone().map(Some)
    }

    fn steps_per_pass(&self) -> u64 {
        self.bands
    }

    fn sample(&self, pass: u64, population: u64, rng: &dyn PrivacyRng) -> DrawnPass {
        let samples = (0..self.bands as u32).map(|part| rng.stream(Purpose::Sampling, pass, part)).collect();
        let parts = rng.stream(Purpose::Sampling, PARTS, 0);
        Ok(Box::new(CyclicPass { probability: self.sampling_probability, population, samples, parts }))
    }
}

/// The number of a pass that no run reaches. Its stream draws the parts, which all passes of a process share.
const PARTS: u64 = u64::MAX;

/// The samples of all units, one for each part, of which only the units of the part are kept.
struct CyclicPass {
    probability: f64,
    population: u64,
    samples: Vec<Stream>,
    parts: Stream,
}

impl CyclicPass {
    /// Returns the part of a unit. Each part is chosen with a probability within 2⁻⁶⁴ of 1/b; the guarantee holds for
    /// every choice.
    fn part(&mut self, unit: u64) -> u64 {
        self.parts.seek(2 * unit);
        ((u128::from(self.parts.next_u64()) * self.samples.len() as u128) >> 64) as u64
    }
}

impl Pass for CyclicPass {
    fn batch(&mut self, batch: u64) -> Vec<u64> {
        let Some(stream) = self.samples.get_mut(batch as usize) else { return Vec::new() };
        stream.seek(0);
        let sampled = poisson_sample(self.probability, self.population, stream);
        sampled.into_iter().filter(|unit| self.part(*unit) == batch).collect()
    }
}
