//! Determines what the unfinished last line of a ledger may have announced.

use accountant::DpEvent;
use plan::CertifiedPlan;

use super::accounting;
use super::charging::ChargeSchedule;
use super::ledger::{Charges, Entry, Ledger, LedgerState, Randomness};
use crate::RunError;

/// Charges the step that an unfinished line would have reserved. The documentation of [`super::ledger`] says why.
pub(super) fn charge_torn_line(ledger: &mut Ledger, plan: &CertifiedPlan) -> Result<(), RunError> {
    let is_secret = ledger.state().header().randomness == Randomness::OperatingSystem;
    match torn_line(plan, ledger.state())? {
        // A known key gives the same output again, so nothing was lost.
        TornLine::Release(_) if is_secret => Err(result_lost("vocabulary release")),
        TornLine::Labels(_) if is_secret => Err(result_lost("release of the label counts")),
        TornLine::Release(_) | TornLine::Labels(_) | TornLine::Nothing => Ok(()),
        TornLine::Step(entry) => ledger.append(*entry),
    }
}

/// A computation that an unfinished line may have announced.
enum TornLine {
    /// No announcement that costs privacy beyond the charges so far.
    Nothing,
    /// The release of the vocabulary.
    Release(DpEvent),
    /// The counts of labels, or their charge.
    Labels(Option<DpEvent>),
    /// A step.
    Step(Box<Entry>),
}

fn torn_line(plan: &CertifiedPlan, state: &LedgerState) -> Result<TornLine, RunError> {
    if state.tokenizer().is_none() {
        let begins_from_checkpoint = plan.plan().model().initial != plan::Initial::Random;
        let torn_initial_weights = begins_from_checkpoint && state.initial_weights().is_none();
        let shared = state.header().search.as_ref().is_some_and(|search| search.vocabulary_sha256.is_some());
        let due = plan.tokenizer_release().filter(|_| state.release().is_none() && !shared);
        return Ok(match due {
            Some(release) if !torn_initial_weights => TornLine::Release(release.event.clone()),
            _ => TornLine::Nothing,
        });
    }
    if plan.plan().data().label_histogram.is_some() && state.label_counts().is_none() {
        let due = plan.label_histogram_event();
        let charged = state.label_histogram().is_some();
        return Ok(match due {
            Some(_) if charged => TornLine::Labels(None),
            Some(event) => TornLine::Labels(Some(event)),
            None => TornLine::Nothing,
        });
    }
    let step = state.steps_reserved().min(plan.total_steps() - 1);
    let attempt = state.attempts_of(step) + 1;
    if !state.header().protected {
        return Ok(TornLine::Step(Box::new(Entry::UnprotectedStep { step, attempt })));
    }
    let Some(event) = ChargeSchedule::after(plan, state).due(plan, step) else {
        return Ok(TornLine::Nothing);
    };
    let mut charges = state.charges();
    charges.add(&event, 1);
    // A step is never reserved beyond what the plan pays for. If another step is not affordable, the torn line was that
    // of completion.
    if accounting::affords(plan, state, &charges)? {
        Ok(TornLine::Step(Box::new(Entry::Step { step, attempt, event })))
    } else {
        Ok(TornLine::Nothing)
    }
}

/// Returns the charges of a run that stopped: those in its ledger, and that of what an unfinished
/// last line may have announced.
///
/// # Errors
/// [`RunError::Failed`] if the accountant has no certified answer.
pub(crate) fn spent_by_stopped(
    plan: &CertifiedPlan,
    state: &LedgerState,
    torn_bytes: u64,
) -> Result<Charges, RunError> {
    let mut charges = state.charges();
    if torn_bytes > 0 {
        match torn_line(plan, state)? {
            TornLine::Release(event) | TornLine::Labels(Some(event)) => charges.add(&event, 1),
            TornLine::Step(entry) => {
                if let Entry::Step { event, .. } = *entry {
                    charges.add(&event, 1);
                }
            }
            TornLine::Labels(None) | TornLine::Nothing => {}
        }
    }
    Ok(charges)
}

/// Returns the refusal to go on after the result of a charged release was lost. `release` names it.
pub(super) fn result_lost(release: &str) -> RunError {
    RunError::Refused(format!(
        "the {release} was interrupted: its privacy is spent and its result is lost, and the plan pays for one release only; begin a \
         new run in another folder with --out (the ε of the two runs add up)"
    ))
}
