//! Determines the event that each step's ledger line carries.
//!
//! If each step samples independently, each attempt of a step is charged its own event. If a pass
//! over the data is cut into batches, the steps of a pass are charged one event together, because
//! each unit takes part in one of them. A process that resumes in the middle of a pass draws the
//! rest in a new order (a private run has a new key), so a unit may take part again, and the pass
//! is charged again. The first line of a pass in each process therefore carries the pass's event,
//! and the others an empty one.
//!
//! After a torn line nothing counts as paid: neither the charges of the previous process, nor the
//! step that the torn line would have reserved.

use accountant::DpEvent;
use plan::CertifiedPlan;

use super::ledger::{Entry, LedgerState};

/// Follows a ledger line by line.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChargeSchedule {
    /// The pass that was charged in this process.
    charged_pass: Option<u64>,
    /// Whether the last line of the previous process was torn. The next step's line may be charged
    /// for the torn one, so it pays for no other step.
    torn: bool,
}

impl ChargeSchedule {
    /// Returns the schedule after all lines of a ledger.
    pub fn after(plan: &CertifiedPlan, ledger: &LedgerState) -> Self {
        let mut schedule = Self::default();
        ledger.entries().for_each(|entry| schedule.note(plan, &entry));
        schedule
    }

    /// Returns the event that the next line must carry if it reserves `step`; `None` past the plan's last step.
    pub fn due(&self, plan: &CertifiedPlan, step: u64) -> Option<DpEvent> {
        match plan.pass(step) {
            Some(place) if place.batch > 0 && self.charged_pass == Some(place.pass) => Some(no_event()),
            _ => plan.pass_event(step),
        }
    }

    /// Notes a line.
    pub fn note(&mut self, plan: &CertifiedPlan, entry: &Entry) {
        match entry {
            Entry::Step { step, .. } => self.note_step(plan, *step),
            // This process draws with a new key, so nothing that an earlier process charged pays
            // for its steps.
            Entry::Resume { torn_bytes, .. } => *self = Self { charged_pass: None, torn: *torn_bytes > 0 },
            Entry::Release { .. }
            | Entry::Tokenizer { .. }
            | Entry::LabelHistogram { .. }
            | Entry::LabelCounts { .. }
            | Entry::Votes { .. }
            | Entry::VoteCounts { .. }
            | Entry::Texts { .. }
            | Entry::Batches { .. }
            | Entry::InitialWeights { .. } => *self = Self::default(),
            Entry::Header(_) | Entry::Parent(_) | Entry::UnprotectedStep { .. } | Entry::Completed { .. } => {
            }
        }
    }

    /// Notes a reserved step.
    pub(crate) fn note_step(&mut self, plan: &CertifiedPlan, step: u64) {
        if self.torn {
            *self = Self::default();
        } else {
            self.charged_pass = plan.pass(step).map(|place| place.pass);
        }
    }
}

/// Returns the event of a step whose pass is already charged.
fn no_event() -> DpEvent {
    DpEvent::Composed { events: Vec::new() }
}
