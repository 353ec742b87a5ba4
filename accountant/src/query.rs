//! Answers what ε is at δ, and what δ is at ε.

use crate::dominating_pair::{
    Composition, DominatingPair, PairRequest, dominating_pairs, has_alternative, has_separate_bounds,
};
use crate::engine::{self, Target};
use crate::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation, Result};

/// Returns certified bounds on the ε of `event` at `delta`.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, epsilon};
/// let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.01, noise_multiplier: 1.0 };
/// let run = DpEvent::SelfComposed { event: Box::new(step), count: 1000 };
/// let bounds = epsilon(&run, Delta::new(1e-5)?, AddOrRemoveOne)?;
/// // Contour inversion gives 1.828237 (reference query A).
/// assert!(bounds.lower <= 1.828_237 && bounds.upper >= 1.828_236 && bounds.upper - bounds.lower < 1e-3);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Guarantee
/// The true ε of the event's dominating pair lies between the bounds, provided that `libm` is accurate to a few
/// units in the last place and IEEE arithmetic holds.
///
/// # Errors
/// A parameter of the event that is out of range; a failure probability that reaches `delta`.
pub fn epsilon(event: &DpEvent, delta: Delta, relation: NeighboringRelation) -> Result<Bounds> {
    group_epsilon(event, 1, delta, relation)
}

/// Returns bounds as [`epsilon`] does for a group of `units`, such as the records of one user.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, group_epsilon};
/// let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.01, noise_multiplier: 4.0 };
/// let run = DpEvent::SelfComposed { event: Box::new(step), count: 10_000 };
/// // Contour inversion: 0.946867 for one record, 2.038508 for two: more than twice.
/// let two = group_epsilon(&run, 2, Delta::new(1e-5)?, AddOrRemoveOne)?;
/// assert!(two.lower <= 2.038_508 && two.upper >= 2.038_507);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// As [`epsilon`]; a group of none or of more than 256; [`AccountantError::Unsupported`] for events whose
/// parameters do not determine a group's ε.
pub fn group_epsilon(
    event: &DpEvent,
    units: u32,
    delta: Delta,
    relation: NeighboringRelation,
) -> Result<Bounds> {
    Query { event, units, relation }.both_bounds(|request| worst(event, Asked::Epsilon(delta), request))
}

/// Returns certified bounds on the δ of `event` at `epsilon`.
///
/// ```
/// use accountant::{DpEvent, NeighboringRelation::AddOrRemoveOne, delta};
/// let bounds = delta(&DpEvent::Gaussian { noise_multiplier: 1.0 }, 1.0, AddOrRemoveOne)?;
/// // Balle & Wang 2018: Φ(−1/2) − e·Φ(−3/2).
/// assert!((bounds.upper - 0.126_936_737_507_2).abs() < 1e-12);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// An `epsilon` that is not a finite number from 0; a parameter of the event that is out of range.
pub fn delta(event: &DpEvent, epsilon: f64, relation: NeighboringRelation) -> Result<Bounds> {
    group_delta(event, 1, epsilon, relation)
}

/// Returns bounds as [`delta`] does for a group of `units`.
///
/// ```
/// use accountant::{DpEvent, NeighboringRelation::AddOrRemoveOne, group_delta};
/// // Two records of one user move a sum twice as far.
/// let pair = group_delta(&DpEvent::Gaussian { noise_multiplier: 2.0 }, 2, 1.0, AddOrRemoveOne)?;
/// assert!((pair.upper - 0.126_936_737_507_2).abs() < 1e-12);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// As [`delta`] and [`group_epsilon`].
pub fn group_delta(
    event: &DpEvent,
    units: u32,
    epsilon: f64,
    relation: NeighboringRelation,
) -> Result<Bounds> {
    if !(0.0..f64::INFINITY).contains(&epsilon) {
        return Err(AccountantError::out_of_range("epsilon", epsilon, "a finite number from 0"));
    }
    Query { event, units, relation }.both_bounds(|request| worst(event, Asked::Delta(epsilon), request))
}

/// Returns an upper bound on the probability with which `event` fails a group of `units` outright, whatever ε is: a
/// threshold releases an item which nobody else holds. No ε can be stated at a smaller δ.
///
/// ```
/// use accountant::{DpEvent, NeighboringRelation::AddOrRemoveOne, failure};
/// let words = DpEvent::ThresholdedHistogram { noise_multiplier: 20.0, threshold_delta: 1e-8 };
/// assert_eq!(failure(&words, 1, AddOrRemoveOne)?, 1e-8);
/// // Two people may both hold a rare word: Φ(Φ⁻¹(2e-8) + 2/20).
/// assert!((failure(&words, 2, AddOrRemoveOne)? / 3.506_225e-8 - 1.0).abs() < 1e-3);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// As [`group_epsilon`].
pub fn failure(event: &DpEvent, units: u32, relation: NeighboringRelation) -> Result<f64> {
    let request = Query { event, units, relation }.request();
    // A sum of bounds may exceed 1, which no probability does.
    Ok(dominating_pairs(event, request)?.iter().map(DominatingPair::failure).fold(0.0, f64::max).min(1.0))
}

