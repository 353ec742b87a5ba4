//! Text from a finished run's model.

use std::path::Path;

use mechanisms::{OsRng, PrivacyRng, Purpose, Stream, TestRng};
use plan::Device;

use super::{InferenceError, InferenceModel, ModelTask, RunModel, with_model};
use crate::RunError;
use crate::data::Example;
use crate::nn::{Cache, Kernels};
use crate::objective::{Generation, end_of_text};
use crate::tensor::to_host;

/// How to sample text.
#[derive(Clone, Debug)]
pub(crate) struct Sampling {
    /// The beginning of the text; may be empty.
    pub prompt: String,
    /// Maximum number of tokens. The end-of-text token ends the text earlier.
    pub tokens: usize,
    /// Divides the logits: text is safer below 1 and wilder above 1; 0 always takes the likeliest token.
    pub temperature: f64,
    /// Makes the text reproducible.
    pub seed: Option<u64>,
}

/// Continues the prompt with a run's model. An encoder–decoder answers the prompt instead; it replaces each sentinel
/// (`<extra_id_0>` …).
///
/// # Errors
/// [`RunError::Refused`] if the folder holds no finished model, the model generates no text, or the temperature is not a
/// finite number of at least 0.
pub(crate) fn generate(folder: &Path, device: Device, sampling: &Sampling) -> Result<String, RunError> {
    if !(sampling.temperature >= 0.0 && sampling.temperature.is_finite()) {
        return Err(RunError::Refused(format!(
            "--temperature: {} is out of range; allowed: a finite number of at least 0",
            sampling.temperature
        )));
    }
    let stream = match sampling.seed {
        Some(seed) => TestRng::from_seed(seed).stream(Purpose::Generation, 0, 0),
        None => OsRng::new().map_err(|error| RunError::Failed(error.to_string()))?.stream(
            Purpose::Generation,
            0,
            0,
        ),
    };
    with_model(folder, device, Generate { sampling, stream })
}

struct Generate<'a> {
    sampling: &'a Sampling,
    stream: Stream,
}

impl ModelTask for Generate<'_> {
    type Output = String;

    fn run<B: Kernels>(mut self, run: &RunModel<B>) -> Result<String, RunError> {
        let RunModel { model, tokenizer, objective, .. } = run;
        let end = end_of_text(tokenizer)?;
        let prompt = tokenizer.encode(&self.sampling.prompt);
        let (encoder_input, mut written) = match objective.generation() {
            Generation::Continuation => (Vec::new(), [vec![end], prompt].concat()),
            Generation::FromDecoder { start } => ([prompt, vec![end]].concat(), vec![start]),
            Generation::None => {
                return Err(RunError::Refused(
                    "generate: this model fills masked places and does not write text; use eval, or load the run with \
                     transformers' fill-mask pipeline"
                        .to_owned(),
                ));
            }
        };
        let mut decoding = model.decoding(&encoder_input);
        for _ in 0..self.sampling.tokens {
            let Some(logits) = decoding.next_logits(&written).map_err(failed)? else { break };
            // A checkpoint's vocabulary may end with rows that stand for no token.
            let known = &logits[..logits.len().min(tokenizer.vocab_size())];
            let next = draw(known, self.sampling.temperature, self.stream.uniform());
            if next == end {
                break;
            }
            written.push(next);
        }
        Ok(tokenizer.decode(&written[1..]))
    }
}

fn failed(error: InferenceError) -> RunError {
    RunError::Failed(error.to_string())
}

/// A text that is generated token by token.
pub(crate) struct Decoding<'a, B: Kernels> {
    model: &'a InferenceModel<B>,
    /// Empty without an encoder.
    encoder_input: Vec<u32>,
    cache: Cache<B>,
}

impl<B: Kernels> InferenceModel<B> {
    /// Starts a text. The encoder, if there is one, reads the last tokens of `encoder_input`.
    pub(crate) fn decoding(&self, encoder_input: &[u32]) -> Decoding<'_, B> {
        let encoder_input = self.window(encoder_input).to_vec();
        Decoding { model: self, encoder_input, cache: Cache::default() }
    }
}

