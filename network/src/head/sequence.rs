//! Logits of classes of a whole sequence.

use crate::nn::{
    Activation, ForwardPass, Initializer, Kernels, Linear, LinearSpec, ParamList, Var, dropout, gather, mean,
    row,
};
use crate::tensor::{Int, Tensor};

/// Predicts the class of a sequence from one vector.
#[derive(Clone, Copy, Debug)]
pub struct SequenceHead {
    /// The way in which the sequence becomes this vector.
    pub pooling: Pooling,
    /// Whether dropout follows the pooling, as in BERT's classifiers.
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
    /// The last position that is not padding, through dropout, a linear layer and an activation, as in T5.
    LastThrough(Linear, Activation),
    /// The mean over the positions that are not padding.
    Mean,
}

/// Name of the layer that classifies means. No class of `transformers` has a layer of this name, so `transformers`
/// never loads it into a classifier that reads another vector.
pub const MEAN_CLASSIFIER: &str = "mean_classifier";

impl SequenceHead {
    /// Creates a linear head for the mean over a text's positions, which starts at zero, and adds its parameters to `list`.
    pub fn of_mean(list: &mut ParamList, d: usize, classes: usize) -> Self {
        let zero = LinearSpec { initial: Initializer::Constant(0.0), ..LinearSpec::normal(d, classes, 0.0) };
        let classes = list.linear(MEAN_CLASSIFIER, zero.biased());
        Self { pooling: Pooling::Mean, drops_pooled: true, classes }
    }

    /// Returns the logits of the classes.
    ///
    /// # Shapes
    /// - hidden: `[batch, seq, d]`, lengths: `[batch]`, at least 1
    /// - output: `[batch, 1, classes]`
    pub fn forward<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        hidden: Var<B>,
        lengths: Tensor<B, 1, Int>,
    ) -> Var<B> {
        let features = self.features(pass, hidden, lengths);
        self.classify(pass, features)
    }

    /// Returns what the head reads of the hidden states. No parameter of the head is used.
    ///
    /// # Shapes
    /// - hidden: `[batch, seq, d]`, lengths: `[batch]`, at least 1
    /// - output: `[batch, 1, d]`
    pub fn features<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        hidden: Var<B>,
        lengths: Tensor<B, 1, Int>,
    ) -> Var<B> {
        match self.pooling {
            Pooling::First(..) | Pooling::FirstAlone => row(pass, hidden, 0),
            Pooling::Last | Pooling::LastThrough(..) => {
                gather(pass, hidden, lengths.sub_scalar(1).unsqueeze_dim(1))
            }
            Pooling::Mean => mean(pass, hidden, lengths),
        }
    }

    /// Returns the logits of the classes from the head's features.
    ///
    /// # Shapes
    /// - features: `[batch, 1, d]`, as [`Self::features`] returns them
    /// - output: `[batch, 1, classes]`
    pub fn classify<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, features: Var<B>) -> Var<B> {
        let mut pooled = features;
        if let Pooling::LastThrough(..) = self.pooling {
            pooled = dropout(pass, pooled);
        }
        if let Pooling::First(linear, activation) | Pooling::LastThrough(linear, activation) = self.pooling {
            pooled = linear.forward(pass, pooled);
            pooled = activation.forward(pass, pooled);
        }
        if self.drops_pooled {
            pooled = dropout(pass, pooled);
        }
        self.classes.forward(pass, pooled)
    }
}
