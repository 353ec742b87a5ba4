//! Adaptive clipping: the clip norm follows a quantile of the gradients' norms.
//!
//! # References
//! Andrew et al. 2019, "Differentially private learning with adaptive clipping", <https://arxiv.org/abs/1905.03871>.

use mechanisms::{GaussianMechanism, MechanismError, PrivacyRng, Purpose};
use plan::Adaptive;

use super::{ClippedSum, DpStep};
use crate::nn::Kernels;

/// Range of an adaptive clip norm, so that noise can be scaled by it.
const SMALLEST_CLIP_NORM: f32 = 1e-12;
const LARGEST_CLIP_NORM: f32 = 1e12;

/// Index of the count's noise stream. No parameter has it.
const COUNT_STREAM: u32 = u32::MAX;

/// Releases the noisy count of unclipped gradients. Returns the noise that is left for the gradient and the clip norm of
/// the next step.
///
/// Count and gradient share the step's event: 1/σ² = 1/σ_Δ² + 1/(2σ_b)² (Andrew et al., Theorem 1).
///
/// # Errors
/// If the count's noise leaves nothing for the gradient.
pub(super) fn release_count<B: Kernels>(
    sum: &ClippedSum<B>,
    settings: Adaptive,
    step: &DpStep,
    rng: &impl PrivacyRng,
) -> Result<(GaussianMechanism, Option<f64>), MechanismError> {
    let count_noise = GaussianMechanism::new(2.0 * settings.count_noise * step.expected_batch_size)?;
    let gradient_noise = step.noise.beside(&count_noise)?;
    let mut stream = rng.stream(Purpose::GradientNoise, step.step, COUNT_STREAM);
    let count = count_noise.privatize(sum.unclipped_count()?, &mut stream)[0];
    let unclipped_share = f64::from(count) / step.expected_batch_size + 0.5;
    let next = step.l2_clip_norm * (-settings.learning_rate * (unclipped_share - settings.quantile)).exp();
    // Rounded as the checkpoint stores it, so that a resumed run continues from the same figure.
    let next = (next as f32).clamp(SMALLEST_CLIP_NORM, LARGEST_CLIP_NORM);
    Ok((gradient_noise, Some(f64::from(next))))
}
