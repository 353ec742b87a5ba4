//! The loss of an example, as the gradient that its backward pass starts from.

use crate::nn::Kernels;
use crate::tensor::{Int, Tensor};

/// How predictions are held against targets. The loss of an example is the mean over its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// One class of several: the negative log-likelihood of a softmax.
    CrossEntropy,
    /// Any number of labels: the negative log-likelihood of a sigmoid for each, with targets 0 and 1.
    Binary,
}

impl Loss {
    /// Gradient by the logits of the weighted sum of the losses of all targets. It takes the logits' memory.
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
            Self::CrossEntropy => {
                B::cross_entropy_backward(logits.reshape([batch * n, outputs]), targets, weights)
                    .reshape(shape)
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
