//! What the files that a plan builds on were made from.

use accountant::DpEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Evaluation, Plan, PlanError};

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
    /// The values that a plan may write, and what each declares.
    pub(crate) const ALLOWED: &'static str = "\"public_text\" (no private text), \"same_units\" (private text whose units are those of \
                                              the training text: what the file cost counts towards privacy.epsilon) or \
                                              \"disjoint_units\" (private text that has no unit in common with it)";

    /// Its name in a plan.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PublicText => "public_text",
            Self::SameUnits => "same_units",
            Self::DisjointUnits => "disjoint_units",
        }
    }
}

impl Plan {
    /// Whether the plan builds on a file that was made from its own private units.
    #[must_use]
    pub fn continues_same_units(&self) -> bool {
        let evaluation = self.evaluation().map_or(MadeFrom::PublicText, Evaluation::made_from);
        let declared =
            [self.tokenizer().made_from(), self.model().made_from(), self.data().made_from(), evaluation];
        declared.contains(&MadeFrom::SameUnits)
    }

    /// The plan after these events on its own units: what made the files that it builds on. They count towards its ε.
    #[must_use]
    pub fn after(mut self, earlier: Vec<DpEvent>) -> Self {
        self.earlier = earlier;
        self
    }

    /// Refuses to certify a plan whose earlier events are unknown, or cost as much as all of the plan may.
    pub(crate) fn check_earlier(&self) -> Result<(), PlanError> {
        let refused = |given: String, allowed: &str, fix: &str| {
            let path = "privacy.epsilon".to_owned();
            Err(PlanError::Field { path, given, allowed: allowed.to_owned(), fix: fix.to_owned() })
        };
        if self.earlier.is_empty() {
            return if self.continues_same_units() {
                refused(
                    "unknown, since the plan builds on a file made from its own units (\"same_units\")"
                        .to_owned(),
                    "a plan beside the run or vocabulary that made the file",
                    "run `trainer-native verify PLAN.json`, which reads what the file cost",
                )
            } else {
                Ok(())
            };
        }
        let event = DpEvent::Composed { events: self.earlier.clone() };
        let spent = accountant::epsilon(&event, self.delta(), self.privacy().relation)?.upper;
        match self.privacy().epsilon {
            Some(stated) if spent < stated => Ok(()),
            None if spent.is_finite() => Ok(()),
            stated => refused(
                format!(
                    "{}, but what the plan builds on has spent ε up to {spent} on the same units",
                    stated.map_or("none".to_owned(), |stated| stated.to_string())
                ),
                &format!("more than {spent}"),
                "raise it: it is the limit for all runs together",
            ),
        }
    }
}
