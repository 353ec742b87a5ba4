//! Logits of tags of words.

use crate::nn::{Kernels, Linear, Pass, Var, dropout, gather_some};
use crate::tensor::{Int, Tensor};

/// Predicts the tag of each word from the hidden state of its first piece.
#[derive(Clone, Copy, Debug)]
pub struct TokenHead {
    /// From d to the number of tags.
    pub tags: Linear,
}

impl TokenHead {
    /// Logits at the given positions, or at each.
    ///
    /// # Shapes
    /// - hidden: `[batch, seq, d]`, positions: `[batch, words]`
    /// - output: `[batch, words, tags]`
    pub fn forward<B: Kernels>(
        self,
        pass: &mut Pass<'_, B>,
        hidden: Var<B>,
        positions: Option<Tensor<B, 2, Int>>,
    ) -> Var<B> {
        let hidden = gather_some(pass, hidden, positions);
        let hidden = dropout(pass, hidden);
        self.tags.forward(pass, hidden)
    }
}
