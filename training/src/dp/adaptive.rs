//! Adaptive clipping: the clip norm follows a quantile of the gradients' norms.
//!
//! # References
//! Andrew et al. 2019, "Differentially private learning with adaptive clipping", <https://arxiv.org/abs/1905.03871>.

use mechanisms::{GaussianMechanism, MechanismError, PrivacyRng, Purpose};
use plan::Adaptive;

use super::ClippedSum;

/// Range of an adaptive clip norm. It ensures that noise can be scaled by the norm.
const MIN_CLIP_NORM: f32 = 1e-12;
const MAX_CLIP_NORM: f32 = 1e12;

/// Index of the count's noise stream, which no parameter has.
const COUNT_STREAM: u32 = u32::MAX;

/// The noisy count of unclipped gradients, and the clip norm that follows from it.
///
/// Count and gradient share the step's event: 1/σ² = 1/σ_Δ² + 1/(2σ_b)² (Andrew et al., Theorem 1).
/// [`CountRelease::noise`] uses one part of this budget, and the gradient's noise the other.
pub(super) struct CountRelease {
    settings: Adaptive,
    noise: GaussianMechanism,
    expected_batch_size: f64,
}

impl CountRelease {
    /// # Errors
    /// For noise that is not a finite number above 0.
    pub fn new(settings: Adaptive, expected_batch_size: f64) -> Result<Self, MechanismError> {
        let noise = GaussianMechanism::new(2.0 * settings.count_noise * expected_batch_size)?;
        Ok(Self { settings, noise, expected_batch_size })
    }

    /// Returns the noise of the count, in units of the change that one example causes.
    pub fn noise(&self) -> &GaussianMechanism {
        &self.noise
    }

    /// Releases the count of `sum`, the sum of step `step`. Returns the clip norm of the next step.
    ///
    /// # Errors
    /// For noise beyond the range of integers.
    pub(crate) fn next_clip_norm(
        self,
        sum: &ClippedSum,
        step: u64,
        rng: &dyn PrivacyRng,
    ) -> Result<f64, MechanismError> {
        let mut stream = rng.stream(Purpose::GradientNoise, step, COUNT_STREAM);
        let halves = self.noise.privatize(sum.unclipped_halves()?, &mut stream)?;
        let unclipped_share = 0.5 * halves / self.expected_batch_size + 0.5;
        let Adaptive { learning_rate, quantile, .. } = self.settings;
        let next = sum.l2_clip_norm * (-learning_rate * (unclipped_share - quantile)).exp();
        // Rounded as the checkpoint stores it, so that a resumed run continues from the same figure.
        Ok(f64::from((next as f32).clamp(MIN_CLIP_NORM, MAX_CLIP_NORM)))
    }
}
