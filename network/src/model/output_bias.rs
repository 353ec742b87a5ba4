//! Initial weights by which a model predicts tokens by their frequencies, whatever it reads.
//!
//! Few noisy steps do not even learn how frequent tokens are. Where the frequencies are known (released words tell them), the
//! model can start from them: the logit of token v gets the bias b(v) = log p(v).
//!
//! A head with a bias takes b as it is. Without one, the rows E(v) of its table get b(v)/s·u, where u is a unit vector along which
//! the hidden states h have about the same component s whatever the model reads, so that E(v)·h = … + b(v). A norm with a bias
//! gives this component. An RMS norm has none, so all rows of the token table get a common component: it passes through the
//! residual stream to the last norm.

use super::Network;
use crate::head::{Common, LmHead};
use crate::nn::{Initializer, Kernels, ParamId, Weights};
use crate::tensor::{FloatDType, from_host, to_host};

/// Length of the common component of a token's row, relative to the expected length of its random part. Measured: T5 of width 64,
/// 50 steps of 128 on notes, ε = 8, perplexity 75.7, 73.9, 75.2 and 80.1 with 0.5, 0.7, 1 and 2.
const COMMON_LENGTH: f64 = 0.7;

/// Approximate factor by which the blocks increase the squared length of the random part of the residual stream.
const GROWTH: f64 = 1.5;

impl Network {
    /// Changes initial weights so that the model leans towards predicting token v with the probability exp(b(v)), whatever it reads:
    /// the slope of the mean logits over b is 1 with a bias of the head, 0.4 to 1.1 with that of a norm, and 0.3 to 1 with a
    /// common component of the token table (width 64, random tokens); 0.15 in OLMo 2, whose parts outweigh the table. Tokens beyond those given are as rare as the rarest. A model
    /// without a head for tokens stays as it is.
    ///
    /// # Shapes
    /// - log_probabilities: at most `[vocabulary]`, in nats
    pub fn set_output_bias<B: Kernels>(&self, weights: &mut Weights<B>, log_probabilities: &[f32]) {
        let Some(head) = self.token_head() else { return };
        let rarest = log_probabilities.iter().copied().fold(0.0, f32::min);
        let mut bias = log_probabilities.to_vec();
        bias.resize(self.vocab_size(), rarest);
        // Softmax ignores a constant. Centred, the biases of the tokens that occur are small.
        let mean: f64 = bias.iter().map(|&b| f64::from(b).exp() * f64::from(b)).sum::<f64>()
            / bias.iter().map(|&b| f64::from(b).exp()).sum::<f64>();
        bias.iter_mut().for_each(|b| *b = (f64::from(*b) - mean) as f32);
        let mut values: Vec<_> =
            (0..weights.model_specs().len()).map(|at| weights.model_value(ParamId(at))).collect();
        for (param, added) in self.additions(head, weights, &bias) {
            let device = values[param.0].device();
            let mut host = to_host(values[param.0].clone());
            host.iter_mut().zip(added).for_each(|(value, added)| *value += added);
            let length = host.len();
            values[param.0] = from_host(host, [length], FloatDType::F32, &device);
        }
        weights.replace_model(values);
    }

    /// Returns the parameters to change, each with the numbers to add to its elements.
    fn additions<B: Kernels>(
        &self,
        head: LmHead,
        weights: &Weights<B>,
        bias: &[f32],
    ) -> Vec<(ParamId, Vec<f32>)> {
        if let Some(own) = head.logits.bias {
            return vec![(own, bias.to_vec())];
        }
        let specs = weights.model_specs();
        let d = specs[head.logits.table.0].shape[1];
        // The unit vector u has equal shares of all coordinates, in turn above and below 0: a norm subtracts the mean of the
        // coordinates, which is 0.
        let unit = |at: usize| (if at.is_multiple_of(2) { 1.0 } else { -1.0 }) / (d as f64).sqrt();
        let scale = head.scale.unwrap_or(1.0);
        let along_unit = |length: f64| (0..d).map(move |at| (length * unit(at)) as f32);
        let rows = |component: f64| {
            let row = move |b: &f32| {
                let along = f64::from(*b) / (scale * component);
                (0..d).map(move |at| (along * unit(at)) as f32)
            };
            bias.iter().flat_map(row).collect()
        };
        // The output of a norm has a length of √d.
        let length = (d as f64).sqrt();
        match head.common {
            None => Vec::new(),
            Some(Common::NormBias(shift)) => {
                vec![(shift, along_unit(length).collect()), (head.logits.table, rows(length))]
            }
            Some(Common::TokenTable(tokens)) => {
                let Initializer::Normal { std } = specs[tokens.0].initial else { return Vec::new() };
                let random = std * length;
                // Along u, the rows' common component must outweigh the differences between tokens.
                let most = bias.iter().fold(0.0_f32, |most, b| most.max(b.abs()));
                let common = (COMMON_LENGTH * random).max(f64::from(most) / (scale * length));
                let share = common / (common * common + GROWTH * random * random).sqrt();
                let same = (0..specs[tokens.0].shape[0]).flat_map(|_| along_unit(common));
                vec![(tokens, same.collect()), (head.logits.table, rows(share * length))]
            }
        }
    }
}
