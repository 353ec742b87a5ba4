//! Rényi differential privacy: the looser bound with which most published figures were computed.

use crate::dominating_pair::moment::cumulant;
use crate::dominating_pair::{DominatingPair, PairRequest, dominating_pairs};
use crate::{AccountantError, Delta, DpEvent, NeighboringRelation};

/// The conversion of a Rényi curve to ε at δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conversion {
    /// ε = R(α) + log(1/δ)/(α−1) (Mironov 2017, arXiv v3, Proposition 3).
    Classic,
    /// ε = R(α) + log((α−1)/α) − log(δα)/(α−1) (Canonne, Kamath & Steinke 2020, arXiv v4, Proposition 12).
    Improved,
}

/// Returns the orders that dp_accounting and Opacus try, so that figures published with them can be reproduced.
///
/// ```
/// let orders = accountant::rdp::default_orders();
/// assert_eq!((orders.len(), orders[0], orders[orders.len() - 1]), (156, 1.1, 1024.0));
/// ```
#[must_use]
pub fn default_orders() -> Vec<f64> {
    let fractional = (11..=109).map(|tenth| f64::from(tenth) / 10.0);
    let integral = (11..=63).chain([128, 256, 512, 1024]).map(f64::from);
    fractional.chain(integral).collect()
}

/// Returns the Rényi divergence of order `order` > 1 of the event, in the worse direction.
///
/// ```
/// use accountant::{rdp, DpEvent, NeighboringRelation::AddOrRemoveOne};
/// let event = DpEvent::Gaussian { noise_multiplier: 2.0 };
/// assert!((rdp::divergence(&event, 8.0, AddOrRemoveOne)? - 1.0).abs() < 1e-15);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// A parameter of the event that is out of range; an order that is not a finite number above 1;
/// [`AccountantError::Unsupported`] for events that can fail outright, whose divergence is infinite, or whose dominating pair is
/// known only up to a failure.
pub fn divergence(
    event: &DpEvent,
    order: f64,
    relation: NeighboringRelation,
) -> Result<f64, AccountantError> {
    if !(order > 1.0 && order < f64::INFINITY) {
        return Err(AccountantError::out_of_range("order", order, "a finite number above 1"));
    }
    let mut worst = 0.0_f64;
    for pair in dominating_pairs(event, PairRequest::new(relation))? {
        if pair.failure() > 0.0 {
            let event = "an event that fails with some probability, or is known up to that";
            return Err(AccountantError::Unsupported {
                event,
                question: "a Rényi divergence; ask for rdp::epsilon",
            });
        }
        worst = worst.max(cumulant(&pair, order - 1.0) / (order - 1.0));
    }
    Ok(worst)
}

/// Returns the ε at `delta` from the Rényi divergences at [`default_orders`].
///
/// ```
/// use accountant::{rdp, Delta, DpEvent, NeighboringRelation::AddOrRemoveOne};
/// // Ponomareva et al. 2022, DP-T5 at σ = 0.4: published 6.0573157.
/// let population = 5_240_387_307.0;
/// let step = DpEvent::PoissonSampledGaussian {
///     sampling_probability: 8192.0 / population,
///     noise_multiplier: 0.4,
/// };
/// let run = DpEvent::SelfComposed { event: Box::new(step), count: 100_000 };
/// let epsilon = rdp::epsilon(&run, Delta::new(1.0 / population)?, AddOrRemoveOne, rdp::Conversion::Improved)?;
/// assert!((epsilon / 6.057_315_8 - 1.0).abs() < 1e-6);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// A parameter of the event that is out of range; a failure probability that reaches `delta`.
pub fn epsilon(
    event: &DpEvent,
    delta: Delta,
    relation: NeighboringRelation,
    conversion: Conversion,
) -> Result<f64, AccountantError> {
    let mut worst = 0.0_f64;
    for pair in dominating_pairs(event, PairRequest::new(relation))? {
        let left = pair.delta_left(delta)?;
        let best = default_orders()
            .into_iter()
            .map(|order| convert(&pair, left, order, conversion))
            .fold(f64::INFINITY, f64::min);
        worst = worst.max(best);
    }
    Ok(worst)
}

fn convert(pair: &DominatingPair, delta: f64, order: f64, conversion: Conversion) -> f64 {
    let divergence = cumulant(pair, order - 1.0) / (order - 1.0);
    let log_delta = libm::log(delta);
    match conversion {
        Conversion::Classic => divergence - log_delta / (order - 1.0),
        Conversion::Improved => {
            divergence + libm::log((order - 1.0) / order) - (log_delta + libm::log(order)) / (order - 1.0)
        }
    }
}
