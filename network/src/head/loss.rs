//! The loss of an example, as the gradient that its backward pass starts from.

use crate::nn::Kernels;
use crate::tensor::{IndexingUpdateOp, Int, Tensor};

/// The comparison of predictions with targets. The loss of an example is the mean over its targets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// A class among several: the negative log-likelihood of a softmax.
    CrossEntropy {
        /// Share of the target's probability that is spread over all classes, the target included.
        smoothing: f64,
    },
    /// Any number of labels: the negative log-likelihood of a sigmoid for each label, with targets
    /// 0 and 1.
    Binary,
}

impl Loss {
    /// Returns the gradient, with respect to the logits, of the weighted sum of all targets'
    /// losses. It reuses the logits' memory.
    ///
    /// # Shapes
    /// - logits, output: `[batch, n, outputs]`
    /// - targets, weights: `[batch·n]`, or of [`Loss::Binary`] `[batch·n·outputs]`
    pub fn gradient<B: Kernels>(
        self,
        logits: Tensor<B, 3>,
        targets: Tensor<B, 1, Int>,
        weights: Tensor<B, 1>,
    ) -> Tensor<B, 3> {
        let shape @ [batch, n, outputs] = logits.dims();
        match self {
            Self::CrossEntropy { smoothing } => {
                let logits = logits.reshape([batch * n, outputs]);
                let grad = B::cross_entropy_backward(logits, targets.clone(), weights.clone());
                let grad = if smoothing > 0.0 { smoothed(grad, targets, weights, smoothing) } else { grad };
                grad.reshape(shape)
            }
            Self::Binary => {
                let (targets, weights) = (targets.float().reshape(shape), weights.reshape(shape));
                let targets = targets.cast(logits.dtype());
                let probability = (logits.neg().exp() + 1.0).recip();
                (probability - targets) * weights
            }
        }
    }
}

impl Loss {
    /// Cross entropy without smoothing.
    pub const PLAIN: Self = Self::CrossEntropy { smoothing: 0.0 };
}

/// Turns the gradient p − t of a one-hot target t into that of the smoothed target (1 − s)·t + s /
/// classes.
fn smoothed<B: Kernels>(
    grad: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
    weights: Tensor<B, 1>,
    smoothing: f64,
) -> Tensor<B, 2> {
    let [rows, classes] = grad.dims();
    let weights = (weights * smoothing).reshape([rows, 1]);
    let spread = grad - weights.clone() / classes as f64;
    spread.scatter(1, targets.reshape([rows, 1]), weights, IndexingUpdateOp::Add)
}
