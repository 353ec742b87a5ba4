//! What generation keeps of the tokens that a model has read.

use super::Kernels;
use crate::tensor::Tensor;

/// Keys and values of the positions that generation has read, layer by layer, so that a new token costs one position.
///
/// Start with an empty cache and give the prompt to [`crate::model::Network::next_logits`], then each new token. A cache
/// belongs to one model, one set of weights and one row of text; it never holds more than the model's context.
#[derive(Clone, Debug)]
pub struct Cache<B: Kernels> {
    /// Of each operator that keeps something, in the order of the forward pass. `[batch, heads, positions, d_head]`
    entries: Vec<Vec<Tensor<B, 4>>>,
    /// The operator that comes next in the pass under way.
    next: usize,
    positions: usize,
    /// The encoder's output. `[batch, keys, d]`
    memory: Option<Tensor<B, 3>>,
}

impl<B: Kernels> Default for Cache<B> {
    fn default() -> Self {
        Self { entries: Vec::new(), next: 0, positions: 0, memory: None }
    }
}

impl<B: Kernels> Cache<B> {
    /// Number of positions that were read.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.positions
    }

    pub(super) fn begin(&mut self) {
        self.next = 0;
    }

    /// Counts the positions of a pass that is over.
    pub(crate) fn advance(&mut self, positions: usize) {
        self.positions += positions;
    }

    /// What this operator kept, followed by the tensors of the new positions.
    pub(super) fn extend<const N: usize>(&mut self, new: [Tensor<B, 4>; N]) -> [Tensor<B, 4>; N] {
        let kept = self.entry();
        let mut old = std::mem::take(kept).into_iter();
        let all = new.map(|new| match old.next() {
            Some(old) => Tensor::cat(vec![old, new], 2),
            None => new,
        });
        *kept = all.to_vec();
        all
    }

    /// What this operator kept for good.
    pub(super) fn kept(&mut self) -> Option<[Tensor<B, 3>; 2]> {
        match self.entry().as_slice() {
            [keys, values] => Some([keys, values].map(|part| part.clone().squeeze_dim(1))),
            _ => None,
        }
    }

    /// Keeps this for good, for the operator that asked last.
    pub(super) fn keep(&mut self, parts: [Tensor<B, 3>; 2]) {
        self.entries[self.next - 1] = parts.map(|part| part.unsqueeze_dim(1)).into();
    }

    fn entry(&mut self) -> &mut Vec<Tensor<B, 4>> {
        if self.next == self.entries.len() {
            self.entries.push(Vec::new());
        }
        self.next += 1;
        &mut self.entries[self.next - 1]
    }

    /// The encoder's output, if an encoder has run.
    pub(crate) fn memory(&self) -> Option<Tensor<B, 3>> {
        self.memory.clone()
    }

    /// Keeps the encoder's output.
    pub(crate) fn remember(&mut self, memory: Tensor<B, 3>) {
        self.memory = Some(memory);
    }
}
