//! Logits of classes of a whole sequence.

use crate::nn::{Activation, Kernels, Linear, Pass, Var, dropout, gather, row};
use crate::tensor::{Int, Tensor};

/// Predicts the class of a sequence from the hidden state of one position.
#[derive(Clone, Copy, Debug)]
pub struct SequenceHead {
    /// Which position.
    pub pooling: Pooling,
    /// Whether dropout follows, as in BERT's classifiers.
    pub drops_pooled: bool,
    /// From d to the number of classes.
    pub classes: Linear,
}

/// How one vector is made of a sequence.
#[derive(Clone, Copy, Debug)]
pub enum Pooling {
    /// An encoder's: the first position, through a linear layer and an activation, tanh in BERT.
    First(Linear, Activation),
    /// The first position as it is.
    FirstAlone,
    /// Of a decoder: the last position that is no padding, which has seen all others.
    Last,
}

impl SequenceHead {
    /// # Shapes
    /// - hidden: `[batch, seq, d]`, lengths: `[batch]`, at least 1
    /// - output: `[batch, 1, classes]`
    pub fn forward<B: Kernels>(
        self,
        pass: &mut Pass<'_, B>,
        hidden: Var<B>,
        lengths: Tensor<B, 1, Int>,
    ) -> Var<B> {
        let mut pooled = match self.pooling {
            Pooling::First(linear, activation) => {
                let first = row(pass, hidden, 0);
                let first = linear.forward(pass, first);
                activation.forward(pass, first)
            }
            Pooling::FirstAlone => row(pass, hidden, 0),
            Pooling::Last => gather(pass, hidden, lengths.sub_scalar(1).unsqueeze_dim(1)),
        };
        if self.drops_pooled {
            pooled = dropout(pass, pooled);
        }
        self.classes.forward(pass, pooled)
    }
}
