//! Bounds what an attacker can learn about the participation of one unit.

use crate::dominating_pair::{DominatingPair, PairRequest, dominating_pairs};
use crate::engine::{self, Target};
use crate::query::Query;
use crate::{
    AccountantError, Bounds, Delta, DpEvent, NeighboringRelation, Result, failure, group_delta, group_epsilon,
};

/// Returns the probability that an attacker with even prior odds identifies the right one of two neighbouring data
/// sets.
///
/// It is (1 + δ(0))/2, because δ(0) is the total variation distance: 0.5 is a guess, 1 is certainty.
///
/// ```
/// use accountant::{DpEvent, NeighboringRelation::AddOrRemoveOne, tradeoff};
/// let odds = tradeoff::odds(&DpEvent::Gaussian { noise_multiplier: 1.0 }, AddOrRemoveOne)?;
/// // Φ(1/2): the best test asks whether the output is above the middle.
/// assert!((odds.upper - 0.691_462_461_274_013).abs() < 1e-12);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// A parameter of the event that is out of range.
pub fn odds(event: &DpEvent, relation: NeighboringRelation) -> Result<Bounds> {
    group_odds(event, 1, relation)
}

/// Returns [`odds`] for a group of `units`, such as the records of one user.
///
/// ```
/// use accountant::{DpEvent, NeighboringRelation::AddOrRemoveOne, tradeoff};
/// let odds = tradeoff::group_odds(&DpEvent::Gaussian { noise_multiplier: 4.0 }, 4, AddOrRemoveOne)?;
/// assert!((odds.upper - 0.691_462_461_274_013).abs() < 1e-12);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// As [`group_delta`].
pub fn group_odds(event: &DpEvent, units: u32, relation: NeighboringRelation) -> Result<Bounds> {
    let distance = group_delta(event, units, 0.0, relation)?;
    Bounds::new(0.5 + 0.5 * distance.lower, (0.5 + 0.5 * distance.upper).min(1.0))
}

/// Returns the largest posterior probability with which an attacker from even prior odds can be sure after a single
/// outcome: e^ε/(1 + e^ε), rounded up. It holds for all but a δ of the outcomes; [`odds`] is the average over all of
/// them.
///
/// ```
/// // ln 3: three to one.
/// assert!((accountant::tradeoff::confidence(1.098_612_288_668_11) - 0.75).abs() < 1e-12);
/// assert_eq!(accountant::tradeoff::confidence(f64::INFINITY), 1.0);
/// ```
#[must_use]
pub fn confidence(epsilon: f64) -> f64 {
    (1.0 / (1.0 + libm::exp(-epsilon)) * (1.0 + 4.0 * f64::EPSILON)).min(1.0)
}

/// Returns the best true positive rate of a membership test whose false positive rate α is `false_positive_rate`.
///
/// It is the infimum over ε of e^ε·α + δ(ε). From above: its value at chosen ε, each of which is a proof. From below: the δ at
/// the far end and the ε at the near end of each interval between them.
///
/// ```
/// use accountant::{DpEvent, NeighboringRelation::AddOrRemoveOne, tradeoff};
/// let event = DpEvent::Gaussian { noise_multiplier: 1.0 };
/// let rate = tradeoff::true_positive_rate(&event, 0.01, AddOrRemoveOne)?;
/// // Φ(Φ⁻¹(0.01) + 1) for the Gaussian mechanism with μ = 1.
/// assert!(rate.lower <= 0.092_36 && rate.upper >= 0.092_35 && rate.upper < 0.093);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// A rate that is not strictly between 0 and 1; a parameter of the event that is out of range.
pub fn true_positive_rate(
    event: &DpEvent,
    false_positive_rate: f64,
    relation: NeighboringRelation,
) -> Result<Bounds> {
    group_true_positive_rate(event, 1, false_positive_rate, relation)
}

/// Returns [`true_positive_rate`] for a group of `units`, such as the records of one user.
///
/// ```
/// use accountant::{DpEvent, NeighboringRelation::AddOrRemoveOne, tradeoff};
/// let event = DpEvent::Gaussian { noise_multiplier: 4.0 };
/// let rate = tradeoff::group_true_positive_rate(&event, 4, 0.01, AddOrRemoveOne)?;
/// assert!(rate.lower <= 0.092_36 && rate.upper >= 0.092_35 && rate.upper < 0.093);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// As [`true_positive_rate`] and [`group_epsilon`].
pub fn group_true_positive_rate(
    event: &DpEvent,
    units: u32,
    false_positive_rate: f64,
    relation: NeighboringRelation,
) -> Result<Bounds> {
    if !(false_positive_rate > 0.0 && false_positive_rate < 1.0) {
        let name = "false positive rate";
        return Err(AccountantError::out_of_range(name, false_positive_rate, "strictly between 0 and 1"));
    }
    // Beyond the ε at which δ is far below the rate, e^ε·α only grows.
    let least = (1e-3 * false_positive_rate).max(1.01 * failure(event, units, relation)?);
    let reach = group_epsilon(event, units, Delta::new(least.min(0.999))?, relation)?.upper;
    let bounds = Query { event, units, relation }
        .both_bounds(|request| worst_rate(event, request, false_positive_rate, reach))?;
    Bounds::new(bounds.lower.max(false_positive_rate).min(bounds.upper), bounds.upper)
}

/// Returns the worst rate of all directions.
fn worst_rate(event: &DpEvent, request: PairRequest, alpha: f64, reach: f64) -> Result<Bounds> {
    let mut worst = Bounds { lower: 0.0, upper: alpha };
    for pair in dominating_pairs(event, request)? {
        worst = worst.worse(rate(&pair, alpha, reach)?)?;
    }
    Ok(worst)
}

/// The number of points at which δ is evaluated.
const POINTS: u32 = 64;

fn rate(pair: &DominatingPair, alpha: f64, reach: f64) -> Result<Bounds> {
    let delta = |epsilon| engine::bounds(pair, Target::Delta { epsilon }, 0.0);
    let (mut lowest, mut upper) = (f64::INFINITY, 1.0_f64);
    let mut near = 0.0;
    upper = upper.min(alpha + delta(0.0)?.upper + pair.failure());
    for index in 1..=POINTS {
        let far = reach * f64::from(index) / f64::from(POINTS);
        let bounds = delta(far)?;
        upper = upper.min(libm::exp(far) * alpha + bounds.upper + pair.failure());
        lowest = lowest.min(interval(alpha, near, bounds.lower));
        near = far;
    }
    lowest = lowest.min(libm::exp(near) * alpha);
    Bounds::new(lowest.min(1.0).min(upper), upper.min(1.0))
}

/// Returns a lower bound of e^ε·α + δ(ε) on [near, far]: the first term is least at the near end, the second at the far
/// one.
fn interval(alpha: f64, near: f64, at_far: f64) -> f64 {
    libm::exp(near) * alpha + at_far
}
