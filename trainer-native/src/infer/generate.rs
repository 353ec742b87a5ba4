//! Text from a finished run's model.

use std::path::Path;

use mechanisms::{OsRng, PrivacyRng, Purpose, Stream, TestRng};
use plan::Device;

use super::{InferenceError, InferenceModel, ModelTask, RunModel, with_model};
use crate::RunError;
use crate::nn::Kernels;
use crate::objective::{Generation, end_of_text};

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
        let RunModel { model, tokenizer, objective } = run;
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
}

impl<B: Kernels> InferenceModel<B> {
    /// Starts a text. The encoder, if there is one, reads the last tokens of `encoder_input`.
    pub(crate) fn decoding(&self, encoder_input: &[u32]) -> Decoding<'_, B> {
        Decoding { model: self, encoder_input: self.window(encoder_input).to_vec() }
    }
}

impl<B: Kernels> Decoding<'_, B> {
    /// Logits of the token after `written`, or [`None`] if the decoder takes no longer text.
    pub fn next_logits(&mut self, written: &[u32]) -> Result<Option<Vec<f32>>, InferenceError> {
        match self.model.network.shape().decoder {
            Some(longest) if written.len() > longest => Ok(None),
            Some(_) => self.model.next_token_logits(&self.encoder_input, written).map(Some),
            None => self.model.next_token_logits(written, &[]).map(Some),
        }
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
    use super::*;

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
