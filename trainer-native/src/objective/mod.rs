//! What a model learns to predict: from a window of a unit's tokens to an example.
//!
//! | objective | reads | predicts | of |
//! |---|---|---|---|
//! | causal LM | the window | each next token | Radford et al. 2019 |
//! | span corruption | the window with sentinels for runs of tokens | the runs, each after its sentinel | Raffel et al. 2020 |
//! | prefix LM | the window up to a random cut | the rest | Raffel et al. 2020 |
//! | masked LM | the window with masked places | the tokens at these places | Devlin et al. 2019 |
//!
//! An example is made of one window, so of one privacy unit: the second sentence of a pair is the other half of the
//! window, never text of another unit. What is hidden changes from step to step.

mod masks;
mod spans;
mod special;

use dp_tokenizer::Tokenizer;
use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};

pub use masks::predictions;
pub use spans::{corruption_lengths, decoder_context};
pub use special::special_tokens;

use crate::RunError;
use crate::data::Cut;
use crate::model::Example;
use crate::telemetry::Private;

/// An objective with the special tokens and lengths it needs.
#[derive(Clone, Debug)]
pub struct Objective {
    kind: Kind,
    /// The end-of-text token.
    eos: u32,
    /// Longest input of the network.
    context: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    CausalLm,
    SpanCorruption(spans::SpanCorruption),
    /// The token that the decoder starts from.
    PrefixLm {
        start: u32,
    },
    MaskedLm(masks::MaskedLm),
}

/// Key of the masks of public evaluation text: the same for every run, so that figures compare.
const EVALUATION_SEED: u64 = 0;

impl Objective {
    /// The objective of a plan, with the tokens of its tokenizer.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the tokenizer lacks a special token that the objective needs.
    pub fn new(plan: &plan::Plan, tokenizer: &Tokenizer) -> Result<Self, RunError> {
        let (objective, context) = (plan.training().objective, plan.model().context as usize);
        let special = special::Special { objective, tokenizer };
        let kind = match objective {
            plan::Objective::CausalLm => Kind::CausalLm,
            plan::Objective::SpanCorruption => Kind::SpanCorruption(spans::SpanCorruption {
                sentinels: special.sentinels(context)?,
                start: special.padding()?,
            }),
            plan::Objective::PrefixLm => Kind::PrefixLm { start: special.padding()? },
            plan::Objective::MaskedLm | plan::Objective::MaskedLmNextSentence => {
                Kind::MaskedLm(masks::MaskedLm {
                    classify: special.token("[CLS]")?,
                    separate: special.token("[SEP]")?,
                    mask: special.token("[MASK]")?,
                    vocab_size: tokenizer.vocab_size() as u64,
                    next_sentence: objective == plan::Objective::MaskedLmNextSentence,
                })
            }
        };
        Ok(Self { kind, eos: crate::vocabulary::end_of_text(tokenizer)?, context })
    }

    /// How a unit's tokens are cut into windows.
    #[must_use]
    pub fn cut(&self) -> Cut {
        let Self { eos, context, .. } = *self;
        let length = match &self.kind {
            Kind::CausalLm | Kind::PrefixLm { .. } => context,
            Kind::SpanCorruption(_) => corruption_lengths(context).window,
            Kind::MaskedLm(masked) => context - masked.special_tokens(),
        };
        Cut { eos, length, carries_over: matches!(self.kind, Kind::CausalLm) }
    }

    /// The example of a window. Random choices come from `stream` alone.
    #[must_use]
    pub fn example(&self, window: &[u32], stream: &mut Stream) -> Example {
        // The end of a record that fills no window is not there to be predicted twice.
        let text = window.strip_suffix(&[self.eos]).unwrap_or(window);
        match &self.kind {
            Kind::CausalLm => Example::causal(window),
            Kind::SpanCorruption(spans) => spans.example(text, self.eos, stream),
            Kind::PrefixLm { start } => spans::prefix(text, self.eos, *start, stream),
            Kind::MaskedLm(masked) => masked.example(text, stream),
        }
    }

    /// The examples of the windows that units contribute to a step, each masked from the stream of (step, unit).
    ///
    /// What is masked in one unit thus depends on no other unit. Units 2³² apart share a stream, which is harmless: the
    /// clipped sum moves by at most the clip norm whatever the masks are.
    #[must_use]
    pub fn lot(
        &self,
        drawn: &Private<Vec<(u64, Vec<u32>)>>,
        step: u64,
        rng: &impl PrivacyRng,
    ) -> Private<Vec<Example>> {
        let example = |(unit, window): &(u64, Vec<u32>)| {
            self.example(window, &mut rng.stream(Purpose::Masking, step, *unit as u32))
        };
        Private::new(drawn.for_mechanism().iter().map(example).collect())
    }

    /// The examples of public windows, masked in the same way in every run.
    #[must_use]
    pub fn evaluation(&self, windows: &[Vec<u32>]) -> Vec<Example> {
        let rng = TestRng::from_seed(EVALUATION_SEED);
        let example =
            |(at, window): (u64, &Vec<u32>)| self.example(window, &mut rng.stream(Purpose::Masking, at, 0));
        (0..).zip(windows).map(example).collect()
    }

    /// How a trained model writes text, if it does.
    #[must_use]
    pub fn writing(&self) -> Writing {
        match self.kind {
            Kind::CausalLm => Writing::Continues,
            Kind::SpanCorruption(spans::SpanCorruption { start, .. }) | Kind::PrefixLm { start } => {
                Writing::Answers { start }
            }
            Kind::MaskedLm(_) => Writing::FillsMasks,
        }
    }
}

/// How a model writes text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// It continues what it reads.
    Continues,
    /// It reads a text and writes another.
    Answers {
        /// The token that the decoder starts from.
        start: u32,
    },
    /// It guesses single tokens at marked places.
    FillsMasks,
}

/// Chooses `count` of the places 0..n, each subset with the same probability, in order.
fn choose(count: usize, n: usize, stream: &mut Stream) -> Vec<usize> {
    let mut wanted = count.min(n);
    let chosen = |place: &usize| {
        let takes = stream.below((n - place) as u64) < wanted as u64;
        wanted -= usize::from(takes);
        takes
    };
    (0..n).filter(chosen).collect()
}

#[cfg(test)]
mod tests;
