use std::sync::Arc;

use thiserror::Error;

/// An example for an objective, made from one window of one privacy unit: everything that the loss
/// of the example depends on.
///
/// The loss is the mean over the example's own targets, plus that of the sentence pair if there is
/// one. With further views it is the mean of their losses. Nothing in it depends on other examples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Example {
    /// Input of the network, or of its encoder.
    pub input: Vec<u32>,
    /// The sentence, of two, to which each token of `input` belongs; empty if all belong to the
    /// first.
    pub segments: Vec<u32>,
    /// Input of the decoder, one token a target; empty for networks without one.
    pub decoder_input: Vec<u32>,
    /// Places in `input` at which the targets are predicted; empty if target i is predicted at
    /// place i, or if the targets belong to the whole input.
    pub positions: Vec<u32>,
    /// The tokens or labels to predict. An example without targets has a gradient of 0. If a text
    /// may have any number of labels, there is one target for each label: 1 if the text has it,
    /// else 0.
    pub targets: Vec<u32>,
    /// The class of the sentence pair, if it is predicted.
    pub sentence: Option<u32>,
    /// Seed of the example's dropout, if it has any.
    pub dropout_seed: u64,
    /// Precomputed input of the head for labels or tags: a vector of the model's width for the whole text, or for each target one after
    /// another. If it is given, the layers below the head do not run.
    pub features: Option<Arc<[f32]>>,
    /// Further views of the same privacy unit: other windows, records or masks. They have none themselves.
    pub further: Vec<Example>,
}

impl Example {
    /// Returns this example and the further views of its unit.
    pub fn views(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.further)
    }

    /// Returns the first of several views of a unit, with the others as its further views. Without views, returns an
    /// example without targets.
    #[must_use]
    pub fn of_views(views: impl IntoIterator<Item = Self>) -> Self {
        let mut views = views.into_iter();
        let first = views.next().unwrap_or_default();
        Self { further: views.collect(), ..first }
    }

    /// Returns the number of views that have something to predict. The gradient of all others is 0.
    pub(crate) fn learnt_views(&self) -> usize {
        self.views().filter(|view| !view.targets.is_empty() || view.sentence.is_some()).count()
    }

    /// Makes an example of a window of L tokens: L − 1 inputs, each with the next token as its
    /// target.
    #[must_use]
    pub fn causal(window: &[u32]) -> Self {
        let input = window[..window.len().saturating_sub(1)].to_vec();
        Self { targets: window.iter().skip(1).copied().collect(), input, ..Self::default() }
    }
}

/// An example that does not fit a model. The message shows neither its tokens nor its place in the
/// lot, because they may be private.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("an example {problem}; cut windows to the model's context and encode them with its tokenizer")]
pub struct ExampleError {
    /// The problem.
    pub problem: &'static str,
}
