//! Logits of classes of a whole sequence.

use crate::nn::{Activation, Kernels, Linear, Pass, Var, row};

/// Predicts the class of a sequence from one position, such as whether BERT's second sentence follows the first.
#[derive(Clone, Copy, Debug)]
pub struct SequenceHead {
    /// Applied to the position first, with tanh.
    pub pooler: Linear,
    /// From d to the number of classes.
    pub classes: Linear,
}

impl SequenceHead {
    /// # Shapes
    /// - hidden: `[batch, seq, d]`
    /// - output: `[batch, 1, classes]`
    pub fn forward<B: Kernels>(self, pass: &mut Pass<'_, B>, hidden: Var<B>) -> Var<B> {
        let first = row(pass, hidden, 0);
        let pooled = self.pooler.forward(pass, first);
        let pooled = Activation::Tanh.forward(pass, pooled);
        self.classes.forward(pass, pooled)
    }
}
