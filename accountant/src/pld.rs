//! ε by the FFT accountant of privacy loss distributions alone, for comparison with the other
//! engines.

use crate::dominating_pair::dominating_pairs;
use crate::engine;
use crate::query::{Query, delta_to_spend};
use crate::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation};

/// Name of the method in an answer.
pub const METHOD: &str = "certified bounds on a grid of privacy losses";

/// Certified bounds on the ε of `event` at `delta` from privacy loss distributions composed by FFT: an engine that shares only
/// the dominating pair with the one that [`crate::epsilon`] tries first.
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
/// As [`crate::epsilon`]'s; the proof note is at the head of `engine/pld_fft`.
///
/// # Errors
/// As [`crate::epsilon`]'s; [`AccountantError::Unsupported`] for truncated Poisson sampling and private selection;
/// [`AccountantError::NotConverged`] where the grid would need too many points.
pub fn epsilon(
    event: &DpEvent,
    delta: Delta,
    relation: NeighboringRelation,
) -> Result<Bounds, AccountantError> {
    let event_bounds = |request| {
        let mut worst = Bounds { lower: 0.0, upper: 0.0 };
        for pair in dominating_pairs(event, request)? {
            worst = worst.worse(engine::epsilon_by_pld_fft(&pair, delta_to_spend(&pair, delta)?)?)?;
        }
        Ok(worst)
    };
    Query { event, units: 1, relation }.both_bounds(event_bounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NeighboringRelation::{AddOrRemoveOne, ReplaceOne};

    #[test]
    fn the_fft_accountant_agrees_with_all_engines_together() {
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
    fn events_without_a_known_pld_and_a_delta_below_the_failures_are_refused() {
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
