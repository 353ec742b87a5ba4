//! Measures how well a model predicts public text.

use super::{InferenceError, InferenceModel, by_length, in_order};
use crate::dp::Reduce;
use crate::ranks::Ranks;
use network::Example;
use network::model::{Batch, Predictions, Shape};
use network::nn::{Kernels, Weights};
use network::tensor::{Int, Tensor, to_host, to_host_f64};

/// The prediction of one target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Negative log-likelihood of the target, in nats.
    pub nll: f64,
    /// Whether no token is likelier than the target.
    pub is_likeliest: bool,
}

impl Prediction {
    /// Compares logits with the targets.
    ///
    /// # Shapes
    /// - logits: `[rows, classes]`, targets: `[rows]`
    fn of<B: Kernels>(logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>) -> Vec<Self> {
        let rows = logits.dims()[0];
        let largest = logits.clone().max_dim(1);
        let hit = logits.clone().gather(1, targets.clone().reshape([rows, 1])).greater_equal(largest);
        let hits = to_host(hit.float());
        let nll = to_host_f64(B::token_nll(logits, targets));
        nll.into_iter().zip(hits).map(|(nll, hit)| Self { nll, is_likeliest: hit > 0.5 }).collect()
    }
}

/// These methods are for public text only.
impl<B: Kernels> InferenceModel<B> {
    /// Returns the summed negative log-likelihood in nats, and the number of target tokens.
    ///
    /// # Errors
    /// [`InferenceError::Example`] for an example that does not fit the network, here and below.
    pub fn nll(&self, examples: &[Example]) -> Result<(f64, u64), InferenceError> {
        let targets = examples.iter().map(|example| example.targets.len() as u64).sum();
        Ok((self.nll_each(examples)?.into_iter().sum(), targets))
    }

    /// Returns the negative log-likelihood of each example's targets, in nats.
    ///
    /// # Errors
    /// As [`InferenceModel::nll`].
    pub fn nll_each(&self, examples: &[Example]) -> Result<Vec<f64>, InferenceError> {
        self.by_batch(examples, |weights, batch, piece| {
            let targets = batch.targets.clone();
            let width = targets.dims()[1];
            let nll = to_host_f64(B::token_nll(self.network.logits(weights, batch), flat(targets)));
            rows(&nll, width, piece).map(|row| row.iter().sum()).collect()
        })
    }

    /// Returns the prediction of each target of each example.
    ///
    /// # Errors
    /// As [`InferenceModel::nll`].
    pub fn predictions(&self, examples: &[Example]) -> Result<Vec<Vec<Prediction>>, InferenceError> {
        self.by_batch(examples, |weights, batch, piece| {
            let targets = batch.targets.clone();
            let width = targets.dims()[1];
            let all = Prediction::of(self.network.logits(weights, batch), flat(targets));
            rows(&all, width, piece).map(<[Prediction]>::to_vec).collect()
        })
    }

    /// Returns the logits of the labels of each example: one list for the whole text, or one for each of its words.
    ///
    /// # Errors
    /// As [`InferenceModel::nll`].
    pub(crate) fn label_logits(&self, examples: &[Example]) -> Result<Vec<Vec<Vec<f32>>>, InferenceError> {
        let outputs = self.network.outputs();
        self.by_batch(examples, |weights, batch, piece| {
            let rows = batch.tokens.dims()[0];
            let logits = to_host(self.network.logits(weights, batch));
            let of_row = logits.len() / rows;
            let of_example = |(row, example): (usize, &Example)| {
                let count = match self.network.shape().predictions {
                    Predictions::OfText(_) => 1,
                    _ => example.positions.len(),
                };
                let own = &logits[row * of_row..][..count * outputs];
                own.chunks_exact(outputs).map(<[f32]>::to_vec).collect()
            };
            piece.iter().enumerate().map(of_example).collect()
        })
    }

