//! The Gaussian mechanism on a clipped sum, and the gradients an optimizer takes.

use mechanisms::{Bounded, GaussianMechanism, PrivacyRng, Purpose};

use super::ClippedSum;
use crate::layer::Kernels;
use crate::tensor::{Tensor, from_host};

/// A gradient that may be released: noise was added before anything read it.
pub struct PrivateGradient<B: Kernels>(Vec<Tensor<B, 1>>);

/// A gradient without privacy, for baselines. A run that makes one is marked by its caller.
pub struct BaselineGradient<B: Kernels>(Vec<Tensor<B, 1>>);

impl<B: Kernels> PrivateGradient<B> {
    /// Flat tensors in the order of the parameters.
    #[must_use]
    pub fn into_parts(self) -> Vec<Tensor<B, 1>> {
        self.0
    }
}

impl<B: Kernels> BaselineGradient<B> {
    pub(super) fn mean(sum: ClippedSum<B>, divisor: f64) -> Self {
        Self(sum.parts.into_iter().map(|part| part / divisor).collect())
    }

    /// Flat tensors in the order of the parameters.
    #[must_use]
    pub fn into_parts(self) -> Vec<Tensor<B, 1>> {
        self.0
    }
}

/// Adds noise to the sum once, then divides by the plan's constant.
///
/// Noise of parameter t comes from the stream (gradient noise, `step`, t), drawn on the host in f64 and rounded to f32.
pub fn privatize<B: Kernels>(
    sum: Bounded<ClippedSum<B>>,
    mechanism: &GaussianMechanism,
    expected_batch_size: f64,
    step: u64,
    rng: &impl PrivacyRng,
) -> PrivateGradient<B> {
    let noisy = mechanism.privatize_with(sum, |sum, std| {
        for (index, part) in sum.parts.iter_mut().enumerate() {
            let len = part.dims()[0];
            let mut noise = vec![0.0; len];
            rng.stream(Purpose::GradientNoise, step, index as u32).fill_gaussian_f32(&mut noise, std);
            let device = part.device();
            let dtype = part.dtype().into();
            part.inplace(|part| part + from_host(noise, [len], dtype, &device));
        }
    });
    PrivateGradient(noisy.parts.into_iter().map(|part| part / expected_batch_size).collect())
}
