//! Summarizes a whole release as one number: μ of Gaussian differential privacy, or ρ of zero-concentrated differential
//! privacy.

use crate::dominating_pair::{PairRequest, dominating_pairs};
use crate::numeric::normal;
use crate::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation, epsilon};

/// Returns ρ of zero-concentrated differential privacy, rounded up: half of Σ μ² of the event's Gaussian mechanisms, and Σ ρ of those
/// that are known by their ρ alone.
///
/// Bun & Steinke 2016, Proposition 1.6 (<https://arxiv.org/abs/1605.02065>): a Gaussian of sensitivity over noise μ has Rényi divergence αμ²/2 at every order α.
///
/// ```
/// use accountant::{DpEvent, NeighboringRelation::{AddOrRemoveOne, ReplaceOne}, zcdp};
/// let event = DpEvent::SelfComposed { event: Box::new(DpEvent::Gaussian { noise_multiplier: 2.0 }), count: 8 };
/// assert!((zcdp(&event, AddOrRemoveOne)? - 1.0).abs() < 1e-12);
/// // An exchanged unit moves a sum twice as far, at four times the cost.
/// assert!((zcdp(&event, ReplaceOne)? - 4.0).abs() < 1e-12);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// [`AccountantError::Unsupported`] for sampling, whose divergence does not grow in proportion to the order, and for
/// thresholds, which can fail; a parameter of the event that is out of range.
pub fn zcdp(event: &DpEvent, relation: NeighboringRelation) -> Result<f64, AccountantError> {
    let mut worst = 0.0_f64;
    for pair in dominating_pairs(event, PairRequest::new(relation))? {
        let Some(rho) = pair.concentration() else {
            return Err(AccountantError::Unsupported {
                event: "an event of other than Gaussian noise",
                question: "zCDP",
            });
        };
        if pair.failure() > 0.0 {
            return Err(AccountantError::Unsupported { event: "thresholded_histogram", question: "zCDP" });
        }
        worst = worst.max(rho * (1.0 + 1e-13));
    }
    Ok(worst)
}

/// Returns bounds on the μ at which a single Gaussian mechanism has the same ε at `delta` as the event.
///
/// For comparison at this δ only: μ at another δ may be larger. Events of plain Gaussian mechanisms have one μ at every δ
/// (Dong, Roth & Su 2022).
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, gaussian_equivalent};
/// let event = DpEvent::SelfComposed { event: Box::new(DpEvent::Gaussian { noise_multiplier: 2.0 }), count: 4 };
/// // √4/2 = 1.
/// let mu = gaussian_equivalent(&event, Delta::new(1e-6)?, AddOrRemoveOne)?;
/// assert!(mu.lower <= 1.0 && mu.upper >= 1.0 && mu.upper - mu.lower < 1e-9);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// As [`epsilon`].
pub fn gaussian_equivalent(
    event: &DpEvent,
    delta: Delta,
    relation: NeighboringRelation,
) -> Result<Bounds, AccountantError> {
    let spent = epsilon(event, delta, relation)?;
    let target = libm::log(delta.get());
    // At a fixed ε, δ of the Gaussian grows with μ. So the upper bound uses a slightly larger target, and the lower
    // bound a smaller one. Where ε is 0, the event may cost any less.
    let (_, upper) = crossing(spent.upper, target + 1e-12)?;
    let (lower, _) = crossing(spent.lower, target - 1e-12)?;
    let exact = if spent.lower == 0.0 { 0.0 } else { lower };
    Bounds::new(exact * (1.0 - 1e-12), upper * (1.0 + 1e-12))
}

/// Neighbouring μ between which log δ of the Gaussian at `epsilon` passes `target`.
fn crossing(epsilon: f64, target: f64) -> Result<(f64, f64), AccountantError> {
    let beyond = |mu: f64| normal::log_gaussian_delta(mu, epsilon) > target;
    let (mut low, mut high) = (0.0, 1.0);
    while !beyond(high) {
        (low, high) = (high, 2.0 * high);
        if high > 1e8 {
            return Err(AccountantError::NotConverged { what: "the equivalent mu is beyond 1e8" });
        }
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if beyond(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok((low, high))
}
