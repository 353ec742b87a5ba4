//! Splits a privacy budget among the parts of a pipeline.
//!
//! A split only proposes noise. The composed event is certified afterwards.

use crate::calibrate::EpsilonTarget;
use crate::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation, Result, epsilon};

/// Returns the δ from which on a guarantee to `units` units is meaningless, 1 / `units`: publishing one unit drawn at
/// random satisfies it.
///
/// ```
/// assert_eq!(accountant::budget::delta_ceiling(10_000), 1e-4);
/// ```
#[must_use]
pub fn delta_ceiling(units: u64) -> f64 {
    1.0 / units as f64
}

/// Whether `delta` lies below [`delta_ceiling`].
///
/// ```
/// use accountant::{Delta, budget::is_meaningful};
/// let delta = Delta::new(1e-4)?;
/// assert!(is_meaningful(delta, 9_999));
/// assert!(!is_meaningful(delta, 10_000));
/// # Ok::<(), accountant::AccountantError>(())
/// ```
#[must_use]
pub fn is_meaningful(delta: Delta, units: u64) -> bool {
    delta.get() < delta_ceiling(units)
}

/// Returns the default δ for `units` units: a tenth of [`delta_ceiling`], at most 1e-6.
///
/// ```
/// assert_eq!(accountant::budget::default_delta(6_000), 1e-6);
/// assert_eq!(accountant::budget::default_delta(1_000_000), 1e-7);
/// ```
#[must_use]
pub fn default_delta(units: u64) -> f64 {
    (1.0 / (10.0 * units as f64)).min(1e-6)
}

/// Returns the part of δ that the thresholds of a vocabulary release may use: a tenth. The noise uses the rest.
///
/// ```
/// let delta = accountant::Delta::new(1e-6)?;
/// assert_eq!(accountant::budget::threshold_delta(delta), 1e-7);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
#[must_use]
pub fn threshold_delta(delta: Delta) -> f64 {
    delta.get() / 10.0
}

/// Returns the noise multiplier of a part that may use `share` of the squared μ which one Gaussian mechanism with a
/// threshold of `threshold_delta` has at the target.
///
/// # Errors
/// [`AccountantError::OutOfRange`] for a share outside (0, 1]; as [`EpsilonTarget::noise_multiplier`].
///
/// ```
/// use accountant::calibrate::EpsilonTarget;
/// use accountant::{Delta, NeighboringRelation::AddOrRemoveOne, budget::noise_multiplier_of_share};
/// let target = EpsilonTarget { epsilon: 8.0, delta: Delta::new(1e-6)?, relation: AddOrRemoveOne };
/// let whole = noise_multiplier_of_share(&target, 1.0, 1e-7)?;
/// let quarter = noise_multiplier_of_share(&target, 0.25, 1e-7)?;
/// // A quarter of μ² is half of μ: twice the noise.
/// assert!((quarter / whole - 2.0).abs() < 1e-5);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
pub fn noise_multiplier_of_share(target: &EpsilonTarget, share: f64, threshold_delta: f64) -> Result<f64> {
    if !(share > 0.0 && share <= 1.0) {
        return Err(AccountantError::out_of_range("share", share, "0 < share ≤ 1"));
    }
    let root = f64::sqrt(share);
    target.noise_multiplier(|noise_multiplier| DpEvent::ThresholdedHistogram {
        noise_multiplier: noise_multiplier * root,
        threshold_delta,
    })
}

/// The noise of each stage of a pipeline, and its cost.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Split {
    /// The noise multiplier of each stage.
    pub noise_multipliers: Vec<f64>,
    /// The ε of each stage alone at the whole δ.
    pub alone: Vec<Bounds>,
    /// The ε of all stages together.
    pub together: Bounds,
}

/// Returns the noise for stages that share a budget. Each stage alone has the ε of a Gaussian mechanism with its share
/// of μ². Together the stages meet the target, although their ε add up to more.
///
/// `event_for(stage, noise_multiplier)` is the event of a stage. Shares are relative to their sum.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, budget, calibrate::EpsilonTarget};
/// let event_for = |stage, noise_multiplier| match stage {
///     0 => DpEvent::ThresholdedHistogram { noise_multiplier, threshold_delta: 1e-7 },
///     _ => {
///         let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.01, noise_multiplier };
///         DpEvent::SelfComposed { event: Box::new(step), count: 1000 }
///     }
/// };
/// let target = EpsilonTarget { epsilon: 4.0, delta: Delta::new(1e-6)?, relation: AddOrRemoveOne };
/// let split = budget::split(&target, &[0.2, 0.8], event_for)?;
/// assert!(split.together.upper <= 4.0 && split.together.upper > 3.99);
/// let sum: f64 = split.alone.iter().map(|bounds| bounds.upper).sum();
/// assert!(sum > 5.0);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Guarantee
/// The composition of the stages at the returned multipliers meets the target.
///
/// # Errors
/// Shares that are not finite numbers above 0, or none; as [`EpsilonTarget::noise_multiplier`].
pub fn split(
    target: &EpsilonTarget,
    shares: &[f64],
    event_for: impl Fn(usize, f64) -> DpEvent,
) -> Result<Split> {
    let EpsilonTarget { epsilon: most, delta, relation } = *target;
    let total: f64 = shares.iter().sum();
    for share in shares {
        if !(*share > 0.0 && total < f64::INFINITY) {
            return Err(AccountantError::out_of_range("share", *share, "finite numbers above 0"));
        }
    }
    if shares.is_empty() {
        return Err(AccountantError::out_of_range("shares", 0.0, "at least one"));
    }
    let gaussian = |noise_multiplier| DpEvent::Gaussian { noise_multiplier };
    // A Gaussian mechanism is calibrated under the relation for which its μ is one over its noise
    // multiplier.
    let plain = NeighboringRelation::AddOrRemoveOne;
    let try_at = |mu: f64| -> Result<(Vec<f64>, Bounds)> {
        let mut noises = Vec::with_capacity(shares.len());
        for (stage, share) in shares.iter().enumerate() {
            let own = epsilon(&gaussian(1.0 / (mu * f64::sqrt(share / total))), delta, plain)?.upper;
            let stage_target = EpsilonTarget { epsilon: own, ..*target };
            noises.push(stage_target.noise_multiplier(|noise| event_for(stage, noise))?);
        }
        let events = noises.iter().enumerate().map(|(stage, noise)| event_for(stage, *noise)).collect();
        Ok((noises, epsilon(&DpEvent::Composed { events }, delta, relation)?))
    };
    let whole = 1.0 / EpsilonTarget { relation: plain, ..*target }.noise_multiplier(gaussian)?;
    let (mut low, mut high) = (0.25 * whole, 1.5 * whole);
    let mut found = try_at(low)?;
    if found.1.upper > most {
        return Err(AccountantError::NotConverged {
            what: "the stages exceed the target at a quarter of its μ",
        });
    }
    for _ in 0..20 {
        if found.1.upper > most * (1.0 - 1e-3) {
            break;
        }
        let middle = 0.5 * (low + high);
        let tried = try_at(middle)?;
        if tried.1.upper <= most {
            (low, found) = (middle, tried);
        } else {
            high = middle;
        }
    }
    let alone =
        found.0.iter().enumerate().map(|(stage, noise)| epsilon(&event_for(stage, *noise), delta, relation));
    Ok(Split { alone: alone.collect::<Result<_>>()?, noise_multipliers: found.0, together: found.1 })
}
