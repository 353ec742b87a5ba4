//! Products as parts that threads share.

use super::matrix::Matrix;
use super::threads::{available, in_parallel};
use super::{close, open, zeros};
use crate::tensor::{Flex, FlexTensor, Tensor};

/// Multiplications from which further threads save more than they cost.
pub const WORTH_THREADS: usize = 1 << 25;

/// Whether several threads compute one matrix of this product.
pub fn is_shared(m: usize, k: usize, n: usize) -> bool {
    m * k * n >= WORTH_THREADS
}

/// Computes the product of a batch of matrices and others of n columns as products of some rows of a matrix. `multiply` gets the rows, the
/// number of their matrix, and their part of the output.
pub fn in_parts<const D: usize>(
    a: &FlexTensor,
    n: usize,
    multiply: impl Fn(&Matrix<'_>, usize, &mut [f32]) + Sync,
) -> Tensor<Flex, D> {
    let mut shape: [usize; D] = std::array::from_fn(|axis| a.layout().shape()[axis]);
    let (m, k) = (shape[D - 2], shape[D - 1]);
    let matrices = shape[..D - 2].iter().product::<usize>();
    shape[D - 1] = n;
    let mut output = zeros(shape);
    let out = output.storage_mut::<f32>();
    if !out.is_empty() {
        let threads = if out.len() * k < WORTH_THREADS { 1 } else { available() };
        let height = if is_shared(m, k, n) { m.div_ceil(threads.div_ceil(matrices)) } else { m };
        let parts: Vec<&mut [f32]> =
            out.chunks_exact_mut(m * n).flat_map(|out| out.chunks_mut(height * n)).collect();
        let in_each = m.div_ceil(height);
        in_parallel(threads, parts, |at, out| {
            let (matrix, first) = (at / in_each, at % in_each * height);
            let rows = first..first + out.len() / n;
            multiply(&Matrix::of(a, matrix).rows(rows), matrix, out);
        });
    }
    close(output)
}

/// Returns the tensor with strides that are not negative.
pub fn positive<const D: usize>(tensor: Tensor<Flex, D>) -> FlexTensor {
    let view = tensor.clone().into_primitive().tensor();
    if view.layout().has_positive_strides() { view } else { open(tensor) }
}
