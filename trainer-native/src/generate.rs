//! Text from a finished run, and its perplexity on public text.

use std::path::Path;

use dp_tokenizer::Tokenizer;
use mechanisms::{OsRng, PrivacyRng, Purpose, Stream, TestRng};
use plan::Device;

use crate::data::read_public_file;
use crate::device::{OnDevice, on_device};
use crate::eval::{Evaluation, HeldOut};
use crate::nn::Kernels;
use crate::objective::{Generation, Objective, end_of_text};
use crate::plan_file::read_uncertified;
use crate::store::files;
use crate::tensor_file::read_tensors;
use crate::train::{TrainError, Trainer};
use crate::{RunError, durable, memory, vocabulary};

/// How to draw text.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// How the text begins; may be empty.
    pub prompt: String,
    /// Tokens to draw at most; the end-of-text token ends it earlier.
    pub tokens: usize,
    /// Divides the logits: below 1 safer, above 1 wilder; 0 always takes the likeliest.
    pub temperature: f64,
    /// Makes the text repeatable.
    pub seed: Option<u64>,
}

/// Continues the prompt with the run's model, or has an encoder–decoder answer it: a prompt with sentinels
/// (`<extra_id_0>` …) gets what stands for each.
///
/// # Errors
/// [`RunError::Refused`] if the folder holds no finished model or the temperature is not a number of at least 0.
pub fn generate(folder: &Path, device: Device, sampling: &Sampling) -> Result<String, RunError> {
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

/// Figures of the run's model on a public text file.
///
/// # Errors
/// [`RunError::Refused`] if the folder holds no finished model or the text cannot be read.
pub fn evaluate(folder: &Path, device: Device, text: &Path) -> Result<Evaluation, RunError> {
    with_model(folder, device, Evaluate(text))
}

/// A question to a finished model.
pub(crate) trait Ask {
    /// What comes back.
    type Answer;
    /// Asks the model of a run folder.
    fn ask<B: Kernels>(
        self,
        trainer: &Trainer<B>,
        tokenizer: &Tokenizer,
        objective: &Objective,
    ) -> Result<Self::Answer, RunError>;
}

struct Generate<'a> {
    sampling: &'a Sampling,
    stream: Stream,
}

impl Ask for Generate<'_> {
    type Answer = String;
    fn ask<B: Kernels>(
        mut self,
        trainer: &Trainer<B>,
        tokenizer: &Tokenizer,
        objective: &Objective,
    ) -> Result<String, RunError> {
        let eos = end_of_text(tokenizer)?;
        let ends = [eos as usize, tokenizer.vocab_size()];
        let prompt = tokenizer.encode(&self.sampling.prompt);
        match objective.generation() {
            Generation::Continuation => {
                let tokens = [vec![eos], prompt].concat();
                let written = self.write(ends, tokens, usize::MAX, |read| trainer.next_token_logits(read, &[]))?;
                Ok(tokenizer.decode(&written[1..]))
            }
            Generation::FromDecoder { start } => {
                let (read, longest) = ([prompt, vec![eos]].concat(), trainer.decoder_context().unwrap_or(0));
                let answer = |written: &[u32]| trainer.next_token_logits(&read, written);
                Ok(tokenizer.decode(&self.write(ends, vec![start], longest, answer)?[1..]))
            }
            Generation::None => Err(RunError::Refused(
                "generate: this model fills masked places and does not write text; use eval, or load the run with \
                 transformers' fill-mask pipeline"
                    .to_owned(),
            )),
        }
    }
}

impl Generate<'_> {
    /// Adds tokens, the `known` first of the model's, to `written` until the end-of-text token, the wanted number or
    /// `longest` in all.
    fn write(
        &mut self,
        [eos, known]: [usize; 2],
        mut written: Vec<u32>,
        longest: usize,
        logits: impl Fn(&[u32]) -> Result<Vec<f32>, TrainError>,
    ) -> Result<Vec<u32>, RunError> {
        for _ in 0..self.sampling.tokens {
            if written.len() > longest {
                break;
            }
            let logits = logits(&written).map_err(|error| RunError::Failed(error.to_string()))?;
            // Rows of the table beyond the tokenizer stand for nothing.
            let known = &logits[..logits.len().min(known)];
            let next = draw(known, self.sampling.temperature, self.stream.uniform());
            if next as usize == eos {
                break;
            }
            written.push(next);
        }
        Ok(written)
    }
}

struct Evaluate<'a>(&'a Path);

impl Ask for Evaluate<'_> {
    type Answer = Evaluation;
    fn ask<B: Kernels>(
        self,
        trainer: &Trainer<B>,
        tokenizer: &Tokenizer,
        objective: &Objective,
    ) -> Result<Evaluation, RunError> {
        let held_out = HeldOut::new(&read_public_file(self.0)?, tokenizer, objective)?;
        let nothing = || RunError::Refused("--text: it has no token to predict; give more text".to_owned());
        held_out.ok_or_else(nothing)?.measure(trainer)
    }
}

struct OnModel<'a, A>(&'a Path, Device, A);

impl<A: Ask> OnDevice for OnModel<'_, A> {
    type Output = Result<A::Answer, RunError>;
    fn run<B: Kernels>(self, device: B::Device) -> Self::Output {
        let Self(folder, kind, question) = self;
        files::require_finished(folder)?;
        let plan = read_uncertified(&folder.join(files::PLAN))?;
        let tokenizer = vocabulary::read(folder)?;
        // Drawn only to be replaced by the saved weights.
        let mut init = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
        let refused = |error: TrainError| RunError::Refused(error.to_string());
        let physical_batch = memory::windows_at_once(&plan, kind, B::workers());
        let vocab_size = saved_vocab_size(folder)?;
        // The saved weights are whole, whichever part of them was trained.
        let model = plan::Model { trainable: plan::Trainable::All, ..plan.model().clone() };
        let mut trainer =
            Trainer::<B>::new(&model, plan.training(), vocab_size, &mut init, physical_batch, device)
                .map_err(refused)?;
        trainer.load_weights(read_tensors(&folder.join(files::MODEL))?).map_err(refused)?;
        question.ask(&trainer, &tokenizer, &Objective::new(&plan, &tokenizer)?)
    }
}

/// Number of tokens of the model's table; a checkpoint's may be longer than its tokenizer.
fn saved_vocab_size(folder: &Path) -> Result<usize, RunError> {
    let path = folder.join(files::CONFIG);
    let config: serde_json::Value = serde_json::from_slice(&durable::read(&path)?).unwrap_or_default();
    let size = config["vocab_size"].as_u64().and_then(|size| usize::try_from(size).ok());
    size.ok_or_else(|| RunError::Refused(format!("{}: it has no vocab_size", path.display())))
}

/// Asks the model of a finished run.
pub(crate) fn with_model<A: Ask>(folder: &Path, device: Device, question: A) -> Result<A::Answer, RunError> {
    on_device(device, OnModel(folder, device, question))
        .map_err(|error| RunError::Refused(error.to_string()))?
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
