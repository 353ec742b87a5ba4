//! Examples on the host, and several of them as one batch of fixed shape.

use std::sync::Arc;

use crate::Example;
use crate::lengths;
use crate::nn::Places;
use crate::tensor::{Backend, FloatDType, Int, Tensor, TensorData, from_host};

/// The fixed physical shape of a batch's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Tokens of input.
    pub input: usize,
    /// Tokens of the decoder's input, for networks with one.
    pub decoder: Option<usize>,
    /// The predictions of a row.
    pub predictions: Predictions,
}

/// The places at which a network predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predictions {
    /// Each position of the decoder's input or, without a decoder, of the input.
    EachPosition,
    /// Up to this many places, which the example names.
    AtPlaces(usize),
    /// A fixed number of predictions for the whole text.
    OfText(usize),
}

impl Shape {
    /// Creates the shape of a network that predicts at each place of its input.
    #[must_use]
    pub fn causal(context: usize) -> Self {
        Self { input: context, decoder: None, predictions: Predictions::EachPosition }
    }

    /// Creates the shape of a network that predicts masked tokens of its input.
    #[must_use]
    pub fn masked(context: usize) -> Self {
        let predictions = Predictions::AtPlaces(lengths::predictions(context));
        Self { input: context, decoder: None, predictions }
    }

    /// Returns the number of targets of a row.
    #[must_use]
    pub fn targets(&self) -> usize {
        match self.predictions {
            Predictions::EachPosition => self.decoder.unwrap_or(self.input),
            Predictions::AtPlaces(count) | Predictions::OfText(count) => count,
        }
    }

    /// Returns the number of vectors that a head for labels or tags reads of an example: one of its text, or one for each target.
    pub(super) fn vectors_read(&self, example: &Example) -> usize {
        match self.predictions {
            Predictions::OfText(_) => 1,
            Predictions::AtPlaces(_) | Predictions::EachPosition => example.targets.len(),
        }
    }

    /// Returns the reason why an example does not fit rows of this shape, a vocabulary of this size
    /// and this number of target classes, if it does not fit.
    pub(super) fn problem(
        &self,
        example: &Example,
        vocab_size: usize,
        classes: usize,
    ) -> Option<&'static str> {
        let Example {
            input,
            segments,
            decoder_input,
            positions,
            targets,
            sentence,
            dropout_seed: _,
            features: _,
            further: _,
        } = example;
        let predicted = match (self.predictions, self.decoder) {
            (Predictions::AtPlaces(_), _) => positions.len(),
            (Predictions::OfText(count), _) => count,
            (Predictions::EachPosition, Some(_)) => decoder_input.len(),
            (Predictions::EachPosition, None) => input.len(),
        };
        let known = |tokens: &[u32]| tokens.iter().all(|&token| (token as usize) < vocab_size);
        if input.len() > self.input || decoder_input.len() > self.decoder.unwrap_or(0) {
            Some("is longer than the model's context")
        } else if targets.len() > self.targets() {
            Some("has more targets than the model's context allows")
        } else if !known(input) || !known(decoder_input) {
            Some("has a token outside the vocabulary")
        } else if targets.iter().any(|&target| target as usize >= classes) {
            Some("has a target outside the vocabulary or the labels")
        } else if targets.len() > predicted || positions.iter().any(|&place| place as usize >= input.len()) {
            Some("has targets where the model predicts nothing")
        } else if !segments.is_empty() && segments.len() != input.len()
            || segments.iter().chain(sentence).any(|&class| class > 1)
        {
            Some("has a sentence that is neither the first nor the second")
        } else {
            None
        }
    }
}

/// A batch of examples, padded to a fixed shape with positions and rows of weight 0. The views of an example are rows side by side.
#[derive(Clone, Debug)]
pub struct Batch<B: Backend> {
    /// `[rows, input]`
    pub tokens: Tensor<B, 2, Int>,
    /// Number of tokens of each row that are not padding. It is at least 1, so that attention sees
    /// a key. `[rows]`
    pub lengths: Tensor<B, 1, Int>,
    /// `[rows, input]`
    pub segments: Tensor<B, 2, Int>,
    /// `[rows, decoder]`
    pub decoder_tokens: Option<Tensor<B, 2, Int>>,
    /// Places of the targets. `[rows, targets]`
    pub positions: Places<B>,
    /// The token to be predicted at each place. `[rows, targets]`
    pub targets: Tensor<B, 2, Int>,
    /// 1 / (number of targets · number of views with targets) at each target of a view, 0 at padding. `[rows, targets]`
    pub target_weights: Tensor<B, 2>,
    /// Class of each row's pair of sentences. `[rows]`
    pub sentences: Tensor<B, 1, Int>,
    /// 1 / (number of views with targets) if a row has such a class, else 0. `[rows]`
    pub sentence_weights: Tensor<B, 1>,
    /// Seed of each row's dropout.
    pub dropout_seeds: Arc<[u64]>,
    /// Precomputed input of the head, if the examples have it: `[rows, 1, d]` for labels of texts, `[rows, targets, d]` for tags of words.
    pub features: Option<Tensor<B, 3>>,
    /// Number of examples; the rows after theirs are padding.
    pub examples: usize,
    /// Rows of an example: one for each view of the example with the most.
    pub views: usize,
}

