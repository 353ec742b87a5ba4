//! Draws the texts of batches, token by token.

use std::ops::Range;

use mechanisms::{PrivacyRng, Purpose, Stream};
use plan::CertifiedParaphrase;

use super::references::Batch;
use crate::RunError;
use crate::disclosure::Private;
use crate::dp::Reduce;
use crate::infer::{Decoding, InferenceError, Prompt, RunModel};
use network::nn::Kernels;

/// The model that writes, and how.
pub(super) struct Draw<'a, B: Kernels> {
    model: &'a RunModel<B>,
    certified: &'a CertifiedParaphrase,
    /// The tokens that end a text.
    ends: Vec<u32>,
    /// Largest number of tokens of a text.
    tokens: usize,
    /// The prompts of each label, or those of the single group.
    prompts: Vec<Prompts>,
}

/// The prompts of a label.
struct Prompts {
    /// The prompt without a reference.
    public: Prompt,
    /// The tokens of the prompt before and after a reference.
    around: [Vec<u32>; 2],
    /// Largest number of tokens that are read of a reference.
    room: usize,
}

impl<'a, B: Kernels> Draw<'a, B> {
    /// Encodes the prompts.
    ///
    /// # Errors
    /// [`RunError::Refused`] if prompts and text leave no room for a reference in the model's context.
    pub fn new(model: &'a RunModel<B>, certified: &'a CertifiedParaphrase) -> Result<Self, RunError> {
        let file = &certified.file;
        let most = model.model.most_written();
        let tokens = most.unwrap_or(usize::MAX).min(usize::try_from(file.tokens).unwrap_or(usize::MAX));
        let labels: Vec<&str> = match file.labels.as_slice() {
            [] => vec![""],
            labels => labels.iter().map(String::as_str).collect(),
        };
        let prompts = labels.into_iter().map(|label| {
            let encoded = |text: &str| model.tokenizer.encode(&text.replace("{label}", label));
            let (before, after) = file.prompt.split_once("{text}").unwrap_or((file.prompt.as_str(), ""));
            let around = [encoded(before), encoded(after)];
            let empty = model.prompt(&around.concat())?;
            // The written text follows the prompt unless an encoder reads the prompt.
            let (read, written) = match most {
                Some(_) => (empty.encoder_input.len(), 0),
                None => (empty.written.len(), tokens),
            };
            let room = model.model.input_context().saturating_sub(read + written);
            if room == 0 {
                return Err(RunError::Refused(format!(
                    "tokens: {tokens} tokens of a text and {read} of its prompt leave no room for a private record; allowed: fewer than the {} \
                     tokens that the model reads; fix: lower tokens, shorten prompt, or use a model with a longer context",
                    model.model.input_context()
                )));
            }
            Ok(Prompts { public: model.prompt(&encoded(&file.public_prompt))?, around, room })
        });
        let prompts = prompts.collect::<Result<_, RunError>>()?;
        Ok(Self { model, certified, ends: model.text_ends()?, tokens, prompts })
    }