impl<B: Kernels> Decoding<'_, B> {
    /// Logits of the token after `written`, or [`None`] if the decoder takes no longer text. `written` begins with the tokens of
    /// the previous call.
    ///
    /// A decoder without an encoder reads the last `context` tokens. Once the text is longer, each new token moves all positions,
    /// so nothing cached is valid and the whole window is computed.
    pub fn next_logits(&mut self, written: &[u32]) -> Result<Option<Vec<f32>>, InferenceError> {
        let model = self.model;
        let shape = model.network.shape();
        if written.len() > shape.decoder.unwrap_or(shape.input) {
            return match shape.decoder {
                Some(_) => Ok(None),
                None => model.next_token_logits(written, &[]).map(Some),
            };
        }
        let new = written[self.cache.positions()..].to_vec();
        let example = match shape.decoder {
            Some(_) => {
                let input = self.encoder_input.clone();
                Example { input, decoder_input: new, ..Example::default() }
            }
            None => Example { input: new, ..Example::default() },
        };
        let batch = model.batch(&example)?;
        let logits = model.network.next_logits(&model.weights, &mut self.cache, &batch);
        Ok(Some(to_host(logits)))
    }
}

/// The token at quantile `uniform` of the softmax of `logits / temperature`.
fn draw(logits: &[f32], temperature: f64, uniform: f64) -> u32 {
    let likeliest = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap_or(0);
    if temperature == 0.0 {
        return likeliest as u32;
    }
    let top = f64::from(logits[likeliest]);
    let weights: Vec<f64> =
        logits.iter().map(|&logit| ((f64::from(logit) - top) / temperature).exp()).collect();
    let mut left = uniform * weights.iter().sum::<f64>();
    for (token, weight) in weights.iter().enumerate() {
        left -= weight;
        if left <= 0.0 {
            return token as u32;
        }
    }
    likeliest as u32
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::dp::reference::moved_weights;
    use crate::model::testing;
    use crate::tensor::{Flex, FlexDevice};

    const VOCABULARY: u64 = 23;
    const CONTEXT: usize = 14;

    fn model(model: &Value, objective: &str) -> InferenceModel<Flex> {
        let network = testing::network(model, objective, VOCABULARY as usize);
        let weights = moved_weights(&network, 5, &FlexDevice);
        InferenceModel::of_weights(network, weights, 1, FlexDevice)
    }

    /// Oracle: the whole text, computed anew for each token. The prompt has several tokens, and the text outgrows the context.
    #[test]
    fn cached_logits_are_those_of_the_whole_text() {
        for (family, objective) in [
            (json!({ "family": "gpt2" }), "causal_lm"),
            (json!({ "family": "decoder", "kv_heads": 1, "d_head": 6 }), "causal_lm"),
            (json!({ "family": "decoder", "kv_heads": 2, "d_head": 4, "untied": true }), "causal_lm"),
            (json!({ "family": "llama", "kv_heads": 1, "untied": true }), "causal_lm"),
            (json!({ "family": "feed_forward", "history": 3, "hidden": [9, 7] }), "causal_lm"),
            (json!({ "family": "t5" }), "span_corruption"),
            (json!({ "family": "t5_v1_1" }), "prefix_lm"),
        ] {
            let model = model(&family, objective);
            let mut stream = TestRng::from_seed(3).stream(Purpose::Data, 0, 0);
            let mut tokens =
                |count: usize| -> Vec<u32> { (0..count).map(|_| stream.below(VOCABULARY) as u32).collect() };
            let has_encoder = model.network.shape().decoder.is_some();
            let (encoder_input, text) =
                (if has_encoder { tokens(9) } else { Vec::new() }, tokens(CONTEXT + 4));
            let mut decoding = model.decoding(&encoder_input);
            let mut moved = 0.0_f32;
            for length in [3].into_iter().chain(4..=text.len()) {
                let written = &text[..length];
                let Some(cached) = decoding.next_logits(written).unwrap() else {
                    assert!(length > model.network.shape().decoder.unwrap(), "{family}");
                    break;
                };
                let whole = match has_encoder {
                    true => model.next_token_logits(&encoder_input, written).unwrap(),
                    false => model.next_token_logits(written, &[]).unwrap(),
                };
                let worst = cached.iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                let largest = whole.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
                // Products with one row add their terms in another order than products with many: some roundings of 6e-8.
                assert!(
                    worst <= 2e-6 * largest.max(1.0) && cached.len() == whole.len(),
                    "{family} {length}: {worst}"
                );
                moved = moved.max(largest);
            }
            assert!(moved > 0.05, "{family}: logits must not vanish");
        }
    }

    #[test]
    fn a_token_is_drawn_as_often_as_its_softmax_says() {
        let logits = [0.0_f32, 1.0, -1.0];
        let total: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        let edge = 1.0 / total;
        assert_eq!(draw(&logits, 1.0, edge - 1e-9), 0);
        assert_eq!(draw(&logits, 1.0, edge + 1e-9), 1);
        assert_eq!(draw(&logits, 1.0, 1.0 - 1e-9), 2);
        assert_eq!(draw(&logits, 0.0, 0.999), 1);
    }
}
