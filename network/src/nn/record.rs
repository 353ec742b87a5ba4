//! Records that a layer's backward pass leaves, which determine every example's gradient of its
//! parameters.

use super::{Kernels, ParamId};
use crate::tensor::{Backend, Bool, Int, Tensor};

/// The per-example gradients of one parameter, whole or as factors. Every form keeps the batch
/// axis.
///
/// A parameter has one record, because the squared norm of a sum is not the sum of squared norms.
#[derive(Clone, Debug)]
pub enum GradRecord<B: Backend> {
    /// A gradient that is small enough to be held whole: that of a gain, a bias or positions.
    Explicit {
        /// The parameter, of n elements.
        param: ParamId,
        /// `[batch, n]`
        grads: Tensor<B, 2>,
    },
    /// `inputᵀ·grad`: the weight of a linear layer.
    Product {
        /// `[d_in, d_out]`
        param: ParamId,
        /// `[batch, seq, d_in]`
        input: Tensor<B, 3>,
        /// `[batch, seq, d_out]`
        grad: Tensor<B, 3>,
    },
    /// The gradient of a table that is looked up by token. Several look-ups of one table are one
    /// record, side by side along `looked_up`.
    Lookup {
        /// `[vocabulary, d]`
        param: ParamId,
        /// `[batch, looked_up]`
        tokens: Tensor<B, 2, Int>,
        /// Gradient of the looked-up rows. `[batch, looked_up, d]`
        grad: Tensor<B, 3>,
    },
    /// The gradient of a table that is looked up by token and also makes the logits.
    TiedEmbedding {
        /// `[vocabulary, d]`
        param: ParamId,
        /// `[batch, looked_up]`
        tokens: Tensor<B, 2, Int>,
        /// Gradient of the looked-up rows. `[batch, looked_up, d]`
        grad: Tensor<B, 3>,
        /// The head's input. `[batch, targets, d]`
        hidden: Tensor<B, 3>,
        /// `[batch, targets, vocabulary]`
        logits_grad: Tensor<B, 3>,
    },
}

impl<B: Backend> GradRecord<B> {
    /// Returns the parameter of the gradients.
    #[must_use]
    pub fn param(&self) -> ParamId {
        match self {
            Self::Explicit { param, .. }
            | Self::Product { param, .. }
            | Self::Lookup { param, .. }
            | Self::TiedEmbedding { param, .. } => *param,
        }
    }

    /// Returns the device of the tensors.
    #[must_use]
    pub fn device(&self) -> B::Device {
        match self {
            Self::Explicit { grads, .. } => grads.device(),
            Self::Product { grad, .. } | Self::Lookup { grad, .. } | Self::TiedEmbedding { grad, .. } => {
                grad.device()
            }
        }
    }

    /// Returns the record of one example of the batch.
    #[must_use]
    pub fn of_example(&self, at: usize) -> Self {
        let one = |values: &Tensor<B, 3>| values.clone().narrow(0, at, 1);
        let tokens_of = |tokens: &Tensor<B, 2, Int>| tokens.clone().narrow(0, at, 1);
        match self {
            Self::Explicit { param, grads } => {
                Self::Explicit { param: *param, grads: grads.clone().narrow(0, at, 1) }
            }
            Self::Product { param, input, grad } => {
                Self::Product { param: *param, input: one(input), grad: one(grad) }
            }
            Self::Lookup { param, tokens, grad } => {
                Self::Lookup { param: *param, tokens: tokens_of(tokens), grad: one(grad) }
            }
            Self::TiedEmbedding { param, tokens, grad, hidden, logits_grad } => Self::TiedEmbedding {
                param: *param,
                tokens: tokens_of(tokens),
                grad: one(grad),
                hidden: one(hidden),
                logits_grad: one(logits_grad),
            },
        }
    }

    /// Returns the record with zeros in place of the marked examples, also where the values were
    /// NaN.
    ///
    /// # Shapes
    /// - blank: `[batch]`
    #[must_use]
    pub fn without(self, blank: &Tensor<B, 1, Bool>) -> Self {
        match self {
            Self::Explicit { param, grads } => Self::Explicit { param, grads: zero(grads, blank) },
            Self::Product { param, input, grad } => {
                Self::Product { param, input: zero(input, blank), grad: zero(grad, blank) }
            }
            Self::Lookup { param, tokens, grad } => Self::Lookup { param, tokens, grad: zero(grad, blank) },
            Self::TiedEmbedding { param, tokens, grad, hidden, logits_grad } => Self::TiedEmbedding {
                param,
                tokens,
                grad: zero(grad, blank),
                hidden: zero(hidden, blank),
                logits_grad: zero(logits_grad, blank),
            },
        }
    }
}

