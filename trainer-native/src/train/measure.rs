//! Measurements of a model on public text.

use super::{TrainError, Trainer};
use crate::data::Example;
use crate::dp::Reduce;
use crate::model::{Batch, Shape};
use crate::nn::{Kernels, Weights};
use crate::tensor::{Int, Tensor, to_host, to_host_f64};

/// How well a model predicts one target of public text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Negative log-likelihood in nats.
    pub nll: f64,
    /// Whether no other token is likelier.
    pub is_likeliest: bool,
}

impl Prediction {
    /// # Shapes
    /// - logits: `[places, classes]`, targets: `[places]`
    fn of<B: Kernels>(logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>) -> Vec<Self> {
        let places = logits.dims()[0];
        let largest = logits.clone().max_dim(1);
        let hit = logits.clone().gather(1, targets.clone().reshape([places, 1])).greater_equal(largest);
        let hits = to_host(hit.float());
        let nll = to_host_f64(B::token_nll(logits, targets));
        nll.into_iter().zip(hits).map(|(nll, hit)| Self { nll, is_likeliest: hit > 0.5 }).collect()
    }
}

impl<B: Kernels> Trainer<B> {
    /// Summed negative log-likelihood in nats and number of target tokens. For public text only.
    ///
    /// # Errors
    /// [`TrainError::Example`].
    pub fn nll(&self, examples: &[Example]) -> Result<(f64, u64), TrainError> {
        let targets = examples.iter().map(|example| example.targets.len() as u64).sum();
        Ok((self.nll_each(examples)?.into_iter().sum(), targets))
    }

    /// Negative log-likelihood of each example's targets, in nats. For public text only.
    ///
    /// # Errors
    /// [`TrainError::Example`].
    pub fn nll_each(&self, examples: &[Example]) -> Result<Vec<f64>, TrainError> {
        self.by_batch(examples, |weights, batch, piece| {
            let targets = batch.targets.clone();
            let nll = to_host_f64(B::token_nll(self.model.logits(weights, batch), flat(targets)));
            self.rows(&nll, piece).map(|row| row.iter().sum()).collect()
        })
    }

    /// How well each target of each example is predicted. For public text only.
    ///
    /// # Errors
    /// [`TrainError::Example`].
    pub fn predictions(&self, examples: &[Example]) -> Result<Vec<Vec<Prediction>>, TrainError> {
        self.by_batch(examples, |weights, batch, piece| {
            let targets = batch.targets.clone();
            let all = Prediction::of(self.model.logits(weights, batch), flat(targets));
            self.rows(&all, piece).map(<[Prediction]>::to_vec).collect()
        })
    }

    /// How well the class of each example's pair of sentences is predicted, where there is one. For public text only.
    ///
    /// # Errors
    /// [`TrainError::Example`].
    pub fn sentence_predictions(&self, examples: &[Example]) -> Result<Vec<Prediction>, TrainError> {
        let found = self.by_batch(examples, |weights, batch, piece| {
            let classes = batch.sentences.clone();
            let all =
                self.model.sentence_logits(weights, batch).map(|logits| Prediction::of(logits, classes));
            let paired = |(at, example): (usize, &Example)| {
                all.as_ref().filter(|_| example.sentence.is_some()).map(|all| all[at])
            };
            piece.iter().enumerate().map(paired).collect()
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    /// What `part` makes of each example of each batch, in the examples' order.
    fn by_batch<T: Send>(
        &self,
        examples: &[Example],
        part: impl Fn(&Weights<B>, Batch<B>, &[Example]) -> Vec<T> + Sync,
    ) -> Result<Vec<T>, TrainError> {
        self.check_examples(examples)?;
        let pieces: Vec<&[Example]> = examples.chunks(self.physical_batch).collect();
        let work = |weights: &Weights<B>, piece: &&[Example]| {
            let shape = self.model.shape();
            let batch = Batch::new(piece, self.physical_batch, shape, weights.dtype(), &self.device);
            part(weights, batch, piece)
        };
        let join = |mut all: Vec<T>, part: Vec<T>| {
            all.extend(part);
            all
        };
        let all = Vec::with_capacity(examples.len());
        Ok(Reduce::on_threads(B::workers()).fold(&pieces, &self.measured_weights(), work, all, join))
    }

    /// Each example's own part of what there is for every target of a batch, padding left out.
    fn rows<'a, T>(&self, all: &'a [T], piece: &'a [Example]) -> impl Iterator<Item = &'a [T]> {
        let width = self.model.shape().targets();
        piece.iter().enumerate().map(move |(at, example)| &all[at * width..][..example.targets.len()])
    }

    /// Logits at each place of an example where the network predicts: each place of the input, or of the decoder's
    /// input, or the example's own positions. One row a place.
    ///
    /// # Errors
    /// [`TrainError::Example`] for an example that is empty or does not fit the network.
    pub fn logits(&self, example: &Example) -> Result<Vec<Vec<f32>>, TrainError> {
        let flat = to_host(self.logits_of(example)?);
        Ok(flat.chunks_exact(self.model.vocab_size()).map(<[f32]>::to_vec).collect())
    }

    /// Logits of the next token: what follows the decoder's input, if there is one, else the input. The input is cut
    /// to its last `context` tokens.
    ///
    /// # Errors
    /// As [`Trainer::logits`].
    pub fn next_token_logits(&self, input: &[u32], decoder_input: &[u32]) -> Result<Vec<f32>, TrainError> {
        let context = self.model.shape().input;
        let input = input[input.len().saturating_sub(context)..].to_vec();
        let example = Example { input, decoder_input: decoder_input.to_vec(), ..Example::default() };
        let logits = self.logits_of(&example)?;
        let last = logits.dims()[0] - 1;
        Ok(to_host(logits.narrow(0, last, 1)))
    }

    /// Most tokens that the network can write in one answer; none if it has no decoder.
    #[must_use]
    pub fn decoder_context(&self) -> Option<usize> {
        self.model.shape().decoder
    }

    /// `[places, vocabulary]`
    fn logits_of(&self, example: &Example) -> Result<Tensor<B, 2>, TrainError> {
        let examples = std::slice::from_ref(example);
        let shape = self.model.shape();
        let shape = Shape {
            input: example.input.len(),
            decoder: shape.decoder.map(|_| example.decoder_input.len()),
            gathered: shape.gathered.map(|_| example.positions.len()),
        };
        self.check_examples(examples)?;
        if shape.input == 0 || shape.targets() == 0 {
            return Err(TrainError::Example { index: 0, problem: "is empty" });
        }
        let batch = Batch::new(examples, 1, shape, self.weights.dtype(), &self.device);
        Ok(self.model.logits(&self.measured_weights(), batch))
    }

    /// The weights as measurements take them.
    fn measured_weights(&self) -> Weights<B> {
        self.weights.clone().precision(plan::Precision::F32)
    }
}

fn flat<B: Kernels>(targets: Tensor<B, 2, Int>) -> Tensor<B, 1, Int> {
    let [rows, width] = targets.dims();
    targets.reshape([rows * width])
}
