//! What a user wrote: shape and ranges of `plan.json` version 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Data, Evaluation, Model, Performance, PlanError, Privacy, Tokenizer, Training};

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
    /// The private text.
    pub data: Data,
    /// What is promised.
    pub privacy: Privacy,
    /// Where the vocabulary comes from.
    pub tokenizer: Tokenizer,
    /// The shape of the network.
    pub model: Model,
    /// What is optimised, in what batches, and how.
    pub training: Training,
    /// Public text on which the model is measured; leave it out to measure nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    /// Knobs of speed.
    #[serde(default)]
    pub performance: Performance,
}

impl PlanFile {
    /// Reads the text of a `plan.json`.
    ///
    /// # Errors
    /// [`PlanError`] for text that is not JSON, a version this build does not know, an unknown field, a
    /// missing field, a wrong type or a value out of range; the message names the place, what was given,
    /// what is allowed and a fix.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let file: Self = serde_json::from_str(text).map_err(|e| PlanError::Syntax {
            line: e.line(),
            column: e.column(),
            what: e.to_string(),
        })?;
        Ok(file)
    }
}
