//! Operations that a backend may fuse. The definitions here are the meaning; an override must agree with them.

use crate::tensor::{Backend, IndexingUpdateOp, Int, Tensor, activation};

const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
const GELU_CUBIC: f64 = 0.044_715;

/// A Burn backend with the fused operations of the layers.
pub trait Kernels: Backend {
    /// How many micro-batches may be worked on at a time. The result does not depend on it.
    fn workers() -> usize {
        1
    }

    /// Product and bias.
    ///
    /// # Shapes
    /// - input: `[rows, d_in]`, weight: `[d_in, d_out]`, bias: `[d_out]`
    /// - output: `[rows, d_out]`
    fn affine(input: Tensor<Self, 2>, weight: Tensor<Self, 2>, bias: Tensor<Self, 1>) -> Tensor<Self, 2> {
        input.matmul(weight) + bias.unsqueeze()
    }

    /// Rows brought to mean 0 and variance 1, then scaled and shifted.
    ///
    /// # Shapes
    /// - input: `[rows, d]`, gain, bias: `[d]`
    /// - output: (output `[rows, d]`, normalized `[rows, d]`, reciprocal deviation `[rows, 1]`)
    fn normalize(
        input: Tensor<Self, 2>,
        gain: Tensor<Self, 1>,
        bias: Tensor<Self, 1>,
        epsilon: f64,
    ) -> (Tensor<Self, 2>, Tensor<Self, 2>, Tensor<Self, 2>) {
        let centered = input.clone() - input.mean_dim(1);
        let variance = centered.clone().square().mean_dim(1);
        let reciprocal = (variance + epsilon).sqrt().recip();
        let normalized = centered * reciprocal.clone();
        let output = normalized.clone() * gain.unsqueeze() + bias.unsqueeze();
        (output, normalized, reciprocal)
    }

    /// Input gradient of [`Kernels::normalize`].
    ///
    /// # Shapes
    /// - grad, normalized: `[rows, d]`, reciprocal: `[rows, 1]`, gain: `[d]`
    /// - output: `[rows, d]`
    fn normalize_backward(
        grad: Tensor<Self, 2>,
        normalized: Tensor<Self, 2>,
        reciprocal: Tensor<Self, 2>,
        gain: Tensor<Self, 1>,
    ) -> Tensor<Self, 2> {
        let inner = grad * gain.unsqueeze();
        let mean = inner.clone().mean_dim(1);
        let along = (inner.clone() * normalized.clone()).mean_dim(1);
        (inner - mean - normalized * along) * reciprocal
    }

    /// GELU in its tanh form ("gelu_new").
    ///
    /// # Shapes
    /// - input, output: `[rows, d]`
    fn gelu_new(input: Tensor<Self, 2>) -> Tensor<Self, 2> {
        let inner = (input.clone() + input.clone().powi_scalar(3) * GELU_CUBIC) * SQRT_2_OVER_PI;
        input * (inner.tanh() + 1.0) * 0.5
    }

    /// Input gradient of [`Kernels::gelu_new`].
    ///
    /// # Shapes
    /// - input, grad, output: `[rows, d]`
    fn gelu_new_backward(input: Tensor<Self, 2>, grad: Tensor<Self, 2>) -> Tensor<Self, 2> {
        let square = input.clone().square();
        let inner = input.clone() * (square.clone() * GELU_CUBIC + 1.0) * SQRT_2_OVER_PI;
        let tanh = inner.tanh();
        let slope = (square * (3.0 * GELU_CUBIC) + 1.0) * SQRT_2_OVER_PI;
        let derivative = (tanh.clone() + 1.0) * 0.5 + input * 0.5 * (tanh.square() * (-1.0) + 1.0) * slope;
        grad * derivative
    }

    /// Softmax over the keys up to each query, of scores times `scale`.
    ///
    /// # Shapes
    /// - scores, output: `[batch, heads, queries, keys]` with queries = keys
    fn causal_softmax(scores: Tensor<Self, 4>, scale: f64) -> Tensor<Self, 4> {
        let [_, _, queries, keys] = scores.dims();
        let device = scores.device();
        let future = Tensor::<Self, 2, Int>::ones([queries, keys], &device).triu(1).equal_elem(1);
        let masked = (scores * scale).mask_fill(future.unsqueeze(), f32::NEG_INFINITY);
        activation::softmax(masked, 3)
    }

    /// Gradient of the scores of [`Kernels::causal_softmax`].
    ///
    /// # Shapes
    /// - probabilities, grad, output: `[batch, heads, queries, keys]`
    fn softmax_backward(
        probabilities: Tensor<Self, 4>,
        grad: Tensor<Self, 4>,
        scale: f64,
    ) -> Tensor<Self, 4> {
        let along = (probabilities.clone() * grad.clone()).sum_dim(3);
        (grad - along) * probabilities * scale
    }

    /// Negative log-likelihood of each target, in nats.
    ///
    /// # Shapes
    /// - logits: `[rows, vocabulary]`, targets: `[rows]`
    /// - output: `[rows]`
    fn token_nll(logits: Tensor<Self, 2>, targets: Tensor<Self, 1, Int>) -> Tensor<Self, 1> {
        let rows = logits.dims()[0];
        activation::log_softmax(logits, 1).gather(1, targets.unsqueeze_dim(1)).reshape([rows]).neg()
    }

    /// Gradient of the weighted sum of the rows' negative log-likelihoods by the logits.
    ///
    /// # Shapes
    /// - logits, output: `[rows, vocabulary]`, targets, weights: `[rows]`
    fn cross_entropy_backward(
        logits: Tensor<Self, 2>,
        targets: Tensor<Self, 1, Int>,
        weights: Tensor<Self, 1>,
    ) -> Tensor<Self, 2> {
        let weights: Tensor<Self, 2> = weights.unsqueeze_dim(1);
        let grad = activation::softmax(logits, 1) * weights.clone();
        grad.scatter(1, targets.unsqueeze_dim(1), weights.neg(), IndexingUpdateOp::Add)
    }
}
