//! Logits of tokens: products with the token table or a table of its own.

use crate::nn::{
    Activation, ForwardPass, Kernels, LayerNorm, Linear, ParamId, Places, TableLogits, Var, gather_some, row,
    scale, soft_cap,
};

/// A parameter through which all hidden states that the head reads can get one common component. With it, rows of the
/// table can act as a bias of the logits.
#[derive(Clone, Copy, Debug)]
pub enum Common {
    /// The bias of the norm before the head, `[d]`.
    NormBias(ParamId),
    /// The token table, `[vocabulary, d]`, of a model with RMS norms.
    TokenTable(ParamId),
}

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
    /// The parameter that makes up for a bias of the logits in a head without one.
    pub common: Option<Common>,
}

/// The transformation of BERT: a linear layer, GELU and a norm.
#[derive(Clone, Copy, Debug)]
pub struct Transform {
    /// Linear layer from d to the width of the table.
    pub dense: Linear,
    /// Norm after the GELU.
    pub norm: LayerNorm,
}

impl LmHead {
    /// Creates a head whose logits are products with the rows of a table and nothing else. The
    /// table is tied if it is the token table.
    #[must_use]
    pub fn of_table(table: ParamId) -> Self {
        Self {
            transform: None,
            scale: None,
            logits: TableLogits { table, bias: None },
            cap: None,
            common: None,
        }
    }

    /// Returns this head for hidden states that come from `norm`, a layer norm.
    #[must_use]
    pub fn after(self, norm: LayerNorm) -> Self {
        Self { common: norm.bias.map(Common::NormBias), ..self }
    }

    /// Returns this head for hidden states that come from an RMS norm, in a model whose token table is `table`.
    #[must_use]
    pub fn of_tokens(self, table: ParamId) -> Self {
        Self { common: Some(Common::TokenTable(table)), ..self }
    }

    /// Returns the logits at every position or at the given ones. In generation, returns those of
    /// the last position.
    ///
    /// # Shapes
    /// - hidden: `[batch, seq, d]`, positions: `[batch, targets]`
    /// - output: `[batch, targets, vocabulary]`
    pub fn forward<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        hidden: Var<B>,
        positions: Places<B>,
    ) -> Var<B> {
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
