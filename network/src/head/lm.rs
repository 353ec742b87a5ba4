//! Logits of tokens: products with the token table or a table of its own.

use crate::nn::{
    Activation, Kernels, LayerNorm, Linear, ParamId, Pass, Places, TableLogits, Var, gather_some, row, scale,
    soft_cap,
};

/// Predicts tokens.
#[derive(Clone, Copy, Debug)]
pub struct LmHead {
    /// Applied first.
    pub transform: Option<Transform>,
    /// Factor of what the table multiplies.
    pub scale: Option<f64>,
    /// Products with a table.
    pub logits: TableLogits,
    /// Logits become cap·tanh(logit / cap).
    pub cap: Option<f64>,
}

/// BERT's: a linear layer, GELU and a norm.
#[derive(Clone, Copy, Debug)]
pub struct Transform {
    /// From d to d.
    pub dense: Linear,
    /// After the GELU.
    pub norm: LayerNorm,
}

impl LmHead {
    /// Logits as products with the rows of a table and nothing else. The table is tied if it is the token table.
    #[must_use]
    pub fn of_table(table: ParamId) -> Self {
        Self { transform: None, scale: None, logits: TableLogits { table, bias: None }, cap: None }
    }

    /// Logits at every position, or at the given ones; in generation at the last.
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