impl<B: Kernels> GradRecord<B> {
    /// Returns the record with one row in place of each `views` successive rows: that of the sum of their gradients, since inputᵀ·grad over
    /// the positions of all of them is this sum.
    #[must_use]
    pub fn sum_of_views(self, views: usize) -> Self {
        match self {
            Self::Explicit { param, grads } => {
                let [rows, n] = grads.dims();
                Self::Explicit { param, grads: B::sum_positions(grads.reshape([rows / views, views, n])) }
            }
            Self::Product { param, input, grad } => {
                Self::Product { param, input: side_by_side(input, views), grad: side_by_side(grad, views) }
            }
            Self::Lookup { param, tokens, grad } => Self::Lookup {
                param,
                tokens: tokens_side_by_side(tokens, views),
                grad: side_by_side(grad, views),
            },
            Self::TiedEmbedding { param, tokens, grad, hidden, logits_grad } => Self::TiedEmbedding {
                param,
                tokens: tokens_side_by_side(tokens, views),
                grad: side_by_side(grad, views),
                hidden: side_by_side(hidden, views),
                logits_grad: side_by_side(logits_grad, views),
            },
        }
    }
}

/// Number of multiplications that take as long as writing an element of a gradient, reading it for
/// its norm and reading it again for the sum. It is an estimate between the speeds of caches and of
/// memory, and affects speed only.
const PASSES: usize = 30;

/// Whether the whole gradient of a record of one example takes less time than the norm from Gram matrices. It does for all parameters
/// but matrices of short examples, and tables that are only looked up.
pub fn is_cheaper_whole<B: Backend>(record: &GradRecord<B>) -> bool {
    let [positions, d_in, d_out] = match record {
        GradRecord::Explicit { .. } => return true,
        GradRecord::Lookup { .. } => return false,
        GradRecord::Product { input, grad, .. } => [input.dims()[1], input.dims()[2], grad.dims()[2]],
        GradRecord::TiedEmbedding { hidden, logits_grad, .. } => {
            [hidden.dims()[1], hidden.dims()[2], logits_grad.dims()[2]]
        }
    };
    PASSES * d_in * d_out < positions * positions * (d_in + d_out) / 2
}

/// Converts each matrix's gradients to the form that takes less time: factors, whose norms come
/// from their Gram matrices and whose sum is another product, or whole gradients for long examples.
/// Whole gradients are never larger.
///
/// # References
/// Bu et al. 2022, "Scalable and efficient training of large convolutional neural networks with
/// differential privacy" (mixed ghost clipping), <https://arxiv.org/abs/2205.10683>; there the
/// choice is by memory.
pub fn materialize_if_cheaper<B: Kernels>(records: Vec<GradRecord<B>>) -> Vec<GradRecord<B>> {
    let cheaper = |record: GradRecord<B>| match record {
        GradRecord::Product { param, input, grad } => {
            let [batch, seq, d_in] = input.dims();
            let d_out = grad.dims()[2];
            let (factors, whole) = (seq * (d_in + d_out), d_in * d_out);
            if PASSES * whole > seq * factors / 2 || whole > factors {
                return GradRecord::Product { param, input, grad };
            }
            let grads = B::product(input.transpose(), grad).reshape([batch, whole]);
            GradRecord::Explicit { param, grads }
        }
        other => other,
    };
    records.into_iter().map(cheaper).collect()
}

/// `[batch·views, seq, d]` → `[batch, views·seq, d]`
fn side_by_side<B: Backend>(values: Tensor<B, 3>, views: usize) -> Tensor<B, 3> {
    let [rows, seq, d] = values.dims();
    values.reshape([rows / views, views * seq, d])
}

/// `[batch·views, seq]` → `[batch, views·seq]`
fn tokens_side_by_side<B: Backend>(tokens: Tensor<B, 2, Int>, views: usize) -> Tensor<B, 2, Int> {
    let [rows, seq] = tokens.dims();
    tokens.reshape([rows / views, views * seq])
}

fn zero<B: Backend, const D: usize>(values: Tensor<B, D>, blank: &Tensor<B, 1, Bool>) -> Tensor<B, D> {
    let shape = values.shape();
    let mut column = [1; D];
    column[0] = shape[0];
    values.mask_fill(blank.clone().reshape(column).expand(shape), 0.0)
}
