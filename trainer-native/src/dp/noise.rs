//! The Gaussian mechanism on a clipped sum, and the gradients an optimizer takes.

use std::sync::Mutex;

use mechanisms::{Bounded, GaussianMechanism, PrivacyRng, Purpose, Stream};

use super::ClippedSum;
use crate::layer::Kernels;
use crate::tensor::{Tensor, to_host_f64};

/// A gradient that may be released: noise was added before anything read it.
pub struct PrivateGradient<B: Kernels> {
    parts: Vec<Tensor<B, 1>>,
    noise_std: f64,
}

/// A gradient without privacy, for baselines. A run that makes one is marked by its caller.
pub struct BaselineGradient<B: Kernels>(Vec<Tensor<B, 1>>);

impl<B: Kernels> PrivateGradient<B> {
    /// Flat tensors in the order of the parameters.
    #[must_use]
    pub fn into_parts(self) -> Vec<Tensor<B, 1>> {
        self.parts
    }

    /// Standard deviation of the noise in each element: σC over the expected batch size. It follows from the plan.
    #[must_use]
    pub fn noise_std(&self) -> f64 {
        self.noise_std
    }

    /// Estimate of ‖gradient‖² / ‖noise‖², from the released gradient and the noise's known variance alone, so
    /// post-processing. Of n elements, with a standard error of about √(2/n); it may be below 0.
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
    let noise_std = mechanism.std(&sum) / expected_batch_size;
    let noisy = mechanism.privatize_with(sum, |sum, std| {
        let stream = |index| rng.stream(Purpose::GradientNoise, step, index as u32);
        let lengths = sum.parts.iter().map(|part| part.dims()[0]);
        let slots = lengths.enumerate().map(|(index, length)| (stream(index), vec![0.0; length])).collect();
        for (part, noise) in sum.parts.iter_mut().zip(draw(slots, std)) {
            part.inplace(|part| B::add_and_divide(part, noise, expected_batch_size));
        }
    });
    PrivateGradient { parts: noisy.parts, noise_std }
}

/// Fills each slot from its own stream, several at a time: which thread fills it makes no difference.
fn draw(mut slots: Vec<(Stream, Vec<f32>)>, std: f64) -> Vec<Vec<f32>> {
    let queue = Mutex::new(slots.iter_mut());
    // A poisoned lock means that a thread panicked; the scope passes that panic on.
    let next = || queue.lock().ok().and_then(|mut slots| slots.next());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((stream, noise)) = next() {
                    stream.fill_gaussian_f32(noise, std);
                }
            });
        }
    });
    slots.into_iter().map(|(_, noise)| noise).collect()
}
