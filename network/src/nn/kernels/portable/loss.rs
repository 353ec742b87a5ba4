//! Negative log-likelihood and its gradient.

use crate::tensor::{Backend, IndexingUpdateOp, Int, Tensor, activation};

pub fn token_nll<B: Backend>(logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>) -> Tensor<B, 1> {
    let rows = logits.dims()[0];
    activation::log_softmax(logits, 1).gather(1, targets.unsqueeze_dim(1)).reshape([rows]).neg()
}

pub fn cross_entropy_backward<B: Backend>(
    logits: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
    weights: Tensor<B, 1>,
) -> Tensor<B, 2> {
    let weights: Tensor<B, 2> = weights.unsqueeze_dim(1);
    let grad = activation::softmax(logits, 1) * weights.clone();
    grad.scatter(1, targets.unsqueeze_dim(1), weights.neg(), IndexingUpdateOp::Add)
}
