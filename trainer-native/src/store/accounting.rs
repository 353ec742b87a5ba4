//! Compares a ledger with its plan, and adds up what it charged.

use accountant::Bounds;
use plan::CertifiedPlan;

use super::charging::ChargeSchedule;
use super::ledger::{Charges, Entry, LedgerState};
use crate::RunError;

/// Bounds on the ε that a ledger has charged; `None` for a run whose steps add no noise.
///
/// # Errors
/// [`RunError::Failed`] if the accountant has no certified answer.
pub(crate) fn spent(plan: &CertifiedPlan, ledger: &LedgerState) -> Result<Option<Bounds>, RunError> {
    if ledger.header().protected { epsilon_of(plan, &ledger.charges()).map(Some) } else { Ok(None) }
}

/// Bounds on the ε of charges at the plan's δ and relation.
///
/// # Errors
/// [`RunError::Failed`] if the accountant has no certified answer.
pub(super) fn epsilon_of(plan: &CertifiedPlan, charges: &Charges) -> Result<Bounds, RunError> {
    if charges.is_empty() {
        return Ok(Bounds { lower: 0.0, upper: 0.0 });
    }
    accountant::epsilon(&charges.composed(), plan.delta(), plan.plan().privacy().relation)
        .map_err(|error| RunError::Failed(format!("accountant: {error}")))
}

/// Refuses a ledger whose header or events are not the plan's.
pub(super) fn check_same_plan(plan: &CertifiedPlan, ledger: &LedgerState) -> Result<(), RunError> {
    let header = ledger.header();
    let differs =
        |what: &str| Err(RunError::Verification(format!("the ledger was not written for this plan: {what}")));
    if header.plan_sha256 != plan.hash() {
        return differs("the plan's digest differs");
    }
    if header.relation != plan.plan().privacy().relation {
        return differs("the neighbouring relation differs");
    }
    let mut schedule = ChargeSchedule::default();
    for entry in ledger.entries() {
        let fits = match entry {
            Entry::Release { event } => {
                plan.tokenizer_release().is_some_and(|release| release.event == *event)
            }
            Entry::Step { step, event, .. } => schedule.due(plan, *step).as_ref() == Some(event),
            Entry::UnprotectedStep { step, .. } => *step < plan.total_steps(),
            Entry::InitialWeights { .. } => plan.plan().model().initial != plan::Initial::Random,
            _ => true,
        };
        if !fits {
            return differs("an event is not one of the plan's");
        }
        schedule.note(plan, entry);
    }
    Ok(())
}

/// The step to end before: the plan's last, or an earlier one if crashes burned more steps than the plan has spare.
pub(super) fn affordable_end(
    plan: &CertifiedPlan,
    ledger: &LedgerState,
    steps_done: u64,
) -> Result<u64, RunError> {
    let total = plan.total_steps();
    // Without a crash no step was burned, except the rest of a pass that a stop interrupted.
    let nothing_burned =
        ledger.reservations() == steps_done && (ledger.resumes() == 0 || plan.charges_every_step());
    if !ledger.header().protected || nothing_burned {
        return Ok(total);
    }
    let fits = |end: u64| {
        let (mut charges, mut schedule) = (ledger.charges(), ChargeSchedule::after(plan, ledger));
        for step in steps_done..end {
            if let Some(event) = schedule.due(plan, step) {
                charges.add(&event, 1);
            }
            schedule.note_step(plan, step);
        }
        Ok::<bool, RunError>(epsilon_of(plan, &charges)?.upper <= plan.epsilon().upper)
    };
    if fits(total)? {
        return Ok(total);
    }
    let (mut affordable, mut beyond) = (steps_done, total);
    while affordable + 1 < beyond {
        let middle = affordable + (beyond - affordable) / 2;
        if fits(middle)? { affordable = middle } else { beyond = middle }
    }
    Ok(affordable)
}
