//! One number for a whole release in other currencies: μ of Gaussian differential privacy, ρ of zero-concentrated.

use crate::mechanism::{Question, lower};
use crate::numeric::normal;
use crate::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation, epsilon};

/// ρ of zero-concentrated differential privacy, rounded up: half of Σ μ² of the event's Gaussian mechanisms.
///
/// Bun & Steinke 2016: a Gaussian of sensitivity over noise μ has Rényi divergence αμ²/2 at every order α, and ρ is
/// the sum of μ²/2.
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
/// [`AccountantError::Unsupported`] for events without a ρ that is worth its name: sampling, whose divergence does not
/// grow in proportion to the order, and thresholds, which can fail; what the event's parameters violate.
pub fn zcdp(event: &DpEvent, relation: NeighboringRelation) -> Result<f64, AccountantError> {
    let mut worst = 0.0_f64;
    for side in lower(event, Question::new(relation))? {
        if !(side.pairs.is_empty()
            && side.coins.is_empty()
            && side.tables.is_empty()
            && side.selections.is_empty())
        {
            return Err(AccountantError::Unsupported {
                event: "an event of other than Gaussian noise",
                question: "zCDP",
            });
        }
        if side.failure > 0.0 {
            return Err(AccountantError::Unsupported { event: "thresholded_histogram", question: "zCDP" });
        }
        worst = worst.max(0.5 * side.mu_squared * (1.0 + 1e-13));
    }
    Ok(worst)
}

/// Bounds on the μ at which a single Gaussian mechanism costs the same ε at `delta` as the event.
///
/// An equivalent at this δ, for comparison: μ at another δ may be larger, except for events of plain Gaussian
/// mechanisms only, which have one μ at every δ (Dong, Roth & Su 2022).
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
    // Where ε is 0 the event may cost any less. δ of the Gaussian at a fixed ε grows with μ: a slightly larger target on the way up, a smaller one on the way down.
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
