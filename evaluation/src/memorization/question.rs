//! The task given to a model, and whether it is that of training.

use std::fmt;

use mechanisms::Stream;
use plan::{Objective, PrivacyUnit};

use network::nn::Kernels;
use training::RunError;
use training::infer::{Recall, RunModel, TrainedRecord};

/// Numbers of tokens of the prompt that a decoder continues, and of the continuation, if the context allows them.
const PREFIX: usize = 32;
const CONTINUATION: usize = 16;

/// The task given to the model.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// The numbers of tokens of the prompt and of the target after it; [`None`] if each record is divided or masked as in training.
    lengths: Option<[usize; 2]>,
    /// Description of what is asked for.
    name: String,
    /// Reason why the model may have memorized more than it shows, if there is one.
    pub lower_bound: Option<String>,
}

impl Question {
    /// Creates the question that training gave the model, or another of the given lengths.
    pub fn new<B: Kernels>(
        run: &RunModel<B>,
        prefix: Option<usize>,
        continuation: Option<usize>,
    ) -> Result<Self, RunError> {
        let objective = run.plan.training().objective;
        if objective.has_labels() {
            return refused(
                "this model predicts labels and writes no text; allowed: a run that predicts text",
            );
        }
        let lengths = match (prefix, continuation) {
            (None, None) if objective != Objective::CausalLm => None,
            _ if !run.objective.continues() => {
                return refused(
                    "--prefix, --continuation: this model does not continue texts; leave both options out, and it is asked for what \
                     training had it predict",
                );
            }
            (prefix, continuation) => Some(lengths(run, prefix, continuation)?),
        };
        let name = match (lengths, objective) {
            (Some([prefix, continuation]), _) => format!("prefix {prefix} + {continuation}"),
            (None, Objective::SpanCorruption) => "spans".to_owned(),
            (None, Objective::PrefixLm) => match run.objective.fixed_split() {
                Some([read, written]) => format!("prefix {read} + {written}, as trained"),
                None => "prefix of random length, as trained".to_owned(),
            },
            (None, Objective::TextToText) => "targets".to_owned(),
            (None, Objective::Chat) => "first answers".to_owned(),
            (None, _) => "masked tokens".to_owned(),
        };
        Ok(Self { lower_bound: lower_bound(run, lengths), lengths, name })
    }

    /// Asks about a record; [`None`] if it is too short.
    pub fn ask<B: Kernels>(
        &self,
        run: &RunModel<B>,
        record: &TrainedRecord,
        stream: &mut Stream,
    ) -> Result<Option<Recall>, RunError> {
        match self.lengths {
            Some([prefix, continuation]) => run.recall_after(record, prefix, continuation),
            None => run.recall(record, stream),
        }
    }

    /// Returns whether the record goes on after the target, so that a generated end of text is never right.
    pub fn goes_on(&self) -> bool {
        self.lengths.is_some()
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Checks that the lengths fit into a window as training made them, and fills in a length that is not given.
fn lengths<B: Kernels>(
    run: &RunModel<B>,
    prefix: Option<usize>,
    continuation: Option<usize>,
) -> Result<[usize; 2], RunError> {
    let window = run.objective.window_spec().length;
    let [usual, after] = run.objective.fixed_split().unwrap_or([PREFIX, CONTINUATION]);
    let room = |other: usize| window.saturating_sub(other).max(1);
    let (prefix, continuation) = match (prefix, continuation) {
        (Some(prefix), Some(continuation)) => (prefix, continuation),
        (Some(prefix), None) => (prefix, after.min(room(prefix))),
        (None, Some(continuation)) => (usual.min(room(continuation)), continuation),
        (None, None) if usual + after <= window => (usual, after),
        (None, None) => ((2 * window / 3).max(1), (window / 3).max(1)),
    };
    if prefix == 0 || continuation == 0 {
        return refused("--prefix, --continuation: 0 is out of range; allowed: at least 1 each");
    }
    if let Some([read, written]) = run.objective.fixed_split() {
        if continuation > written {
            return refused(&format!(
                "--continuation {continuation}: the continuation is longer than the {written} tokens of text that the model was trained to \
                 write; allowed: 1 to {written}"
            ));
        }
        if prefix > read {
            return refused(&format!(
                "--prefix {prefix}: the prompt is longer than the {read} tokens of text that the model was trained to read; allowed: 1 to {read}"
            ));
        }
    } else if prefix.saturating_add(continuation) > window {
        return refused(&format!(
            "--prefix {prefix}, --continuation {continuation}: the continuation ends beyond the window of {window} tokens in which the \
             model was trained; allowed: at most {window} together"
        ));
    }
    Ok([prefix, continuation])
}

/// Returns the reason why the figures may be below what the model memorized, if there is one.
fn lower_bound<B: Kernels>(run: &RunModel<B>, lengths: Option<[usize; 2]>) -> Option<String> {
    let split = run.objective.fixed_split().zip(lengths);
    if let Some(([read, written], [prefix, _])) = split.filter(|([read, _], [prefix, _])| read != prefix) {
        return Some(format!(
            "the model was trained to write {written} tokens after {read}, not after {prefix}; leave out --prefix and --continuation to \
             ask as in training"
        ));
    }
    (run.plan.privacy().unit == PrivacyUnit::User && run.objective.task().is_none()).then(|| {
        "a user's records were read one after another in training, and are asked for one by one".to_owned()
    })
}

fn refused<T>(message: &str) -> Result<T, RunError> {
    Err(RunError::Refused(message.to_owned()))
}
