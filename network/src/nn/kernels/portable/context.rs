//! The concatenation of each position's recent rows.

use crate::tensor::{Backend, Tensor};

pub fn context_concat<B: Backend>(values: Tensor<B, 3>, length: usize) -> Tensor<B, 3> {
    let [batch, seq, d] = values.dims();
    let zeros = Tensor::zeros([batch, length - 1, d], (&values.device(), values.dtype()));
    let padded = Tensor::cat(vec![zeros, values], 1);
    Tensor::cat((0..length).map(|place| padded.clone().narrow(1, place, seq)).collect(), 2)
}

pub fn context_concat_backward<B: Backend>(grad: Tensor<B, 3>, length: usize) -> Tensor<B, 3> {
    let [batch, seq, width] = grad.dims();
    let d = width / length;
    let padding = Tensor::zeros([batch, length - 1, width], (&grad.device(), grad.dtype()));
    let padded = Tensor::cat(vec![grad, padding], 1);
    let grads_at = |place: usize| padded.clone().narrow(2, place * d, d).narrow(1, length - 1 - place, seq);
    (1..length).fold(grads_at(0), |sum, place| sum + grads_at(place))
}
