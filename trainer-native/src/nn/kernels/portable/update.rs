//! Noise and Adam, once per step for each parameter.

use super::super::{AdamStep, AdamTensors, NoiseSource};
use crate::tensor::{Backend, Tensor, from_host};

pub(crate) fn add_and_divide<B: Backend>(
    values: Tensor<B, 1>,
    noise: &dyn NoiseSource,
    divisor: f64,
) -> Tensor<B, 1> {
    let (device, dtype, length) = (values.device(), values.dtype().into(), values.dims()[0]);
    let mut drawn = vec![f32::NAN; length];
    in_pieces(&mut drawn, |first, piece| noise.fill(first, piece));
    (values + from_host(drawn, [length], dtype, &device)) / divisor
}

pub(crate) fn adam<B: Backend>(
    tensors: AdamTensors<B>,
    grad: Tensor<B, 1>,
    step: &AdamStep,
) -> AdamTensors<B> {
    let [beta1, beta2] = step.betas;
    let first = tensors.first * beta1 + grad.clone() * (1.0 - beta1);
    let second = tensors.second * beta2 + grad.square() * (1.0 - beta2);
    let corrected = second.clone() / step.second_bias;
    let scale = match step.noise {
        Some([noise, floor]) => (corrected - noise).clamp_min(floor).sqrt(),
        None => corrected.sqrt() + step.epsilon,
    };
    AdamTensors { value: tensors.value * step.kept - first.clone() / scale * step.rate, first, second }
}

/// Fewer elements are not worth a thread.
const LEAST_PIECE: usize = 1 << 16;

/// Elements of each core's piece. Even, because noise is drawn in pairs.
pub(crate) fn piece_length(length: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    length.div_ceil(cores).max(LEAST_PIECE).next_multiple_of(2)
}

/// Splits `values` into one piece per core. `work` gets the index of a piece's first element, and the piece.
pub(crate) fn in_pieces(values: &mut [f32], work: impl Fn(usize, &mut [f32]) + Sync) {
    let (length, work) = (piece_length(values.len()), &work);
    std::thread::scope(|scope| {
        let mut pieces = values.chunks_mut(length).enumerate();
        let own = pieces.next();
        pieces.for_each(|(at, piece)| drop(scope.spawn(move || work(at * length, piece))));
        own.into_iter().for_each(|(_, piece)| work(0, piece));
    });
}
