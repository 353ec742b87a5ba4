//! The Gaussian mechanism on a clipped sum, and the gradients an optimizer takes.

use mechanisms::{Bounded, GaussianMechanism, PrivacyRng, Purpose, Stream};

use super::ClippedSum;
use super::sum::GradSum;
use crate::nn::{Kernels, NoiseSource};
use crate::tensor::{Tensor, to_host_f64};

/// A gradient that may be released: it got its noise before anything read it.
pub struct PrivateGradient<B: Kernels> {
    parts: Vec<Tensor<B, 1>>,
    noise_std: f64,
}

/// A gradient without privacy. The run that computes it is marked as not private.
pub struct BaselineGradient<B: Kernels>(Vec<Tensor<B, 1>>);

impl<B: Kernels> PrivateGradient<B> {
    /// Flat tensors in the order of the parameters.
    #[must_use]
    pub fn into_parts(self) -> Vec<Tensor<B, 1>> {
        self.parts
    }

    /// Standard deviation of the noise in each element: σC divided by the expected batch size. It is public.
    #[must_use]
    pub fn noise_std(&self) -> f64 {
        self.noise_std
    }

    /// Estimate of ‖gradient‖² / ‖noise‖². It uses the released gradient and the known variance of the noise alone, so it is
    /// post-processing. With n elements its standard error is about √(2/n); the estimate may be below 0.
    #[must_use]
    pub fn to_noise(&self) -> f64 {
        let square = |part: &Tensor<B, 1>| {
            let row: Tensor<B, 2> = part.clone().unsqueeze();
            to_host_f64(B::dots(row.clone(), row))[0]
        };
        let square: f64 = self.parts.iter().map(square).sum();
        let elements: usize = self.parts.iter().map(|part| part.dims()[0]).sum();
        square / (elements as f64 * self.noise_std * self.noise_std) - 1.0
    }
}

impl<B: Kernels> BaselineGradient<B> {
    pub(super) fn mean(sum: GradSum<B>, divisor: f64) -> Self {
        Self(sum.0.into_iter().map(|part| part / divisor).collect())
    }

    /// Flat tensors in the order of the parameters.
    #[must_use]
    pub fn into_parts(self) -> Vec<Tensor<B, 1>> {
        self.0
    }
}

/// The noise of one parameter at one step.
struct GradientNoise<'a, R> {
    rng: &'a R,
    step: u64,
    index: u32,
    std: f64,
}

impl<R: PrivacyRng> GradientNoise<'_, R> {
    fn stream(&self) -> Stream {
        self.rng.stream(Purpose::GradientNoise, self.step, self.index)
    }
}

impl<R: PrivacyRng> NoiseSource for GradientNoise<'_, R> {
    fn fill(&self, first: usize, out: &mut [f32]) {
        let mut stream = self.stream();
        stream.seek(2 * first as u64);
        stream.fill_gaussian_f32(out, self.std);
    }

    fn gaussian(&self) -> Option<([u32; 8], f64)> {
        Some((self.stream().key(), self.std))
    }
}

/// Adds noise to the sum, once, and divides by the expected batch size.
///
/// The noise of parameter t comes from the stream (gradient noise, `step`, t). The host computes it in f64 and rounds it to
/// f32; a graphics processor computes it from the same words. An element's noise depends on its position in the stream, and
/// not on the thread that computes it.
pub(crate) fn add_noise_and_average<B: Kernels>(
    sum: Bounded<ClippedSum<B>>,
    mechanism: &GaussianMechanism,
    expected_batch_size: f64,
    step: u64,
    rng: &impl PrivacyRng,
) -> PrivateGradient<B> {
    let noise_std = mechanism.std(&sum) / expected_batch_size;
    let noisy = mechanism.privatize_with(sum, |sum, std| {
        for (index, part) in sum.sum.0.iter_mut().enumerate() {
            let noise = GradientNoise { rng, step, index: index as u32, std };
            part.inplace(|part| B::add_and_divide(part, &noise, expected_batch_size));
        }
    });
    PrivateGradient { parts: noisy.sum.0, noise_std }
}
