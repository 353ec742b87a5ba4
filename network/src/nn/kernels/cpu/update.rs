//! Sums on a grid and Adam: one pass over the memory of each parameter.

use super::super::portable::{add_rounded, add_truncated_values, piece_length, square_sum_of};
use super::super::{AdamStep, AdamTensors};
use super::math::{vectorized, vectorized_loop};
use super::{close, open, values, values_mut};
use crate::tensor::{Flex, Tensor};

pub fn add_on_grid(part: Tensor<Flex, 1>, unit: f64, sums: &mut [i64]) -> bool {
    let part = open(part);
    let part = values(&part);
    vectorized_loop!([part: &'a [f32], unit: f64, sums: &'a mut [i64]] -> bool { add_rounded(part, unit, sums) })
}

pub fn add_truncated(part: Tensor<Flex, 2>, factor: f64, room: u128, sums: &mut [i64], pitch: usize) -> u128 {
    let columns = part.dims()[1];
    let part = open(part);
    let part = values(&part);
    vectorized_loop!([part: &'a [f32], columns: usize, factor: f64, room: u128, sums: &'a mut [i64], pitch: usize] -> u128 {
        add_truncated_values(part, columns, factor, room, sums, pitch)
    })
}

pub fn square_sum(part: Tensor<Flex, 1>) -> f64 {
    let part = open(part);
    let part = values(&part);
    vectorized_loop!([part: &'a [f32]] -> f64 { square_sum_of(part) })
}

pub fn adam(tensors: AdamTensors<Flex>, grad: Tensor<Flex, 1>, step: &AdamStep) -> AdamTensors<Flex> {
    let AdamTensors { value, first, second } = tensors;
    let [mut value, mut first, mut second, grad] = [value, first, second, grad].map(open);
    let grads = values(&grad);
    let length = piece_length(grads.len());
    std::thread::scope(|scope| {
        let values = values_mut(&mut value).chunks_mut(length);
        let averages =
            values_mut(&mut first).chunks_mut(length).zip(values_mut(&mut second).chunks_mut(length));
        let mut pieces = values
            .zip(averages)
            .zip(grads.chunks(length))
            .map(|((value, (first, second)), grad)| Piece { value, first, second, grad });
        let own = pieces.next();
        pieces.for_each(|piece| drop(scope.spawn(move || piece.step(step))));
        own.into_iter().for_each(|piece| piece.step(step));
    });
    AdamTensors { value: close(value), first: close(first), second: close(second) }
}

/// The part of a parameter that one thread updates.
struct Piece<'a> {
    value: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    grad: &'a [f32],
}

impl Piece<'_> {
    fn step(self, step: &AdamStep) {
        let [beta1, beta2] = step.betas;
        let [fresh1, fresh2] = [(1.0 - beta1) as f32, (1.0 - beta2) as f32];
        let [beta1, beta2] = [beta1 as f32, beta2 as f32];
        let [bias, epsilon, kept, rate] =
            [step.second_bias, step.epsilon, step.kept, step.rate].map(|value| value as f32);
        let noise = step.noise.map(|noise| noise.map(|value| value as f32));
        let Self { value, first, second, grad } = self;
        vectorized(|| {
            for (((value, first), second), grad) in value.iter_mut().zip(first).zip(second).zip(grad) {
                *first = *first * beta1 + grad * fresh1;
                *second = *second * beta2 + grad * grad * fresh2;
                let corrected = *second / bias;
                let scale = match noise {
                    Some([noise, floor]) => (corrected - noise).max(floor).sqrt(),
                    None => corrected.sqrt() + epsilon,
                };
                *value = *value * kept - *first / scale * rate;
            }
        });
    }
}
