//! Token and position embeddings.

use crate::nn::GradRecord;
use crate::nn::{Kernels, ParamId, Weights};
use crate::tensor::{Int, Tensor};

/// Rows of a table, by token.
#[derive(Clone, Copy, Debug)]
pub struct TokenEmbedding {
    /// `[vocabulary, d]`
    pub table: ParamId,
}

impl TokenEmbedding {
    /// Looks the tokens up. The record is made where the table's other use, the head, is known.
    ///
    /// # Shapes
    /// - tokens: `[batch, seq]`
    /// - output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(&self, weights: &Weights<B>, tokens: Tensor<B, 2, Int>) -> Tensor<B, 3> {
        let [batch, seq] = tokens.dims();
        let table = weights.matrix(self.table);
        let d = table.dims()[1];
        table.select(0, tokens.reshape([batch * seq])).reshape([batch, seq, d])
    }
}

/// A learned vector for each position.
#[derive(Clone, Copy, Debug)]
pub struct PositionEmbedding {
    /// `[context, d]`
    pub table: ParamId,
}

impl PositionEmbedding {
    /// The vectors of positions 0..seq, to be added to every example.
    ///
    /// # Shapes
    /// - output: `[1, seq, d]`
    pub fn forward<B: Kernels>(&self, weights: &Weights<B>, seq: usize) -> Tensor<B, 3> {
        weights.matrix(self.table).narrow(0, 0, seq).unsqueeze()
    }

    /// The record: each example's gradient of the table is the gradient of the sum itself.
    ///
    /// # Shapes
    /// - grad: `[batch, context, d]`
    pub fn record<B: Kernels>(&self, grad: &Tensor<B, 3>) -> GradRecord<B> {
        let [batch, context, d] = grad.dims();
        GradRecord::Explicit { param: self.table, grads: grad.clone().reshape([batch, context * d]) }
    }
}
