//! Logits of tags of words.

use super::LABELS_STD;
use crate::nn::{ForwardPass, Kernels, Linear, LinearSpec, ParamList, Places, Var, dropout, gather_some};

/// Predicts the tag of each word from the hidden state of its first piece.
#[derive(Clone, Copy, Debug)]
pub struct TokenHead {
    /// Linear layer from d to the number of tags.
    pub tags: Linear,
}

impl TokenHead {
    /// Creates a head under this name, with the initial values of `transformers`, and adds its
    /// parameters to `list`.
    pub fn new(list: &mut ParamList, name: &str, d: usize, tags: usize) -> Self {
        Self { tags: list.linear(name, LinearSpec::normal(d, tags, LABELS_STD).biased()) }
    }

    /// Returns the logits at the given positions, or at every position.
    ///
    /// # Shapes
    /// - hidden: `[batch, seq, d]`, positions: `[batch, words]`
    /// - output: `[batch, words, tags]`
    pub fn forward<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        hidden: Var<B>,
        positions: Places<B>,
    ) -> Var<B> {
        let hidden = gather_some(pass, hidden, positions);
        let hidden = dropout(pass, hidden);
        self.tags.forward(pass, hidden)
    }
}
