//! What happens once a lot to every parameter, each in one pass over its memory by all cores.

use super::rows::vectorized;
use crate::nn::kernels::portable::{in_pieces, share};
use crate::nn::{AdamStep, NoiseSource};

/// Elements whose noise is drawn at a time: it stays in the cache until it is added.
const BLOCK: usize = 8192;

/// `values` become (values + noise) / divisor, NaN where the source leaves one out.
pub fn add_and_divide(values: &mut [f32], noise: &dyn NoiseSource, divisor: f32) {
    in_pieces(values, |first, values| {
        let mut block = vec![0.0; BLOCK.min(values.len())];
        for (at, values) in values.chunks_mut(BLOCK).enumerate() {
            let drawn = &mut block[..values.len()];
            drawn.fill(f32::NAN);
            noise.fill(first + at * BLOCK, drawn);
            vectorized(|| {
                for (value, noise) in values.iter_mut().zip(drawn) {
                    *value = (*value + *noise) / divisor;
                }
            });
        }
    });
}

/// Moves weights and both averages, each of the gradient's length.
pub fn adam([value, first, second]: [&mut [f32]; 3], grad: &[f32], step: &AdamStep) {
    let share = share(grad.len());
    std::thread::scope(|scope| {
        let moving = value.chunks_mut(share).zip(first.chunks_mut(share)).zip(second.chunks_mut(share));
        let mut pieces = moving
            .zip(grad.chunks(share))
            .map(|(((value, first), second), grad)| ([value, first, second], grad));
        let own = pieces.next();
        pieces.for_each(|(moving, grad)| drop(scope.spawn(move || adam_piece(moving, grad, step))));
        own.into_iter().for_each(|(moving, grad)| adam_piece(moving, grad, step));
    });
}

fn adam_piece([value, first, second]: [&mut [f32]; 3], grad: &[f32], step: &AdamStep) {
    let [beta1, beta2] = step.betas;
    let [fresh1, fresh2] = [(1.0 - beta1) as f32, (1.0 - beta2) as f32];
    let [beta1, beta2] = [beta1 as f32, beta2 as f32];
    let [bias, epsilon, kept, rate] =
        [step.second_bias, step.epsilon, step.kept, step.rate].map(|value| value as f32);
    let noise = step.noise.map(|noise| noise.map(|value| value as f32));
    vectorized(|| {
        for (((value, first), second), grad) in value.iter_mut().zip(first).zip(second).zip(grad) {
            *first = *first * beta1 + grad * fresh1;
            *second = *second * beta2 + grad * grad * fresh2;
            let size = *second / bias;
            let scale = match noise {
                Some([noise, floor]) => (size - noise).max(floor).sqrt(),
                None => size.sqrt() + epsilon,
            };
            *value = *value * kept - *first / scale * rate;
        }
    });
}
