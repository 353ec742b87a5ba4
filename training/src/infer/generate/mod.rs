//! Generates text with a finished run's model.

mod beam;
pub(crate) mod config;
mod constraints;
mod decoding;
mod prompts;
mod sampling;

use std::ops::Range;
use std::path::Path;

pub use beam::Beams;
pub use beam::EarlyStopping;
pub use config::{TextBounds, UsualGeneration};
use constraints::Constraints;
pub(crate) use decoding::Decoding;
pub use decoding::Prompt;
use mechanisms::{OsRng, PrivacyRng, Purpose, Stream, TestRng};
use plan::Device;
pub use prompts::PromptFile;
pub use prompts::Written;
pub use sampling::TokenSampling;
use tokenizer::Tokenizer;

use super::{InferenceError, InferenceModel, ModelTask, RunModel, with_model};
use crate::RunError;
use crate::objective::{Generation, begin_of_text, end_of_text};
use network::nn::Kernels;

/// Options of text generation.
#[derive(Clone, Debug)]
pub struct GenerationOptions {
    /// Largest number of tokens of a text. The end-of-text token may end it earlier, and so may the
    /// longest output of a decoder.
    pub tokens: usize,
    /// Smallest number of tokens of a text.
    pub min_tokens: usize,
    /// Length of the runs of tokens that may not occur twice in a text; 0 for no such limit.
    pub no_repeat_ngram: usize,
    /// Makes tokens less likely that a text already has, its prompt included, as `transformers` does; 1 for no such penalty.
    pub repetition_penalty: f64,
    /// The last token of a text of the largest number of tokens, if it is not chosen.
    pub last_token: Option<u32>,
    /// Strings that end a text. They are no part of it.
    pub stops: Vec<String>,
    /// The way in which tokens are chosen.
    pub strategy: DecodingStrategy,
    /// Number of prompts that are continued at a time. Affects speed and memory only.
    pub batch: usize,
    /// A seed that makes sampled text reproducible.
    pub seed: Option<u64>,
    /// Index of the first prompt in the random streams of the seed.
    pub first: u64,
}

impl Default for GenerationOptions {
    /// Draws from the model's own distribution.
    fn default() -> Self {
        Self {
            tokens: 64,
            min_tokens: 0,
            no_repeat_ngram: 0,
            repetition_penalty: 1.0,
            last_token: None,
            stops: Vec::new(),
            strategy: DecodingStrategy::Sample(TokenSampling::PLAIN),
            batch: 64,
            seed: None,
            first: 0,
        }
    }
}

/// The way in which tokens are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DecodingStrategy {
    /// Tokens are drawn one after another.
    Sample(TokenSampling),
    /// Tokens are those of the best text that a beam search finds.
    Search(Beams),
}

/// The output of a model for one prompt.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The generated text.
    pub text: String,
    /// The generated text after its prompt, if the model continues its prompt.
    pub whole: String,
}

/// Continues each prompt with a run's model. An encoder–decoder answers the prompts instead; it replaces each sentinel
/// (`<extra_id_0>` …).
///
/// # Errors
/// [`RunError::Refused`] if the folder holds no finished model, or the model generates no text.
pub fn generate(
    folder: &Path,
    device: Device,
    prompts: &[String],
    options: &GenerationOptions,
) -> Result<Vec<Generated>, RunError> {
    with_model(folder, device, Generate { prompts, options })
}

struct Generate<'a> {
    prompts: &'a [String],
    options: &'a GenerationOptions,
}

impl ModelTask for Generate<'_> {
    type Output = Vec<Generated>;

    fn run<B: Kernels>(self, run: &RunModel<B>) -> Result<Vec<Generated>, RunError> {
        run.continued(self.prompts, self.options)
    }
}

impl<B: Kernels> RunModel<B> {
    /// Generates text as [`generate`] does, with this loaded model.
    ///
    /// # Errors
    /// As [`generate`].
    pub fn continued(
        &self,
        prompts: &[String],
        options: &GenerationOptions,
    ) -> Result<Vec<Generated>, RunError> {
        let prompts: Vec<Prompt> =
            prompts.iter().map(|text| self.prompt(&self.encoded(text)?)).collect::<Result<_, _>>()?;
        let stops = [options.stops.as_slice(), &self.stops].concat();
        let options = GenerationOptions { stops, ..options.clone() };
        let texts = self.generate(&prompts, &options)?;
        let decoded = |(prompt, tokens): (&Prompt, &Vec<u32>)| {
            // The token before a text is no part of the prompt, and an answer does not repeat its question.
            let before = match self.objective.generation() {
                Generation::Answer { .. } | Generation::Turn { .. } => &[],
                _ => &prompt.written[1..],
            };
            let mut whole = self.tokenizer.decode(&[before, tokens].concat());
            // If the generated tokens were decoded alone, a blank at their beginning would be lost.
            let text = whole.strip_prefix(&self.tokenizer.decode(before)).map(str::to_owned);
            let mut text = text.unwrap_or_else(|| self.tokenizer.decode(tokens));
            if let Some(end) = options.stops.iter().filter_map(|stop| text.find(stop)).min() {
                whole = whole.strip_suffix(&text[end..]).unwrap_or(&whole).to_owned();
                text.truncate(end);
            }
            Generated { text, whole }
        };
        Ok(prompts.iter().zip(&texts).map(decoded).collect())
    }

