//! The gradients of a table, from each of its uses.

use super::{GradRecord, Kernels, ParamId};
use crate::tensor::{BasicOps, Int, Tensor};

/// The parts of a table's gradients. They make one record, because the norm of their sum has all
/// cross terms.
pub(super) struct TableGrads<B: Kernels> {
    /// Number of uses whose gradient has not arrived yet.
    pub missing: usize,
    /// Tokens of each look-up, the last one of the forward pass first.
    pub tokens: Vec<Tensor<B, 2, Int>>,
    pub grads: Vec<Tensor<B, 3>>,
    pub head: Option<HeadGrad<B>>,
}

pub(super) struct HeadGrad<B: Kernels> {
    pub hidden: Tensor<B, 3>,
    pub logits: Tensor<B, 3>,
}

impl<B: Kernels> TableGrads<B> {
    pub fn new(uses: usize) -> Self {
        Self { missing: uses, tokens: Vec::new(), grads: Vec::new(), head: None }
    }

    pub fn record(self, param: ParamId) -> Option<GradRecord<B>> {
        let lookup = side_by_side(self.tokens).zip(side_by_side(self.grads));
        match (lookup, self.head) {
            (Some((tokens, grad)), Some(HeadGrad { hidden, logits })) => {
                Some(GradRecord::TiedEmbedding { param, tokens, grad, hidden, logits_grad: logits })
            }
            (Some((tokens, grad)), None) => Some(GradRecord::Lookup { param, tokens, grad }),
            (None, head) => {
                head.map(|head| GradRecord::Product { param, input: head.logits, grad: head.hidden })
            }
        }
    }
}

/// Joins tensors along the second axis, the last tensor first; `None` without tensors.
fn side_by_side<B: Kernels, const D: usize, K: BasicOps<B>>(
    mut parts: Vec<Tensor<B, D, K>>,
) -> Option<Tensor<B, D, K>> {
    if parts.len() < 2 {
        return parts.pop();
    }
    parts.reverse();
    Some(Tensor::cat(parts, 1))
}
