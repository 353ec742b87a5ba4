//! What the files that a plan builds on were made from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a checkpoint or a tokenizer was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MadeFrom {
    /// Public text.
    PublicText,
    /// Private text whose units are those of the training text. What the file cost counts towards `privacy.epsilon`.
    SameUnits,
    /// Private text that has no unit in common with the training text. Its units keep the ε of the file.
    DisjointUnits,
}

impl MadeFrom {
    /// The values that a plan may write, with what each of them declares.
    pub(crate) const ALLOWED: &'static str = "\"public_text\" (no private text), \"same_units\" (private text whose units are those of \
                                              the training text: what the file cost counts towards privacy.epsilon) or \
                                              \"disjoint_units\" (private text that has no unit in common with it)";

    /// Returns the value's name in a plan.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PublicText => "public_text",
            Self::SameUnits => "same_units",
            Self::DisjointUnits => "disjoint_units",
        }
    }
}