impl<B: Backend> Batch<B> {
    /// Returns the decoder's input. Without one, the decoder reads only token 0.
    ///
    /// # Shapes
    /// - output: `[rows, decoder]`
    pub(super) fn decoder_input(&self) -> Tensor<B, 2, Int> {
        match &self.decoder_tokens {
            Some(tokens) => tokens.clone(),
            None => Tensor::zeros([self.tokens.dims()[0], 1], &self.tokens.device()),
        }
    }

    /// Lays examples out in a batch that has room for `capacity` of them.
    ///
    /// # Panics
    /// If there are more examples than that, or `Shape::problem` finds one; the engine checks both.
    pub fn new(
        examples: &[Example],
        capacity: usize,
        shape: Shape,
        dtype: FloatDType,
        device: &B::Device,
    ) -> Self {
        assert!(examples.len() <= capacity, "more examples than rows");
        let views = examples.iter().map(|example| 1 + example.further.len()).max().unwrap_or(1);
        let rows = capacity * views;
        let own = |example| Example::views(example).map(Some).chain(std::iter::repeat(None)).take(views);
        let views_by_row: Vec<Option<&Example>> = examples.iter().flat_map(own).collect();
        let filled = || (0..).zip(&views_by_row).filter_map(|(row, view)| view.map(|view| (row, view)));
        let table = |width: usize, of: fn(&Example) -> &[u32]| {
            let mut values = vec![0_i32; rows * width];
            for (row, example) in filled() {
                let tokens = of(example);
                assert!(tokens.len() <= width, "example longer than the shape");
                for (slot, &token) in values[row * width..].iter_mut().zip(tokens) {
                    *slot = token as i32;
                }
            }
            Tensor::<B, 2, Int>::from_data(TensorData::new(values, [rows, width]), device)
        };
        let column = |of: fn(&Example) -> i32, padding: i32| {
            let mut values = vec![padding; rows];
            filled().for_each(|(row, view)| values[row] = of(view));
            Tensor::<B, 1, Int>::from_data(TensorData::new(values, [rows]), device)
        };
        let targets = shape.targets();
        let (mut target_weights, mut sentence_weights) = (vec![0.0_f32; rows * targets], vec![0.0_f32; rows]);
        for (row, view) in filled() {
            let (count, learnt) = (view.targets.len(), examples[row / views].learnt_views());
            target_weights[row * targets..row * targets + count].fill(1.0 / (count * learnt) as f32);
            sentence_weights[row] = if view.sentence.is_some() { 1.0 / learnt as f32 } else { 0.0 };
        }
        let mut seeds = vec![0; rows];
        filled().for_each(|(row, view)| seeds[row] = view.dropout_seed);
        Self {
            tokens: table(shape.input, |example| &example.input),
            lengths: column(|example| example.input.len().max(1) as i32, 1),
            segments: table(shape.input, |example| &example.segments),
            decoder_tokens: shape.decoder.map(|width| table(width, |example| &example.decoder_input)),
            positions: match shape.predictions {
                Predictions::AtPlaces(width) => Some(table(width, |example| &example.positions)),
                Predictions::EachPosition | Predictions::OfText(_) => None,
            },
            targets: table(targets, |example| &example.targets),
            target_weights: from_host(target_weights, [rows, targets], dtype, device),
            sentences: column(|example| example.sentence.unwrap_or(0) as i32, 0),
            sentence_weights: from_host(sentence_weights, [rows], dtype, device),
            dropout_seeds: seeds.into(),
            features: features(&views_by_row, rows, shape, dtype, device),
            examples: examples.len(),
            views,
        }
    }
}

/// Returns the features of the views in `rows` rows, padded with zeros; `None` if the views have none, or none of them has a target that
/// would read them.
fn features<B: Backend>(
    views_by_row: &[Option<&Example>],
    rows: usize,
    shape: Shape,
    dtype: FloatDType,
    device: &B::Device,
) -> Option<Tensor<B, 3>> {
    let places = match shape.predictions {
        Predictions::OfText(_) => 1,
        Predictions::AtPlaces(_) | Predictions::EachPosition => shape.targets(),
    };
    let width_of = |view: &Example| view.features.as_ref()?.len().checked_div(shape.vectors_read(view));
    let width = views_by_row.iter().find_map(|view| width_of((*view)?))?;
    let mut values = vec![0.0; rows * places * width];
    for (row, view) in values.chunks_mut((places * width).max(1)).zip(views_by_row) {
        if let Some(own) = view.and_then(|view| view.features.as_ref()) {
            row[..own.len()].copy_from_slice(own);
        }
    }
    Some(from_host(values, [rows, places, width], dtype, device))
}
