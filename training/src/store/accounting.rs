//! Compares a ledger with its plan, and adds up what it charged.

use accountant::{Bounds, DpEvent};
use plan::CertifiedPlan;

use super::charging::ChargeSchedule;
use super::ledger::{Charges, Entry, Header, LedgerState, events_on_same_units};
use crate::RunError;

/// Returns bounds on the ε that a ledger has charged, or `None` for a run whose steps add no noise. A trial of a search
/// is charged for the whole search, from its first step.
///
/// # Errors
/// [`RunError::Failed`] if the accountant has no certified answer.
pub(crate) fn spent(plan: &CertifiedPlan, ledger: &LedgerState) -> Result<Option<Bounds>, RunError> {
    if ledger.header().protected { epsilon_of_event(plan, &charged(ledger)).map(Some) } else { Ok(None) }
}

/// Returns the event that a run contributes to a sum of ε: its own charges and the earlier stages
/// on its units, or the whole search that it is a trial of.
pub(crate) fn charged(ledger: &LedgerState) -> DpEvent {
    match &ledger.header().search {
        Some(search) => search.event.clone(),
        None => with_earlier(ledger, &ledger.charges()),
    }
}

/// Returns bounds on the ε that a run may spend, or `None` for a run whose steps add no noise.
///
/// # Errors
/// As [`spent`].
pub(crate) fn allowed(plan: &CertifiedPlan, header: &Header) -> Result<Option<Bounds>, RunError> {
    match &header.search {
        _ if !header.protected => Ok(None),
        Some(search) => epsilon_of_event(plan, &search.event).map(Some),
        None => Ok(Some(plan.epsilon())),
    }
}

/// Returns bounds on the ε of charges and earlier stages, at the plan's δ and relation.
///
/// # Errors
/// [`RunError::Failed`] if the accountant has no certified answer.
fn epsilon_of(plan: &CertifiedPlan, ledger: &LedgerState, charges: &Charges) -> Result<Bounds, RunError> {
    epsilon_of_event(plan, &with_earlier(ledger, charges))
}

/// Returns the charges after those of the earlier stages on the same units, in the form that a certified plan's event
/// has.
fn with_earlier(ledger: &LedgerState, charges: &Charges) -> DpEvent {
    let earlier = events_on_same_units(ledger.parents());
    DpEvent::Composed { events: earlier.into_iter().chain(charges.events()).collect() }
}

fn epsilon_of_event(plan: &CertifiedPlan, event: &DpEvent) -> Result<Bounds, RunError> {
    if *event == (DpEvent::Composed { events: Vec::new() }) {
        return Ok(Bounds { lower: 0.0, upper: 0.0 });
    }
    accountant::epsilon(event, plan.delta(), plan.plan().privacy().relation)
        .map_err(|error| RunError::Failed(format!("accountant: {error}")))
}

/// Returns whether a run may have these charges: no more ε than its plan has and, in a trial of a search, only events
/// that the search was charged for.
///
/// # Errors
/// As [`epsilon_of`].
pub(super) fn affords(
    plan: &CertifiedPlan,
    ledger: &LedgerState,
    charges: &Charges,
) -> Result<bool, RunError> {
    let fits = epsilon_of(plan, ledger, charges)?.upper <= plan.epsilon().upper;
    Ok(fits && (ledger.header().search.is_none() || covers(plan, charges)))
}

fn covers(plan: &CertifiedPlan, charges: &Charges) -> bool {
    plan.covers(charges.iter().map(|charge| (&charge.event, charge.count)))
}

/// Refuses a ledger whose header or events differ from the plan's.
pub(crate) fn check_same_plan(plan: &CertifiedPlan, ledger: &LedgerState) -> Result<(), RunError> {
    let header = ledger.header();
    let differs =
        |what: &str| Err(RunError::Verification(format!("the ledger was not written for this plan: {what}")));
    if header.plan_sha256 != plan.hash() {
        return differs("the plan's digest differs");
    }
    if header.relation != plan.plan().privacy().relation {
        return differs("the neighbouring relation differs");
    }
    if let Some(search) = &header.search {
        if !search.includes(plan) {
            return differs("the search that it names has no trial of this cost");
        }
        let shared = search.vocabulary_sha256.as_deref();
        if shared.is_some()
            && (ledger.release().is_some() || ledger.tokenizer().is_some_and(|own| Some(own) != shared))
        {
            return differs("its vocabulary is not the one that its search released");
        }
        if !covers(plan, &ledger.charges()) {
            return differs("it charges more than a trial of its search may cost");
        }
    }
    let mut schedule = ChargeSchedule::default();
    for entry in ledger.entries() {
        let fits = match &*entry {
            Entry::Release { event } => {
                plan.tokenizer_release().is_some_and(|release| release.event == *event)
            }
            Entry::LabelHistogram { event } => plan.label_histogram_event().as_ref() == Some(event),
            Entry::LabelCounts { counts } => {
                let planned = plan.plan().data().label_histogram.as_ref();
                planned.is_some_and(|planned| planned.labels.len() == counts.len())
            }
            Entry::Step { step, event, .. } => schedule.due(plan, *step).as_ref() == Some(event),
            Entry::UnprotectedStep { step, .. } => *step < plan.total_steps(),
            Entry::Votes { .. } | Entry::VoteCounts { .. } | Entry::Texts { .. } | Entry::Batches { .. } => {
                false
            }
            Entry::InitialWeights { .. } => plan.plan().model().initial != plan::Initial::Random,
            _ => true,
        };
        if !fits {
            return differs("an event is not one of the plan's");
        }
        schedule.note(plan, &entry);
    }
    Ok(())
}

/// Returns the step before which to end: the plan's last one, or an earlier one if crashes burned
/// more steps than the plan has spare.
pub(super) fn affordable_end(
    plan: &CertifiedPlan,
    ledger: &LedgerState,
    steps_done: u64,
) -> Result<u64, RunError> {
    let total = plan.total_steps();
    // Without a crash, steps are burned only if a stop interrupts a pass: the rest of that pass.
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
        affords(plan, ledger, &charges)
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
