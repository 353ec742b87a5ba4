//! Logits of tokens: products with the token table or a table of its own.

use crate::nn::{
    Activation, Kernels, LayerNorm, Linear, ParamId, Pass, Places, TableLogits, Var, gather_some, row, scale,
    soft_cap,
};

/// Predicts tokens.
#[derive(Clone, Copy, Debug)]
pub struct LmHead {
    /// Transformation of the hidden states.
    pub transform: Option<Transform>,
    /// Factor of the hidden states before their products with the table.
    pub scale: Option<f64>,
    /// Products with the rows of a table.
    pub logits: TableLogits,
    /// If c is given, each logit x becomes c·tanh(x / c).
    pub cap: Option<f64>,
}

/// The transformation of BERT: a linear layer, GELU and a norm.
#[derive(Clone, Copy, Debug)]
pub struct Transform {
    /// Linear layer, `[d, d]`.
    pub dense: Linear,
    /// Norm after the GELU.
    pub norm: LayerNorm,
}

impl LmHead {
    /// Creates a head whose logits are products with the rows of a table and nothing else. The
    /// table is tied if it is the token table.
    #[must_use]
    pub fn of_table(table: ParamId) -> Self {
        Self { transform: None, scale: None, logits: TableLogits { table, bias: None }, cap: None }
    }

    /// Returns the logits at every position or at the given ones. In generation, returns those of
    /// the last position.
    ///
    /// # Shapes
    /// - hidden: `[batch, seq, d]`, positions: `[batch, targets]`
    /// - output: `[batch, targets, vocabulary]`
    pub fn forward<B: Kernels>(self, pass: &mut Pass<'_, B>, hidden: Var<B>, positions: Places<B>) -> Var<B> {
        let seq = hidden.dims()[1];
        let mut hidden = match positions {
            None if pass.cache().is_some() && seq > 1 => row(pass, hidden, seq - 1),
            positions => gather_some(pass, hidden, positions),
        };
        if let Some(Transform { dense, norm }) = self.transform {
            hidden = dense.forward(pass, hidden);
            hidden = Activation::Gelu.forward(pass, hidden);
            hidden = norm.forward(pass, hidden);
        }
        if let Some(factor) = self.scale {
            hidden = scale(pass, hidden, factor);
        }
        let logits = self.logits.forward(pass, hidden);
        match self.cap {
            Some(cap) => soft_cap(pass, logits, cap),
            None => logits,
        }
    }
}
