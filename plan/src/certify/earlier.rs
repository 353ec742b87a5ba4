//! Takes into account what was spent on the same units before the plan.

use accountant::DpEvent;

use crate::messages::refuse;
use crate::{Evaluation, MadeFrom, Plan, PlanError};

impl Plan {
    /// Returns whether the plan builds on a file that was made from its own private units.
    fn continues_same_units(&self) -> bool {
        let evaluation = self.evaluation().map_or(MadeFrom::PublicText, Evaluation::made_from);
        let declared =
            [self.tokenizer().made_from(), self.model().made_from(), self.data().made_from(), evaluation];
        declared.contains(&MadeFrom::SameUnits)
    }

    /// Returns the plan with these earlier events on its own units: those that made the files on which it builds. They
    /// count towards its ε.
    #[must_use]
    pub fn after(mut self, earlier: Vec<DpEvent>) -> Self {
        self.earlier = earlier;
        self
    }

    /// Refuses to certify a plan whose earlier events are unknown, or cost as much as all of the plan may.
    pub(crate) fn check_earlier(&self) -> Result<(), PlanError> {
        const PATH: &str = "privacy.epsilon";
        if self.earlier.is_empty() {
            return if self.continues_same_units() {
                refuse(
                    PATH,
                    "unknown, since the plan builds on a file made from its own units (\"same_units\")",
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
            stated => refuse(
                PATH,
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
