//! The file `plan.json` as a user wrote it: shape and ranges of version 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schema::check::check;
use crate::messages::shown;
use crate::{
    Data, Evaluation, Model, Objective, Performance, PlanError, Privacy, Tokenizer, Trainable, Training,
};

/// The version of `plan.json` this build reads and writes.
pub const VERSION: u64 = 1;

/// A `plan.json` as written: right in shape, not yet checked for sense.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "plan.json version 1")]
pub struct PlanFile {
    /// The version of this format: 1.
    #[schemars(extend("const" = 1))]
    pub version: u64,
    /// A name for the run: letters, digits, `-`, `_` and `.`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))]
    pub name: String,
    /// The training text.
    pub data: Data,
    /// The privacy guarantee.
    pub privacy: Privacy,
    /// Where the vocabulary comes from.
    pub tokenizer: Tokenizer,
    /// The network architecture.
    pub model: Model,
    /// Objective, batches and optimizer.
    pub training: Training,
    /// Public text for evaluation. Without it, the model is not evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    /// Performance settings. They never affect privacy.
    #[serde(default)]
    pub performance: Performance,
}

impl PlanFile {
    /// Returns the plan as the text of a `plan.json`.
    #[must_use]
    pub fn text(&self) -> String {
        // A plan has string keys and plain fields, so writing it cannot fail; an empty text would be refused.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Returns the number, declared public, of the units or examples from which a step samples.
    #[must_use]
    pub fn population(&self) -> u64 {
        self.privacy.sampling.population(self.data.units)
    }

    /// Returns whether the features of a record, which a head for labels of texts or tags of words reads, are the same in each step. The
    /// trainer then computes them once.
    #[must_use]
    pub fn has_fixed_features(&self) -> bool {
        let is_read = matches!(
            self.training.objective,
            Objective::SequenceClassification
                | Objective::MultiLabelClassification
                | Objective::TokenClassification
        );
        // Dropout below the head changes them in each step.
        is_read && self.model.trainable == Trainable::Head && self.training.dropout == 0.0
    }

    /// Returns the labels beside which [`Words::PairsByLabel`](crate::Words::PairsByLabel) counts words: of classes, or of texts that are
    /// written for a label. Empty if the objective has neither.
    #[must_use]
    pub fn labels_of_words(&self) -> &[String] {
        match self.training.objective {
            Objective::SequenceClassification => self.training.labels(),
            Objective::TextToText => {
                self.data.label_histogram.as_ref().map_or(&[], |histogram| &histogram.labels)
            }
            _ => &[],
        }
    }

    /// Reads a text of the right shape without checking its values; `None` for any other text. Use it to offer repairs: nothing
    /// else takes a file that [`PlanFile::parse`] refuses.
    #[must_use]
    pub fn unchecked(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Reads the text of a `plan.json`.
    ///
    /// # Errors
    /// [`PlanError`] for text that is not JSON, a version this build does not know, an unknown field, a
    /// missing field, a wrong type or a value out of range; the message names the place, what was given,
    /// what is allowed and a fix.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        // Some editors begin a file with a byte-order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let value: Value = serde_json::from_str(text).map_err(|error| syntax(text, &error))?;
        check_version(&value)?;
        check(&value)?;
        // The file is read from the text instead of the value, so that a field given twice is noticed.
        let file: Self = serde_json::from_str(text).map_err(|error| syntax(text, &error))?;
        Ok(file.with_steps())
    }

    /// Returns the same plan with steps in place of epochs.
    pub(crate) fn with_steps(mut self) -> Self {
        let population = self.population();
        let training = &mut self.training;
        if let (Some(epochs), Some(batch), None, None) =
            (training.epochs, training.expected_batch_size, training.steps, &training.batch_schedule)
        {
            let steps = epochs.saturating_mul(population.div_ceil(batch.max(1)));
            (training.steps, training.epochs) = (Some(steps), None);
        }
        self
    }
}

/// Checked before anything else, because a later version may have other fields.
fn check_version(value: &Value) -> Result<(), PlanError> {
    let version = &value["version"];
    let newer = version.as_f64().is_some_and(|given| given > VERSION as f64);
    if version.as_u64() == Some(VERSION) || value.get("version").is_none() {
        return Ok(());
    }
    Err(PlanError::Version {
        given: shown(version),
        known: VERSION,
        fix: if newer {
            "use a newer build, or export the plan again for this one"
        } else {
            "set \"version\": 1"
        },
    })
}

fn syntax(text: &str, error: &serde_json::Error) -> PlanError {
    let message = error.to_string();
    let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let rest: String = line.chars().skip(error.column().saturating_sub(1)).take(9).collect();
    let word = rest.trim_start_matches('-').to_ascii_lowercase();
    let fix = if word.starts_with("nan") || word.starts_with("inf") {
        "JSON has no NaN or infinity: write a finite number"
    } else if word.starts_with('/') || word.starts_with('#') {
        "JSON has no comments: remove it"
    } else if what.starts_with("duplicate field") {
        "remove one of the two"
    } else if what.starts_with("trailing comma") {
        "remove the comma before the closing bracket"
    } else if text.trim().is_empty() {
        "the file is empty: start from a preset in plan/presets"
    } else {
        "correct the text at this place"
    };
    PlanError::Syntax { line: error.line(), column: error.column(), what: what.to_owned(), fix }
}
