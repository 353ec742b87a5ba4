//! The concatenation of each position's recent rows.

use super::math::vectorized_loop;
use super::{close, open, values, values_mut, zeros};
use crate::tensor::{Flex, Tensor};

pub fn context_concat(rows: Tensor<Flex, 3>, length: usize) -> Tensor<Flex, 3> {
    let [batch, seq, d] = rows.dims();
    let (rows, mut output) = (open(rows), zeros([batch, seq, length * d]));
    let examples = values(&rows).chunks_exact(seq * d);
    for (example, output) in examples.zip(values_mut(&mut output).chunks_exact_mut(seq * length * d)) {
        for (position, context) in output.chunks_exact_mut(length * d).enumerate() {
            let known = length.min(position + 1);
            context[(length - known) * d..]
                .copy_from_slice(&example[(position + 1 - known) * d..(position + 1) * d]);
        }
    }
    close(output)
}

pub fn context_concat_backward(grad: Tensor<Flex, 3>, length: usize) -> Tensor<Flex, 3> {
    let [batch, seq, width] = grad.dims();
    let d = width / length;
    let (grad, mut output) = (open(grad), zeros([batch, seq, d]));
    let (grads, outputs) = (values(&grad), values_mut(&mut output));
    vectorized_loop!([grads: &'a [f32], outputs: &'a mut [f32], length: usize, seq: usize, width: usize, d: usize] {
        for (grad, output) in grads.chunks_exact(seq * width).zip(outputs.chunks_exact_mut(seq * d)) {
            for (position, context) in grad.chunks_exact(width).enumerate() {
                let known = length.min(position + 1);
                let rows = &mut output[(position + 1 - known) * d..(position + 1) * d];
                for (sum, grad) in rows.iter_mut().zip(&context[(length - known) * d..]) {
                    *sum += grad;
                }
            }
        }
    });
    close(output)
}