    /// Draws the texts of some batches.
    ///
    /// # Guarantee
    /// Each token is a draw of the exponential mechanism of `certified`: a reference gives one row of logits, which is computed without other
    /// references (see `plan/src/certify/paraphrase.rs`).
    ///
    /// # Errors
    /// [`RunError::Failed`] if a prompt does not fit the model.
    pub fn texts(
        &self,
        range: Range<u64>,
        batches: &Private<Vec<Batch>>,
        rng: &dyn PrivacyRng,
    ) -> Result<Vec<String>, RunError> {
        let batches = batches.for_mechanism();
        let numbers: Vec<u64> = range.collect();
        let work = |(): &(), number: &u64| {
            let mut stream = rng.stream(Purpose::Tokens, *number, 0);
            self.tokens(&batches[*number as usize], &mut stream)
        };
        let add = |mut all: Vec<_>, tokens| {
            all.push(tokens);
            all
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let drawn = Reduce::on_threads(threads).fold(&numbers, &(), work, Vec::new(), add);
        let decoded =
            |tokens: Result<Vec<u32>, RunError>| Ok(self.model.tokenizer.decode(&tokens?).trim().to_owned());
        drawn.into_iter().map(decoded).collect()
    }

    /// Draws the tokens of a text, without the one that ends it.
    fn tokens(&self, batch: &Batch, stream: &mut Stream) -> Result<Vec<u32>, RunError> {
        let prompts = &self.prompts[batch.label];
        let mut public = Row::start(self.model, prompts.public.clone())?;
        let mut rows = Vec::with_capacity(batch.texts.len());
        for text in &batch.texts {
            let mut tokens = self.model.tokenizer.encode(text);
            tokens.truncate(prompts.room);
            let [before, after] = &prompts.around;
            let prompt = self.model.prompt(&[before, tokens.as_slice(), after].concat())?;
            rows.push(Row::start(self.model, prompt)?);
        }
        let mut drawn = Vec::new();
        while drawn.len() < self.tokens {
            let mechanism = &self.certified.mechanism;
            let mut scores = mechanism.scores(&public.logits, &self.candidates(&public.logits, drawn.len()));
            rows.iter().for_each(|row| scores.add(&row.logits));
            let Some(token) = mechanism.draw(&scores, stream).filter(|token| !self.ends.contains(token))
            else {
                break;
            };
            drawn.push(token);
            if drawn.len() < self.tokens {
                public.read(token)?;
                rows.iter_mut().try_for_each(|row| row.read(token))?;
            }
        }
        Ok(drawn)
    }

    /// Returns the tokens to draw from, which follow from public logits alone. Where differences are divided by the number of references, they
    /// hold the k tokens of the largest scores (top-k+). A text has at least one token, and of special tokens only its end.
    fn candidates(&self, public: &[f32], drawn: usize) -> Vec<u32> {
        let known = self.model.tokenizer.vocab_size().min(public.len());
        let may_come = |token: &u32| match self.ends.contains(token) {
            true => drawn > 0,
            false => !self.model.tokenizer.is_special(*token),
        };
        let all: Vec<u32> = (0..known as u32).filter(may_come).collect();
        top_k_plus(all, public, self.certified.file.top_k as usize, self.certified.mechanism.clip())
    }
}

/// Returns the tokens whose logit is at least the k-th largest less twice the clip; all tokens if k is 0.
fn top_k_plus(tokens: Vec<u32>, public: &[f32], k: usize, clip: f64) -> Vec<u32> {
    if k == 0 || k >= tokens.len() {
        return tokens;
    }
    let logit = |token: &u32| f64::from(public[*token as usize]);
    let mut logits: Vec<f64> = tokens.iter().map(logit).collect();
    let (_, least, _) = logits.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    let least = *least - 2.0 * clip;
    tokens.into_iter().filter(|token| logit(token) >= least).collect()
}

/// A prompt with what was written after it. It is computed alone, so not even rounding depends on other prompts.
struct Row<'a, B: Kernels> {
    decoding: Decoding<'a, B>,
    text: Vec<u32>,
    logits: Vec<f32>,
}

impl<'a, B: Kernels> Row<'a, B> {
    fn start(model: &'a RunModel<B>, prompt: Prompt) -> Result<Self, RunError> {
        let (decoding, logits) =
            Decoding::start(&model.model, std::slice::from_ref(&prompt)).map_err(failed)?;
        Ok(Self { decoding, text: prompt.written, logits: logits.into_iter().next().unwrap_or_default() })
    }

    /// Reads a token, and computes the logits of the next one.
    fn read(&mut self, token: u32) -> Result<(), RunError> {
        self.text.push(token);
        let next = self.decoding.next_logits(&[0], std::slice::from_ref(&self.text)).map_err(failed)?;
        self.logits = next.into_iter().next().unwrap_or_default();
        Ok(())
    }
}

fn failed(error: InferenceError) -> RunError {
    RunError::Failed(error.to_string())
}
