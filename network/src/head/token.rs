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
        let features = self.features(pass, hidden, positions);
        self.classify(pass, features)
    }

    /// Returns what the head reads of the hidden states. No parameter of the head is used.
    ///
    /// # Shapes
    /// - hidden: `[batch, seq, d]`, positions: `[batch, words]`
    /// - output: `[batch, words, d]`
    pub fn features<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        hidden: Var<B>,
        positions: Places<B>,
    ) -> Var<B> {
        gather_some(pass, hidden, positions)
    }

    /// Returns the logits of the tags from the head's features.
    ///
    /// # Shapes
    /// - features: `[batch, words, d]`, as [`Self::features`] returns them
    /// - output: `[batch, words, tags]`
    pub fn classify<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, features: Var<B>) -> Var<B> {
        let features = dropout(pass, features);
        self.tags.forward(pass, features)
    }
}