    /// Returns the hidden states of each example's tokens.
    ///
    /// # Errors
    /// As [`InferenceModel::nll`].
    pub(super) fn hidden_each(&self, examples: &[Example]) -> Result<Vec<Vec<Vec<f32>>>, InferenceError> {
        self.by_batch(examples, |weights, batch, piece| {
            let hidden = self.network.hidden(weights, &batch);
            let [rows, seq, d] = hidden.dims();
            let flat = to_host(hidden.reshape([rows * seq, d]));
            let of_example = |(row, example): (usize, &Example)| {
                let own = &flat[row * seq * d..][..example.input.len() * d];
                own.chunks_exact(d).map(<[f32]>::to_vec).collect()
            };
            piece.iter().enumerate().map(of_example).collect()
        })
    }

    /// Returns the prediction of the class of each example's sentence pair, for examples that have
    /// one.
    ///
    /// # Errors
    /// As [`InferenceModel::nll`].
    pub(crate) fn sentence_predictions(
        &self,
        examples: &[Example],
    ) -> Result<Vec<Prediction>, InferenceError> {
        let found = self.by_batch(examples, |weights, batch, piece| {
            let classes = batch.sentences.clone();
            let logits = self.network.sentence_logits(weights, batch);
            let all = logits.map(|logits| Prediction::of(logits, classes));
            let of_pair = |(row, example): (usize, &Example)| {
                all.as_ref().filter(|_| example.sentence.is_some()).map(|all| all[row])
            };
            piece.iter().enumerate().map(of_pair).collect()
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Applies `measure` to batches of examples of similar length, padded to that length alone, and returns the results in the examples'
    /// order. Each rank measures its own batches, and all get all results.
    fn by_batch<T: Send + Flat>(
        &self,
        examples: &[Example],
        measure: impl Fn(&Weights<B>, Batch<B>, &[Example]) -> Vec<T> + Sync,
    ) -> Result<Vec<T>, InferenceError> {
        self.network.check(examples)?;
        let shape = self.network.shape();
        let groups = by_length(examples, LENGTH_STEP, |_| self.physical_batch);
        let own = groups.iter().skip(self.ranks.rank()).step_by(self.ranks.count());
        let own: Vec<&(usize, Vec<usize>)> = own.collect();
        let work = |weights: &Weights<B>, &(input, members): &&(usize, Vec<usize>)| {
            let piece: Vec<Example> = members.iter().map(|&at| examples[at].clone()).collect();
            let rows = piece.len().next_power_of_two().min(self.physical_batch);
            let shape = Shape { input: shape.input.min(*input), ..shape };
            let batch = Batch::new(&piece, rows, shape, weights.dtype(), &self.device);
            measure(weights, batch, &piece)
        };
        let join = |mut all: Vec<Vec<T>>, part: Vec<T>| {
            all.push(part);
            all
        };
        let own = Reduce::on_threads(B::workers()).fold(&own, &self.weights, work, Vec::new(), join);
        Ok(in_order(&groups, shared(own, &self.ranks).into_iter().flatten()))
    }
}

/// Lengths of batches are multiples of this.
const LENGTH_STEP: usize = 8;

/// Returns the values of each example's own targets among those of a padded batch, whose rows have `width` targets.
fn rows<'a, T>(all: &'a [T], width: usize, piece: &'a [Example]) -> impl Iterator<Item = &'a [T]> {
    piece.iter().enumerate().map(move |(row, example)| &all[row * width..][..example.targets.len()])
}

/// Returns the results of all batches in order, given those of this rank's own batches.
fn shared<T: Flat>(own: Vec<Vec<T>>, ranks: &Ranks) -> Vec<Vec<T>> {
    if !ranks.are_several() {
        return own;
    }
    let mut numbers = Vec::new();
    own.write(&mut numbers);
    let bytes: Vec<u8> = numbers.into_iter().flat_map(f64::to_le_bytes).collect();
    let eight = |bytes: &[u8]| bytes.try_into().map_or(f64::NAN, f64::from_le_bytes);
    let of_ranks = ranks.exchange(&bytes).into_iter().map(|bytes| {
        let numbers: Vec<f64> = bytes.chunks_exact(8).map(eight).collect();
        Vec::<Vec<T>>::read(&mut numbers.into_iter()).into_iter()
    });
    let mut of_ranks: Vec<_> = of_ranks.collect();
    let batches = of_ranks.iter().map(ExactSizeIterator::len).sum();
    let ranks = of_ranks.len();
    (0..batches).filter_map(|batch: usize| of_ranks[batch % ranks].next()).collect()
}

/// A result that can be written as numbers, so that ranks can send it to one another.
trait Flat: Sized {
    fn write(&self, numbers: &mut Vec<f64>);

    /// Reads what [`Flat::write`] wrote. After the last number it reads NaN.
    fn read(numbers: &mut impl Iterator<Item = f64>) -> Self;
}

impl Flat for f64 {
    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.push(*self);
    }

    fn read(numbers: &mut impl Iterator<Item = f64>) -> Self {
        numbers.next().unwrap_or(f64::NAN)
    }
}

impl Flat for f32 {
    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.push((*self).into());
    }

    fn read(numbers: &mut impl Iterator<Item = f64>) -> Self {
        f64::read(numbers) as f32
    }
}

impl Flat for Prediction {
    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.extend([self.nll, u8::from(self.is_likeliest).into()]);
    }

