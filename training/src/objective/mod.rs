//! The objectives. Each makes an example of a window of a unit's tokens.
//!
//! | objective | input | predicts | source |
//! |---|---|---|---|
//! | causal LM | the window | each next token | Radford et al. 2019 |
//! | span corruption | the window with sentinels for runs of tokens | the runs, each after its sentinel | Raffel et al. 2020 |
//! | prefix LM | the window up to a random cut | the rest | Raffel et al. 2020 |
//! | masked LM | the window with masked places | the tokens at these places | Devlin et al. 2019 |
//! | a `Task` | a record's text | its label, its labels, the tags of its words, or another text | |
//!
//! An example is made of windows of one privacy unit. The second sentence of a
//! pair is the other half of the window, never text of another unit. Masks change from step to
//! step.

mod conversations;
mod masks;
mod spans;
mod special;
mod task;

use std::sync::Arc;

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};
use tokenizer::Tokenizer;

pub use conversations::messages_of;
pub use special::canary_tokens;
pub(crate) use special::{begin_of_text, end_of_text, special_tokens};
pub(crate) use task::Task;

use crate::RunError;
use crate::chat::ChatTemplate;
use crate::data::{SampledUnit, WindowSpec};
use crate::disclosure::Private;
use network::Example;
use network::lengths::corruption_lengths;

/// An objective with the special tokens and lengths it needs.
#[derive(Clone, Debug)]
pub struct Objective {
    variant: Variant,
    /// The token before a text.
    bos: u32,
    /// The end-of-text token.
    eos: u32,
    /// Longest input of the network.
    context: usize,
    /// Whether the privacy units are pieces of records.
    unit_is_piece: bool,
}

#[derive(Clone, Debug)]
enum Variant {
    CausalLm,
    SpanCorruption(spans::SpanCorruption),
    PrefixLm {
        /// The token that the decoder starts from.
        start: u32,
        split: spans::Split,
    },
    MaskedLm(masks::MaskedLm),
    Task(Task),
}

/// Key of the masks of public evaluation text. It is the same for every run, so that their figures can be compared.
const EVALUATION_SEED: u64 = 0;

impl Objective {
    /// Creates the objective of a plan, with the tokens of its tokenizer.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the tokenizer lacks a special token that the objective needs.
    pub fn new(
        plan: &plan::Plan,
        tokenizer: &Tokenizer,
        template: Option<&Arc<ChatTemplate>>,
    ) -> Result<Self, RunError> {
        let (objective, context) = (plan.training().objective, plan.model().context as usize);
        let unit_is_piece = matches!(plan.privacy().unit, plan::PrivacyUnit::Words(_));
        let special = special::Special { objective, tokenizer };
        special.check_padding(plan.model().family)?;
        if let Some(task) = Task::new(plan, tokenizer, template)? {
            return Ok(Self {
                variant: Variant::Task(task),
                bos: begin_of_text(tokenizer)?,
                eos: end_of_text(tokenizer)?,
                context,
                unit_is_piece,
            });
        }
        let variant = match objective {
            plan::Objective::CausalLm => Variant::CausalLm,
            plan::Objective::SpanCorruption => Variant::SpanCorruption(spans::SpanCorruption {
                sentinels: special.sentinels(context)?,
                start: special.padding()?,
            }),
            plan::Objective::PrefixLm => Variant::PrefixLm {
                start: special.padding()?,
                split: spans::Split::of(plan.model(), plan.training()),
            },
            _ => Variant::MaskedLm(masks::MaskedLm {
                classify: special.any(special::CLASSIFY)?,
                separate: special.any(special::SEPARATE)?,
                mask: special.any(special::MASK)?,
                vocab_size: tokenizer.vocab_size() as u64,
                next_sentence: objective == plan::Objective::MaskedLmNextSentence,
                sentence_ends: match plan.training().sentence_split {
                    Some(plan::SentenceSplit::SentenceEnd) => {
                        [".", "!", "?"].iter().filter_map(|mark| tokenizer.id(mark)).collect()
                    }
                    None => Vec::new(),
                },
            }),
        };
        let (bos, eos) = (begin_of_text(tokenizer)?, end_of_text(tokenizer)?);
        Ok(Self { variant, bos, eos, context, unit_is_piece })
    }

    /// Returns the task, if examples are made of records instead of windows.
    pub fn task(&self) -> Option<&Task> {
        match &self.variant {
            Variant::Task(task) => Some(task),
            _ => None,
        }
    }

    /// Returns the way in which a unit's tokens are cut into windows.
    pub fn window_spec(&self) -> WindowSpec {
        let Self { bos, eos, context, unit_is_piece, .. } = *self;
        let length = match &self.variant {
            Variant::CausalLm | Variant::Task(_) => context,
            Variant::PrefixLm { split, .. } => split.window(context),
            Variant::SpanCorruption(_) => corruption_lengths(context).window,
            Variant::MaskedLm(masked) => context - masked.special_tokens(),
        };
        WindowSpec {
            bos,
            eos,
            length,
            overlaps: matches!(self.variant, Variant::CausalLm),
            marks_pieces: unit_is_piece,
        }
    }

    /// Makes the example of a window. Random choices come from `stream` alone.
    pub fn example(&self, window: &[u32], stream: &mut Stream) -> Example {
        // The end-of-text token after a record is not predicted, because the objectives below add
        // their own.
        let text = window.strip_suffix(&[self.eos]).unwrap_or(window);
        match &self.variant {
            Variant::CausalLm => Example::causal(window),
            Variant::SpanCorruption(spans) => spans.example(text, self.eos, stream),
            Variant::PrefixLm { start, split } => spans::prefix(text, self.eos, *start, *split, stream),
            Variant::MaskedLm(masked) => masked.example(text, stream),
            // The examples of a task are made of whole records, not of windows.
            Variant::Task(_) => Example::default(),
        }
    }

