//! The feed-forward part of a block, plain or gated.

use super::{Activation, Gate, Linear, dropout};
use crate::nn::{ForwardPass, Kernels, Var};

/// `W_narrow·f(W_widen·x)`
#[derive(Clone, Copy, Debug)]
pub struct FeedForward {
    /// Linear layer from d to d_ff.
    pub widen: Linear,
    /// Linear layer from d_ff to d.
    pub narrow: Linear,
    /// Activation between the two.
    pub activation: Activation,
    /// Whether dropout follows the activation, as in T5.
    pub drops_activations: bool,
}

impl FeedForward {
    /// Applies `widen`, the activation and `narrow`.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let widened = self.widen.forward(pass, input);
        let mut activated = self.activation.forward(pass, widened);
        if self.drops_activations {
            activated = dropout(pass, activated);
        }
        self.narrow.forward(pass, activated)
    }
}

/// `W_down·(f(W_gate·x) ∘ W_up·x)`
///
/// # References
/// Shazeer 2020, <https://arxiv.org/abs/2002.05202>.
#[derive(Clone, Copy, Debug)]
pub struct GatedFeedForward {
    /// Linear layer from d to d_ff.
    pub gate: Linear,
    /// Linear layer from d to d_ff.
    pub up: Linear,
    /// Linear layer from d_ff to d.
    pub down: Linear,
    /// The activation f and the product.
    pub activation: Gate,
    /// Whether dropout follows the product, as in T5.
    pub drops_activations: bool,
}

/// A [`GatedFeedForward`] with one projection for gate and up.
#[derive(Clone, Copy, Debug)]
pub struct FusedGatedFeedForward {
    /// Linear layer from d to 2·d_ff: gate, then up.
    pub gate_up: Linear,
    /// Linear layer from d_ff to d.
    pub down: Linear,
    /// The activation f and the product.
    pub activation: Gate,
}

impl FusedGatedFeedForward {
    /// Applies `gate_up`, the gated product and `down`.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let both = self.gate_up.forward(pass, input);
        let product = self.activation.of_both(pass, both);
        self.down.forward(pass, product)
    }
}

/// A feed-forward part with or without a gate, for a family that has both versions.
#[derive(Clone, Copy, Debug)]
pub enum MaybeGated {
    /// A feed-forward part without a gate.
    Plain(FeedForward),
    /// A feed-forward part with a gate.
    Gated(GatedFeedForward),
}

impl MaybeGated {
    /// Applies the part, with or without a gate.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        match self {
            Self::Plain(part) => part.forward(pass, input),
            Self::Gated(part) => part.forward(pass, input),
        }
    }
}

impl GatedFeedForward {
    /// Applies `gate` and `up`, the gated product and `down`.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let up = self.up.forward(pass, input.clone());
        let gate = self.gate.forward(pass, input);
        let mut product = self.activation.forward(pass, gate, up);
        if self.drops_activations {
            product = dropout(pass, product);
        }
        self.down.forward(pass, product)
    }
}
