//! ε by the lattice of privacy losses alone, to hold the other engines against.

use crate::mechanism::{Lowered, Question, is_two_sided, lower};
use crate::question::side_epsilon;
use crate::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation, chernoff, lattice};

/// The method, as an answer names it.
pub const METHOD: &str = "certified bounds on a lattice of privacy losses";

/// Part of δ that rare outcomes of enormous loss may cost when they are left out.
const CUT: f64 = 1e-6;

/// Certified bounds on the ε that `event` costs at `delta`, from the lattice of privacy losses alone: an engine that has
/// nothing but the event's pair of distributions in common with what [`crate::epsilon`] tries first.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, pld};
/// let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.01, noise_multiplier: 1.0 };
/// let run = DpEvent::SelfComposed { event: Box::new(step), count: 1000 };
/// let bounds = pld::epsilon(&run, Delta::new(1e-5)?, AddOrRemoveOne)?;
/// // Contour inversion gives 1.828237 (reference query A).
/// assert!(bounds.lower <= 1.828_237 && bounds.upper >= 1.828_236 && bounds.upper - bounds.lower < 2e-3);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Guarantee
/// As [`crate::epsilon`]'s; the proof note is at the head of the lattice's module.
///
/// # Errors
/// As [`crate::epsilon`]'s; [`AccountantError::Unsupported`] for truncated Poisson sampling and private selection, which
/// no lattice holds; [`AccountantError::NotConverged`] where it would need too many points.
pub fn epsilon(
    event: &DpEvent,
    delta: Delta,
    relation: NeighboringRelation,
) -> Result<Bounds, AccountantError> {
    let question = Question::new(relation);
    let bounds = worst(&lower(event, question)?, delta)?;
    if is_two_sided(event) {
        let cheaper = worst(&lower(event, Question { optimistic: true, ..question })?, delta)?;
        return Bounds::new(cheaper.lower.min(bounds.upper), bounds.upper);
    }
    Ok(bounds)
}

fn worst(sides: &[Lowered], delta: Delta) -> Result<Bounds, AccountantError> {
    let mut worst = Bounds::new(0.0, 0.0)?;
    for side in sides {
        let bounds = on_lattice(side, delta)?;
        worst = Bounds::new(worst.lower.max(bounds.lower), worst.upper.max(bounds.upper))?;
    }
    Ok(worst)
}

fn on_lattice(side: &Lowered, delta: Delta) -> Result<Bounds, AccountantError> {
    if !side.coins.is_empty() || !side.selections.is_empty() {
        return Err(AccountantError::Unsupported {
            event: "truncated Poisson sampling or private selection",
            question: "the lattice of privacy losses alone",
        });
    }
    // Rounding of the subtraction goes to the safe side.
    let left = (delta.get() - side.failure) * (1.0 - 1e-15);
    if left.is_nan() || left <= 0.0 {
        return Err(AccountantError::OutOfRange {
            name: "delta",
            value: delta.get(),
            allowed: "above the event's own failure probability",
        });
    }
    let uses = side.uses();
    if uses == 0.0 || uses == 1.0 && side.mu_squared == 0.0 {
        // Nothing to compose: a closed form.
        return side_epsilon(side, left, 0.0);
    }
    let cut = side.cut_at_tail(CUT * left / uses);
    lattice::epsilon(&cut, left, chernoff::epsilon(&cut, left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NeighboringRelation::{AddOrRemoveOne, ReplaceOne};

    #[test]
    fn the_lattice_alone_agrees_with_all_engines_together() {
        let step = |noise_multiplier| DpEvent::PoissonSampledGaussian {
            sampling_probability: 0.02,
            noise_multiplier,
        };
        let events = vec![
            DpEvent::SelfComposed { event: Box::new(step(0.9)), count: 300 },
            DpEvent::ThresholdedHistogram { noise_multiplier: 4.0, threshold_delta: 1e-8 },
            DpEvent::Laplace { noise_multiplier: 8.0 },
            DpEvent::ShuffledGaussian { noise_multiplier: 4.0, batches: 10, epochs: 1 },
        ];
        let composed = DpEvent::Composed { events: events.clone() };
        for event in events.iter().chain([&composed]) {
            for relation in [AddOrRemoveOne, ReplaceOne] {
                let delta = Delta::new(1e-6).expect("a probability");
                let (alone, all) = (
                    epsilon(event, delta, relation).expect("held"),
                    crate::epsilon(event, delta, relation).expect("held"),
                );
                assert!(alone.lower <= all.upper && all.lower <= alone.upper, "{event:?}: {alone:?} {all:?}");
                assert!(alone.upper <= all.upper * 1.01, "{event:?}: {alone:?} {all:?}");
            }
        }
    }

    #[test]
    fn what_no_lattice_holds_and_a_delta_below_the_failures_are_refused() {
        let delta = Delta::new(1e-6).expect("a probability");
        let truncated = DpEvent::TruncatedPoissonSampledGaussian {
            sampling_probability: 0.1,
            noise_multiplier: 1.0,
            units: 100,
            largest_batch: 12,
        };
        assert!(matches!(epsilon(&truncated, delta, ReplaceOne), Err(AccountantError::Unsupported { .. })));
        let failing = DpEvent::ThresholdedHistogram { noise_multiplier: 1.0, threshold_delta: 1e-6 };
        assert!(matches!(epsilon(&failing, delta, AddOrRemoveOne), Err(AccountantError::OutOfRange { .. })));
    }
}