    /// Returns the prompt that makes the model continue or answer a text, given as its tokens.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the model generates no text.
    pub fn prompt(&self, text: &[u32]) -> Result<Prompt, RunError> {
        let end = end_of_text(&self.tokenizer)?;
        match self.objective.generation() {
            Generation::Continuation => {
                let first = begin_of_text(&self.tokenizer)?;
                Ok(Prompt { encoder_input: Vec::new(), written: [&[first], text].concat() })
            }
            Generation::Answer { first } => {
                let first: Vec<u32> = first.into_iter().collect();
                Ok(Prompt { encoder_input: Vec::new(), written: [&first, text, &[end]].concat() })
            }
            Generation::Turn { .. } => Ok(Prompt { encoder_input: Vec::new(), written: text.to_vec() }),
            Generation::FromDecoder { start, first } => {
                let first: Vec<u32> = first.into_iter().collect();
                let encoder_input = [&first, text, &[end]].concat();
                Ok(Prompt { encoder_input, written: [vec![start], first].concat() })
            }
            Generation::None => Err(RunError::Refused(
                "generate: this model fills masked places and does not write text; use eval, or load the run with \
                 transformers' fill-mask pipeline"
                    .to_owned(),
            )),
        }
    }

    /// Returns the tokens of a prompt, rendered by the chat template if the model learnt
    /// conversations.
    fn encoded(&self, prompt: &str) -> Result<Vec<u32>, RunError> {
        match self.objective.task() {
            Some(task) => Ok(self.tokenizer.encode(&task.turn(prompt)?)),
            None => Ok(self.tokenizer.encode(prompt)),
        }
    }

    /// Generates tokens as `generate_tokens` does. A turn of a conversation ends at its own
    /// token.
    ///
    /// # Errors
    /// As `generate_tokens`.
    pub fn generate(
        &self,
        prompts: &[Prompt],
        options: &GenerationOptions,
    ) -> Result<Vec<Vec<u32>>, RunError> {
        generate_tokens(&self.model, &self.tokenizer, prompts, self.text_ends()?, options)
    }

    /// Returns the tokens that end a text.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the tokenizer has none.
    pub(crate) fn text_ends(&self) -> Result<Vec<u32>, RunError> {
        let known = |id: &&u32| (**id as usize) < self.tokenizer.vocab_size();
        let mut ends: Vec<u32> = self.ends.iter().filter(known).copied().collect();
        if ends.is_empty() {
            ends.push(match self.objective.generation() {
                Generation::Turn { end } => end,
                _ => end_of_text(&self.tokenizer)?,
            });
        }
        Ok(ends)
    }
}

/// Generates tokens after each prompt, and returns them without the one of `ends` at which they end.
///
/// # Errors
/// [`RunError::Failed`] if a prompt does not fit the model.
pub(super) fn generate_tokens<B: Kernels>(
    model: &InferenceModel<B>,
    tokenizer: &Tokenizer,
    prompts: &[Prompt],
    ends: Vec<u32>,
    options: &GenerationOptions,
) -> Result<Vec<Vec<u32>>, RunError> {
    let constraints = Constraints {
        most: options.tokens.min(model.most_written().unwrap_or(usize::MAX)),
        least: options.min_tokens,
        no_repeat_ngram: options.no_repeat_ngram,
        repetition_penalty: options.repetition_penalty as f32,
        last_token: options.last_token,
        ends,
        known: tokenizer.vocab_size(),
    };
    let mut streams = streams(options.seed, options.first..options.first + prompts.len() as u64)?.into_iter();
    // A token is at least one byte, so that the last tokens hold the whole string.
    let longest = options.stops.iter().map(String::len).max();
    let is_stopped = |generated: &[u32]| {
        longest.is_some_and(|longest| {
            let tail = tokenizer.decode(&generated[generated.len().saturating_sub(longest)..]);
            options.stops.iter().any(|stop| tail.contains(stop.as_str()))
        })
    };
    let mut generated = Vec::with_capacity(prompts.len());
    for batch in prompts.chunks(options.batch.max(1)) {
        let tokens = match &options.strategy {
            DecodingStrategy::Sample(how) => {
                let streams = streams.by_ref().take(batch.len()).collect();
                sampling::sample(model, batch, how, &constraints, is_stopped, streams)
            }
            DecodingStrategy::Search(how) => beam::search(model, batch, how, &constraints),
        };
        generated.extend(tokens.map_err(failed)?);
    }
    Ok(generated)
}

/// Returns one stream of random numbers for each prompt.
fn streams(seed: Option<u64>, prompts: Range<u64>) -> Result<Vec<Stream>, RunError> {
    fn of(rng: &dyn PrivacyRng, prompts: Range<u64>) -> Vec<Stream> {
        prompts.map(|prompt| rng.stream(Purpose::Generation, prompt, 0)).collect()
    }
    Ok(match seed {
        Some(seed) => of(&TestRng::from_seed(seed), prompts),
        None => of(&OsRng::new().map_err(|error| RunError::Failed(error.to_string()))?, prompts),
    })
}

fn failed(error: InferenceError) -> RunError {
    RunError::Failed(error.to_string())
}

#[cfg(test)]
mod keys;
#[cfg(test)]
mod tests;
