//! What a backward pass keeps of the forward pass, and to whom it leaves its records.

use crate::nn::GradRecord;
use crate::nn::Kernels;
use crate::tensor::Tensor;

/// One forward and backward pass. The records of each block are handed over as soon as it is done.
pub(super) struct Pass<'a, B: Kernels> {
    /// Whether blocks keep their input alone, and are computed again where the backward pass comes to them.
    pub recompute: bool,
    /// Those that were not handed over yet.
    pub records: Vec<GradRecord<B>>,
    take: &'a mut dyn FnMut(Vec<GradRecord<B>>),
}

impl<'a, B: Kernels> Pass<'a, B> {
    pub fn new(recompute: bool, take: &'a mut dyn FnMut(Vec<GradRecord<B>>)) -> Self {
        Self { recompute, records: Vec::new(), take }
    }

    /// Hands over what there is.
    pub fn hand_over(&mut self) {
        (self.take)(std::mem::take(&mut self.records));
    }
}

/// What the backward pass of a block needs.
pub(super) enum Kept<B: Kernels, Saved> {
    Saved(Saved),
    /// The block's input, from which the rest is made again. `[batch, seq, d]`
    Input(Tensor<B, 3>),
}

impl<B: Kernels, Saved> Kept<B, Saved> {
    /// The output of a block's `forward`, and what is kept of it.
    pub fn of(
        recompute: bool,
        input: Tensor<B, 3>,
        forward: impl FnOnce(Tensor<B, 3>) -> (Tensor<B, 3>, Saved),
    ) -> (Tensor<B, 3>, Self) {
        if recompute {
            return (forward(input.clone()).0, Self::Input(input));
        }
        let (output, saved) = forward(input);
        (output, Self::Saved(saved))
    }

    /// What `forward` saved, or saves now.
    pub fn saved(self, forward: impl FnOnce(Tensor<B, 3>) -> (Tensor<B, 3>, Saved)) -> Saved {
        match self {
            Self::Saved(saved) => saved,
            Self::Input(input) => forward(input).1,
        }
    }
}
