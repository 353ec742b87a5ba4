//! What a layer's backward pass leaves: enough for every example's gradient of its parameters.

use crate::layer::ParamId;
use crate::tensor::{Backend, Bool, Int, Tensor};

/// The per-example gradients of one layer's parameters, as factors that keep the batch axis.
///
/// A parameter may appear in one record only: the squared norm of a sum is not the sum of squared norms.
#[derive(Clone, Debug)]
pub enum Record<B: Backend> {
    /// `y = x·W + b`: the gradient of `W` is `inputᵀ·grad`, of `b` the sum of `grad` over positions.
    Linear {
        /// `[d_in, d_out]`
        weight: ParamId,
        /// `[d_out]`
        bias: ParamId,
        /// `[batch, seq, d_in]`
        input: Tensor<B, 3>,
        /// `[batch, seq, d_out]`
        grad: Tensor<B, 3>,
    },
    /// `y = x̂∘gain + bias`
    Norm {
        /// `[d]`
        gain: ParamId,
        /// `[d]`
        bias: ParamId,
        /// `[batch, seq, d]`
        normalized: Tensor<B, 3>,
        /// `[batch, seq, d]`
        grad: Tensor<B, 3>,
    },
    /// A table added to every example, row by position.
    Position {
        /// `[context, d]` with context ≥ seq
        table: ParamId,
        /// `[batch, seq, d]`
        grad: Tensor<B, 3>,
    },
    /// A table that is looked up by token and also makes the logits.
    TiedEmbedding {
        /// `[vocabulary, d]`
        table: ParamId,
        /// `[batch, seq]`
        tokens: Tensor<B, 2, Int>,
        /// Of the looked-up rows. `[batch, seq, d]`
        grad: Tensor<B, 3>,
        /// The head's input. `[batch, seq, d]`
        hidden: Tensor<B, 3>,
        /// `[batch, seq, vocabulary]`
        logits_grad: Tensor<B, 3>,
    },
}

impl<B: Backend> Record<B> {
    /// The parameters whose gradients it holds.
    #[must_use]
    pub fn params(&self) -> Vec<ParamId> {
        match self {
            Self::Linear { weight, bias, .. } => vec![*weight, *bias],
            Self::Norm { gain, bias, .. } => vec![*gain, *bias],
            Self::Position { table, .. } | Self::TiedEmbedding { table, .. } => vec![*table],
        }
    }

    /// Where its tensors are.
    #[must_use]
    pub fn device(&self) -> B::Device {
        match self {
            Self::Linear { grad, .. }
            | Self::Norm { grad, .. }
            | Self::Position { grad, .. }
            | Self::TiedEmbedding { grad, .. } => grad.device(),
        }
    }

    /// The same record with zeros in place of the marked examples, whatever stood there, NaN included.
    ///
    /// # Shapes
    /// - blank: `[batch]`
    #[must_use]
    pub fn without(self, blank: &Tensor<B, 1, Bool>) -> Self {
        let zero = |values: Tensor<B, 3>| {
            let shape = values.shape();
            let rows: Tensor<B, 3, Bool> = blank.clone().reshape([-1, 1, 1]);
            values.mask_fill(rows.expand(shape), 0.0)
        };
        match self {
            Self::Linear { weight, bias, input, grad } => {
                Self::Linear { weight, bias, input: zero(input), grad: zero(grad) }
            }
            Self::Norm { gain, bias, normalized, grad } => {
                Self::Norm { gain, bias, normalized: zero(normalized), grad: zero(grad) }
            }
            Self::Position { table, grad } => Self::Position { table, grad: zero(grad) },
            Self::TiedEmbedding { table, tokens, grad, hidden, logits_grad } => Self::TiedEmbedding {
                table,
                tokens,
                grad: zero(grad),
                hidden: zero(hidden),
                logits_grad: zero(logits_grad),
            },
        }
    }
}
