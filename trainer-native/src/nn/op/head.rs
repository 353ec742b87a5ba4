//! The output head that shares the token table, and its loss.

use crate::nn::{Kernels, ParamId, Weights};
use crate::tensor::{Int, Tensor};

/// Logits as products with the rows of the token table.
#[derive(Clone, Copy, Debug)]
pub struct LmHead {
    /// `[vocabulary, d]`
    pub table: ParamId,
}

/// Gradients of a batch's summed loss at the head.
pub struct HeadLoss<B: Kernels> {
    /// `[batch, seq, d]`
    pub hidden_grad: Tensor<B, 3>,
    /// `[batch, seq, vocabulary]`
    pub logits_grad: Tensor<B, 3>,
}

impl LmHead {
    /// Logits.
    ///
    /// # Shapes
    /// - hidden: `[batch, seq, d]`
    /// - output: `[batch·seq, vocabulary]`
    pub fn forward<B: Kernels>(&self, weights: &Weights<B>, hidden: Tensor<B, 3>) -> Tensor<B, 2> {
        let [batch, seq, d] = hidden.dims();
        weights.product(hidden.reshape([batch * seq, d]), weights.matrix(self.table).transpose())
    }

    /// Backward through cross-entropy and the product at once; the logits' memory is reused for their gradient.
    ///
    /// # Shapes
    /// - logits: `[batch·seq, vocabulary]`, targets, target_weights: `[batch, seq]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        logits: Tensor<B, 2>,
        targets: Tensor<B, 2, Int>,
        target_weights: Tensor<B, 2>,
    ) -> HeadLoss<B> {
        let [batch, seq] = targets.dims();
        let rows = [batch * seq];
        let grad = B::cross_entropy_backward(logits, targets.reshape(rows), target_weights.reshape(rows));
        let vocabulary = grad.dims()[1];
        let hidden_grad = weights.product(grad.clone(), weights.matrix(self.table));
        let d = hidden_grad.dims()[1];
        HeadLoss {
            hidden_grad: hidden_grad.reshape([batch, seq, d]),
            logits_grad: grad.reshape([batch, seq, vocabulary]),
        }
    }
}