/// The event and the units that a query is about.
pub(crate) struct Query<'a> {
    pub(crate) event: &'a DpEvent,
    pub(crate) units: u32,
    pub(crate) relation: NeighboringRelation,
}

impl Query<'_> {
    pub(crate) fn request(&self) -> PairRequest {
        PairRequest { group_size: self.units, ..PairRequest::new(self.relation) }
    }

    /// Returns bounds from the event's dominating pairs. If the event has separate pairs for lower
    /// bounds, the lower bound comes from those.
    pub(crate) fn both_bounds(&self, bounds: impl Fn(PairRequest) -> Result<Bounds>) -> Result<Bounds> {
        let request = self.request();
        let upper = bounds(request)?;
        if !self.has_separate_bounds()? {
            return Ok(upper);
        }
        let lower = bounds(request.for_lower_bound())?.lower;
        Bounds::new(lower.min(upper.upper), upper.upper)
    }

    fn has_separate_bounds(&self) -> Result<bool> {
        if has_separate_bounds(self.event) {
            return Ok(true);
        }
        // The probability with which thresholds fail a group is known from above only.
        Ok(self.units > 1 && failure(self.event, self.units, self.relation)? > 0.0)
    }
}

/// The question about an event.
#[derive(Clone, Copy)]
enum Asked {
    Epsilon(Delta),
    Delta(f64),
}

/// Returns the worst answer of all directions.
fn worst(event: &DpEvent, asked: Asked, request: PairRequest) -> Result<Bounds> {
    let ask = |pair: &DominatingPair, floor: f64| match asked {
        Asked::Epsilon(delta) => epsilon_of(pair, delta, floor),
        Asked::Delta(epsilon) => delta_of(pair, epsilon),
    };
    let pairs = dominating_pairs(event, request)?;
    // About the part of δ that stages leave out, too.
    let spare = match asked {
        Asked::Epsilon(delta) => 1e-4 * delta.get(),
        Asked::Delta(_) => 1e-18,
    };
    let others = if has_alternative(event, request) {
        dominating_pairs(event, request.alternative(spare))?
    } else {
        Vec::new()
    };
    let mut worst = Bounds { lower: 0.0, upper: 0.0 };
    for (index, pair) in pairs.iter().enumerate() {
        let mut bounds = ask(pair, worst.lower)?;
        if let Some(other) = others.get(index).filter(|other| *other != pair)
            && let Ok(second) = ask(other, worst.lower)
        {
            // Each pair bounds the event from the same side.
            let pick = if request.is_lower() { f64::max } else { f64::min };
            bounds = Bounds::new(pick(bounds.lower, second.lower), pick(bounds.upper, second.upper))?;
        }
        worst = worst.worse(bounds)?;
    }
    Ok(worst)
}

/// Returns the ε of one direction. Its bounds need not be narrow below `floor`.
pub(crate) fn epsilon_of(pair: &DominatingPair, delta: Delta, floor: f64) -> Result<Bounds> {
    engine::bounds(pair, Target::Epsilon { delta: delta_to_spend(pair, delta)? }, floor)
}

/// Returns the part of `delta` that a pair's own failures leave, rounded down.
pub(crate) fn delta_to_spend(pair: &DominatingPair, delta: Delta) -> Result<f64> {
    Ok(pair.delta_left(delta)? * (1.0 - 1e-15))
}

/// Returns the δ of one direction, with its failures added to the upper bound.
pub(crate) fn delta_of(pair: &DominatingPair, epsilon: f64) -> Result<Bounds> {
    let bounds = engine::bounds(pair, Target::Delta { epsilon }, 0.0)?;
    // A probability too small for a float is not zero.
    let least = if pair.composition() == Composition::Trivial { 0.0 } else { f64::MIN_POSITIVE };
    Bounds::new(bounds.lower, (bounds.upper.max(least) + pair.failure()).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_too_small_for_a_float_is_not_called_nothing() {
        let relation = NeighboringRelation::AddOrRemoveOne;
        // δ is near exp(−500²/2), far below the smallest float.
        let tiny = delta(&DpEvent::Gaussian { noise_multiplier: 1.0 }, 500.0, relation).unwrap();
        assert!(tiny.lower == 0.0 && tiny.upper > 0.0, "{tiny:?}");
        let nothing = delta(&DpEvent::Composed { events: Vec::new() }, 500.0, relation).unwrap();
        assert_eq!(nothing.upper, 0.0);
    }
}
