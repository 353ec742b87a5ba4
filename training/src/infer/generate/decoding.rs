//! Computes the logits of texts that grow token by token, in one batch.

use crate::infer::{InferenceError, InferenceModel};
use network::Example;
use network::model::{Batch, Predictions, Shape};
use network::nn::{Cache, Kernels};
use network::tensor::to_host;

/// The beginning of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The tokens that the encoder reads; empty without an encoder. Only the last `context` tokens
    /// are read.
    pub encoder_input: Vec<u32>,
    /// The first tokens of the text: at least one.
    pub written: Vec<u32>,
}

/// Texts that are generated token by token. Each row is one text.
///
/// A decoder without an encoder reads the last `context` tokens of a text. Once a text is longer, each new token moves all
/// positions, so nothing cached is valid and the whole window is computed.
pub(crate) struct Decoding<'a, B: Kernels> {
    model: &'a InferenceModel<B>,
    cache: Cache<B>,
    /// Each row's place in the cache. A text that has outgrown the context has none.
    places: Vec<Option<usize>>,
}

impl<'a, B: Kernels> Decoding<'a, B> {
    /// Reads the prompts. Returns the logits of the next token of each.
    pub fn start(
        model: &'a InferenceModel<B>,
        prompts: &[Prompt],
    ) -> Result<(Self, Vec<Vec<f32>>), InferenceError> {
        let (mut caches, mut places, mut logits) = (Vec::new(), Vec::new(), Vec::new());
        for prompt in prompts {
            let (cache, next) = model.read(prompt)?;
            places.push(cache.is_some().then_some(caches.len()));
            caches.extend(cache);
            logits.push(next);
        }
        Ok((Self { model, cache: Cache::join(caches), places }, logits))
    }

    /// Returns the logits of the token after each text. Text i is the text of the previous call's
    /// row `parents[i]` and one more token.
    ///
    /// The text of an encoder–decoder must fit the decoder ([`InferenceModel::most_written`]).
    pub fn next_logits(
        &mut self,
        parents: &[usize],
        texts: &[Vec<u32>],
    ) -> Result<Vec<Vec<f32>>, InferenceError> {
        let context = self.model.text_context();
        let (mut kept, mut places) = (Vec::new(), Vec::new());
        for (&parent, text) in parents.iter().zip(texts) {
            let place = self.places[parent].filter(|_| text.len() <= context);
            places.push(place.map(|_| kept.len()));
            kept.extend(place);
        }
        self.cache.select(&kept);
        self.places = places;
        let cached = texts.iter().zip(&self.places).filter(|(_, place)| place.is_some());
        let last: Vec<u32> = cached.filter_map(|(text, _)| text.last().copied()).collect();
        let mut of_cached = self.model.step(&mut self.cache, &last).into_iter();
        let rows = texts.iter().zip(&self.places);
        rows.map(|(text, place)| match place {
            Some(_) => Ok(of_cached.next().unwrap_or_default()),
            None => self.model.next_token_logits(text, &[]),
        })
        .collect()
    }
}

impl<B: Kernels> InferenceModel<B> {
    /// Returns the length of the longest text that the model predicts without moving positions.
    fn text_context(&self) -> usize {
        let shape = self.network.shape();
        shape.decoder.unwrap_or(shape.input)
    }

    /// Returns the largest number of tokens that the model reads at once: those of the encoder, if it has one.
    pub(crate) fn input_context(&self) -> usize {
        self.network.shape().input
    }

    /// Returns the largest number of tokens that can be generated, or [`None`] without a limit.
    pub(crate) fn most_written(&self) -> Option<usize> {
        self.network.shape().decoder
    }

    /// Returns the largest number of tokens of an answer to each of these prompts, none of which is
    /// longer than the context.
    pub(crate) fn most_answered(&self, prompts: &[Prompt]) -> usize {
        let longest = prompts.iter().map(|prompt| prompt.written.len()).max().unwrap_or(0);
        let unread = || (self.text_context() + 1).saturating_sub(longest).max(1);
        self.most_written().unwrap_or_else(unread)
    }

    fn read(&self, prompt: &Prompt) -> Result<(Option<Cache<B>>, Vec<f32>), InferenceError> {
        let Prompt { encoder_input, written } = prompt;
        let example = match self.network.shape().decoder {
            Some(_) => {
                let input = self.window(encoder_input).to_vec();
                Example { input, decoder_input: written.clone(), ..Example::default() }
            }
            None if written.len() > self.text_context() => {
                return Ok((None, self.next_token_logits(written, &[])?));
            }
            None => Example { input: written.clone(), ..Example::default() },
        };
        let mut cache = Cache::default();
        let batch = self.batch(&example)?;
        let logits = to_host(self.network.next_logits(&self.weights, &mut cache, &batch));
        Ok((Some(cache), logits))
    }

    /// Reads one more token of each row.
    fn step(&self, cache: &mut Cache<B>, tokens: &[u32]) -> Vec<Vec<f32>> {
        if tokens.is_empty() {
            return Vec::new();
        }
        let has_decoder = self.network.shape().decoder.is_some();
        let example = |&token: &u32| match has_decoder {
            true => Example { decoder_input: vec![token], ..Example::default() },
            false => Example { input: vec![token], ..Example::default() },
        };
        let examples: Vec<Example> = tokens.iter().map(example).collect();
        let predictions = Predictions::EachPosition;
        let shape = Shape { input: 1, decoder: has_decoder.then_some(1), predictions };
        let batch = Batch::new(&examples, tokens.len(), shape, self.weights.dtype(), &self.device);
        let flat = to_host(self.network.next_logits(&self.weights, cache, &batch));
        flat.chunks_exact(self.network.vocab_size()).map(<[f32]>::to_vec).collect()
    }
}