    fn read(numbers: &mut impl Iterator<Item = f64>) -> Self {
        Self { nll: f64::read(numbers), is_likeliest: f64::read(numbers) > 0.5 }
    }
}

impl<T: Flat> Flat for Option<T> {
    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.push(u8::from(self.is_some()).into());
        self.iter().for_each(|value| value.write(numbers));
    }

    fn read(numbers: &mut impl Iterator<Item = f64>) -> Self {
        Vec::read(numbers).pop()
    }
}

impl<T: Flat> Flat for Vec<T> {
    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.push(self.len() as f64);
        self.iter().for_each(|value| value.write(numbers));
    }

    fn read(numbers: &mut impl Iterator<Item = f64>) -> Self {
        let length = f64::read(numbers) as usize;
        (0..length).map(|_| T::read(numbers)).collect()
    }
}

fn flat<B: Kernels>(targets: Tensor<B, 2, Int>) -> Tensor<B, 1, Int> {
    let [rows, width] = targets.dims();
    targets.reshape([rows * width])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use mechanisms::{PrivacyRng, Purpose, TestRng};
    use serde_json::json;

    use super::*;
    use crate::network_tests::testing::network;
    use crate::ranks::threads::on_ranks;
    use network::tensor::{Flex, FlexDevice};

    #[test]
    fn a_rank_measures_its_own_batches_and_all_get_the_results_of_one_process() {
        let examples: Vec<Example> = (0..17_u32)
            .map(|n| Example::causal(&(0..3 + n % 5).map(|at| (n + at) % 20).collect::<Vec<_>>()))
            .collect();
        let measured = |ranks: &Ranks| {
            let network = network(&json!({ "family": "gpt2" }), "causal_lm", 20);
            let mut init = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
            let weights = Weights::<Flex>::initialize(network.specs(), &mut init, &FlexDevice);
            let model = InferenceModel::of_weights(network, weights, 3, FlexDevice).on_ranks(ranks);
            let own = AtomicUsize::new(0);
            let count = |_: &Weights<Flex>, _, piece: &[Example]| {
                own.fetch_add(1, Ordering::Relaxed);
                piece.iter().map(|example| f64::from(example.input[0])).collect()
            };
            let inputs = model.by_batch(&examples, count).unwrap();
            (own.into_inner(), inputs, model.predictions(&examples).unwrap())
        };
        let (_, inputs, predictions) = measured(&Ranks::alone());
        assert_eq!(inputs, examples.iter().map(|example| f64::from(example.input[0])).collect::<Vec<_>>());
        // Six batches of up to three examples, all of which have the same number of tokens after rounding up.
        for (count, most) in [(2, 3), (4, 2), (7, 1)] {
            let ranks = on_ranks(count, measured);
            assert_eq!(ranks.iter().map(|rank| rank.0).sum::<usize>(), 6);
            for (own, of_all, predicted) in ranks {
                assert!(own <= most && of_all == inputs && predicted == predictions, "{own} of 6 batches");
            }
        }
    }
}
