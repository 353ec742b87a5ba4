//! Logits of classes of a whole sequence.

use crate::nn::{Activation, Kernels, Linear, Pass, Var, dropout, gather, row};
use crate::tensor::{Int, Tensor};

/// Predicts the class of a sequence from the hidden state of one position.
#[derive(Clone, Copy, Debug)]
pub struct SequenceHead {
    /// The position that represents the sequence.
    pub pooling: Pooling,
    /// Whether dropout follows, as in BERT's classifiers.
    pub drops_pooled: bool,
    /// Linear layer from d to the number of classes.
    pub classes: Linear,
}

/// The way in which a sequence becomes one vector.
#[derive(Clone, Copy, Debug)]
pub enum Pooling {
    /// The first position, through a linear layer and an activation, as in an encoder. BERT's
    /// activation is tanh.
    First(Linear, Activation),
    /// The first position as it is.
    FirstAlone,
    /// The last position that is not padding, which has seen all others, as in a decoder.
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