    /// Makes the examples of a step. Each is masked with the random stream of (step, index), so that the masks of a
    /// unit do not depend on other units. With random masks, a unit has `views` views, and its windows are repeated
    /// with other masks until there are so many. Otherwise each window is one view.
    ///
    /// Units 2³² apart share a stream. This is harmless, because an example moves the clipped sum
    /// by at most the clip norm for any masks.
    pub fn examples(
        &self,
        units: &Private<Vec<SampledUnit>>,
        views: usize,
        step: u64,
        rng: &dyn PrivacyRng,
    ) -> Private<Vec<Example>> {
        let example = |SampledUnit { index, windows }: &SampledUnit| {
            let mut stream = rng.stream(Purpose::Masking, step, *index as u32);
            let count = if matches!(self.variant, Variant::CausalLm) { windows.len() } else { views };
            let view = |window: &Vec<u32>| {
                let view = self.example(window, &mut stream);
                Example { dropout_seed: stream.next_u64(), ..view }
            };
            Example::of_views(windows.iter().cycle().take(count).map(view))
        };
        Private::new(units.for_mechanism().iter().map(example).collect())
    }

    /// Returns the examples of public windows, with the same masks in every run.
    pub fn public_examples(&self, windows: &[Vec<u32>]) -> Vec<Example> {
        let rng = TestRng::from_seed(EVALUATION_SEED);
        let example = |(index, window): (u64, &Vec<u32>)| {
            self.example(window, &mut rng.stream(Purpose::Masking, index, 0))
        };
        (0..).zip(windows).map(example).collect()
    }

    /// Returns an example, divided or masked as in training, whose last prediction is that of the token at `place` of a window. Tokens
    /// after it are shown if the model reads text in both directions. [`None`] if training never predicts the token at this place.
    pub fn question(&self, window: &[u32], place: usize) -> Option<Example> {
        let text = window.strip_suffix(&[self.eos]).unwrap_or(window);
        let (before, after) = (&window[..place], text.get(place + 1..).unwrap_or_default());
        match &self.variant {
            Variant::CausalLm => {
                let input = before[before.len().saturating_sub(self.context)..].to_vec();
                Some(Example { input, ..Example::default() })
            }
            Variant::PrefixLm { start, split } => {
                let read = split.fixed(text.len().max(2)).unwrap_or(place);
                let written = before.get(read..).filter(|_| read > 0 && place < text.len())?;
                let input = [&before[..read], &[self.eos]].concat();
                let decoder_input = [&[*start], written].concat();
                Some(Example { input, decoder_input, ..Example::default() })
            }
            Variant::SpanCorruption(spans) => spans.question(text, self.eos, place),
            Variant::MaskedLm(masked) => Some(masked.question(before, after)),
            // The examples of a task are made of whole records, not of windows.
            Variant::Task(_) => None,
        }
    }

    /// Returns whether training predicts the token at `place` of a unit of `length` tokens, for a plan whose examples
    /// are windows.
    pub fn predicts(plan: &plan::Plan, length: usize, place: usize) -> bool {
        match plan.training().objective {
            plan::Objective::PrefixLm => {
                let split = spans::Split::of(plan.model(), plan.training());
                place >= split.fixed(length.max(2)).unwrap_or(1)
            }
            plan::Objective::SpanCorruption => {
                let sentinels = (0..corruption_lengths(plan.model().context as usize).spans as u32).collect();
                let spans = spans::SpanCorruption { sentinels, start: 0 };
                spans.question(&vec![0; length], 0, place).is_some()
            }
            _ => true,
        }
    }

    /// Returns the numbers of tokens that the model reads and then writes, if it divides each whole window at the same
    /// place.
    pub fn fixed_split(&self) -> Option<[usize; 2]> {
        match self.variant {
            Variant::PrefixLm { split: spans::Split::Fixed { read, written }, .. } => Some([read, written]),
            _ => None,
        }
    }

    /// Returns whether the model continues text that is divided where a window says, instead of filling gaps or
    /// answering.
    pub fn continues(&self) -> bool {
        matches!(self.variant, Variant::CausalLm | Variant::PrefixLm { .. })
    }

    /// Returns the way in which a model trained for this objective generates text.
    pub fn generation(&self) -> Generation {
        match self.variant {
            Variant::CausalLm => Generation::Continuation,
            Variant::SpanCorruption(spans::SpanCorruption { start, .. })
            | Variant::PrefixLm { start, .. } => Generation::FromDecoder { start, first: None },
            Variant::MaskedLm(_) => Generation::None,
            Variant::Task(ref task) => task.generation(),
        }
    }
}

/// The way in which a model generates text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The model continues a text.
    Continuation,
    /// The model answers a text after the end-of-text token.
    Answer {
        /// The token before the text, if there is one.
        first: Option<u32>,
    },
    /// The model takes the assistant's turn in a conversation.
    Turn {
        /// The token that ends the turn.
        end: u32,
    },
    /// The decoder writes an answer to the encoder's input.
    FromDecoder {
        /// The token that the decoder starts from.
        start: u32,
        /// The first token of each text, if there is one.
        first: Option<u32>,
    },
    /// The model predicts masked tokens and generates no text.
    None,
}

/// Draws a uniformly random subset of `count` of the places 0..n, in ascending order.
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
mod keys;
#[cfg(test)]
mod tests;
