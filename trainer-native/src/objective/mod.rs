//! What a model learns to predict: from a window of a unit's tokens to an example.

use dp_tokenizer::Tokenizer;
use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};

use crate::data::Cut;
use crate::model::Example;
use crate::telemetry::Private;
use crate::{RunError, vocabulary};

/// An objective with the special tokens and lengths it needs.
#[derive(Clone, Debug)]
pub enum Objective {
    /// The next token.
    CausalLm {
        /// The end-of-text token.
        eos: u32,
        /// Targets a window.
        context: usize,
    },
}

/// Key of the masks of public evaluation text: the same for every run, so that figures compare.
const EVALUATION_SEED: u64 = 0;

impl Objective {
    /// The objective of a plan, with the tokens of its tokenizer.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the tokenizer lacks a special token that the objective needs.
    pub fn new(plan: &plan::Plan, tokenizer: &Tokenizer) -> Result<Self, RunError> {
        let context = plan.model().context as usize;
        match plan.training().objective {
            plan::Objective::CausalLm => {
                Ok(Self::CausalLm { eos: vocabulary::end_of_text(tokenizer)?, context })
            }
        }
    }

    /// How a unit's tokens are cut into windows.
    #[must_use]
    pub fn cut(&self) -> Cut {
        match *self {
            Self::CausalLm { eos, context } => Cut { eos, length: context, carries_over: true },
        }
    }

    /// The example of a window. Random choices come from `stream` alone.
    #[must_use]
    pub fn example(&self, window: &[u32], _stream: &mut Stream) -> Example {
        match self {
            Self::CausalLm { .. } => Example::causal(window),
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
}
