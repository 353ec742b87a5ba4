//! Which event each step's line of the ledger carries.
//!
//! Where steps are drawn one by one, each attempt of a step costs its own event. Where a pass over the data is cut into
//! batches, the steps of a pass cost one event together, as each unit takes part in one of them; a process that takes a
//! run up in the middle of a pass draws the rest in an order of its own (a private run has a new key), so that a unit
//! may take part once more: the pass is charged again. So the first line of a pass in each process carries the pass's
//! event, and the others an empty one.

use accountant::DpEvent;
use plan::CertifiedPlan;

use super::ledger::{Entry, LedgerState};

/// Follows a ledger line by line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Charging {
    /// The pass that the process under way has paid for.
    paid: Option<u64>,
    /// A line of the process before was torn; the next step's line stands for it.
    torn: bool,
}

impl Charging {
    /// After all lines of a ledger.
    pub fn after(plan: &CertifiedPlan, ledger: &LedgerState) -> Self {
        let mut charging = Self::default();
        ledger.entries().iter().for_each(|entry| charging.note(plan, entry));
        charging
    }

    /// The event that the next line must carry if it reserves `step`; `None` past the plan's last step.
    pub fn due(&self, plan: &CertifiedPlan, step: u64) -> Option<DpEvent> {
        match plan.pass(step) {
            Some(place) if place.batch > 0 && self.paid == Some(place.pass) => Some(nothing()),
            _ => plan.pass_event(step),
        }
    }

    /// Takes note of a line.
    pub fn note(&mut self, plan: &CertifiedPlan, entry: &Entry) {
        match entry {
            Entry::Step { step, .. } => self.note_step(plan, *step),
            // What a torn line would have reserved belongs to the process before.
            Entry::Resume { torn_bytes, .. } if *torn_bytes > 0 => self.torn = true,
            Entry::Resume { .. }
            | Entry::Release { .. }
            | Entry::Tokenizer { .. }
            | Entry::InitialWeights { .. } => *self = Self::default(),
            Entry::Header(_) | Entry::UnprotectedStep { .. } | Entry::Completed { .. } => {}
        }
    }

    /// Takes note of a reserved step.
    pub fn note_step(&mut self, plan: &CertifiedPlan, step: u64) {
        if self.torn {
            *self = Self::default();
        } else {
            self.paid = plan.pass(step).map(|place| place.pass);
        }
    }
}

/// The event of a step whose pass is paid for.
fn nothing() -> DpEvent {
    DpEvent::Composed { events: Vec::new() }
}
