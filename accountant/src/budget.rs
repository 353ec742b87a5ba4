//! Splitting a budget among the parts of a pipeline.
//!
//! A split only proposes noise. What the parts give together is certified afterwards, on the composed event.

use crate::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation, calibrate, epsilon};

/// The smallest δ that promises nothing to `units` units, 1 / `units`: with it, publishing one unit drawn at
/// random keeps the promise.
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

/// The δ to promise `units` units when nobody chose one: a tenth of [`delta_ceiling`], at most 1e-6.
///
/// ```
/// assert_eq!(accountant::budget::default_delta(6_000), 1e-6);
/// assert_eq!(accountant::budget::default_delta(1_000_000), 1e-7);
/// ```
#[must_use]
pub fn default_delta(units: u64) -> f64 {
    (1.0 / (10.0 * units as f64)).min(1e-6)
}

/// The part of δ that the thresholds of a vocabulary release may use: a tenth. The rest is left to the noise.
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

/// Noise multiplier of a part that may have `share` of the squared μ which one Gaussian mechanism with a
/// threshold of `threshold_delta` has at (`target_epsilon`, `delta`).
///
/// # Errors
/// [`AccountantError::OutOfRange`] for a share outside (0, 1]; whatever [`calibrate::noise_multiplier`] says.
///
/// ```
/// use accountant::{Delta, NeighboringRelation::AddOrRemoveOne, budget::noise_multiplier_of_share};
/// let delta = Delta::new(1e-6)?;
/// let whole = noise_multiplier_of_share(8.0, delta, AddOrRemoveOne, 1.0, 1e-7)?;
/// let quarter = noise_multiplier_of_share(8.0, delta, AddOrRemoveOne, 0.25, 1e-7)?;
/// // A quarter of μ² is half of μ: twice the noise.
/// assert!((quarter / whole - 2.0).abs() < 1e-5);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
pub fn noise_multiplier_of_share(
    target_epsilon: f64,
    delta: Delta,
    relation: NeighboringRelation,
    share: f64,
    threshold_delta: f64,
) -> Result<f64, AccountantError> {
    if !(share > 0.0 && share <= 1.0) {
        return Err(AccountantError::OutOfRange { name: "share", value: share, allowed: "0 < share ≤ 1" });
    }
    let root = libm::sqrt(share);
    calibrate::noise_multiplier(target_epsilon, delta, relation, |noise_multiplier| {
        DpEvent::ThresholdedHistogram { noise_multiplier: noise_multiplier * root, threshold_delta }
    })
}

/// What each stage of a pipeline gets.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Split {
    /// Noise multiplier of each stage.
    pub noise_multipliers: Vec<f64>,
    /// ε of each stage alone at the whole δ.
    pub alone: Vec<Bounds>,
    /// ε of all stages together.
    pub together: Bounds,
}

/// Noise for stages that share a budget: each alone costs what a Gaussian mechanism with its share of μ² costs, and
/// together they meet the target, which their ε added up would exceed.
///
/// `event_for(stage, noise_multiplier)` says what a stage does. Shares are relative to their sum.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, budget};
/// let event_for = |stage, noise_multiplier| match stage {
///     0 => DpEvent::ThresholdedHistogram { noise_multiplier, threshold_delta: 1e-7 },
///     _ => {
///         let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.01, noise_multiplier };
///         DpEvent::SelfComposed { event: Box::new(step), count: 1000 }
///     }
/// };
/// let split = budget::split(4.0, Delta::new(1e-6)?, AddOrRemoveOne, &[0.2, 0.8], event_for)?;
/// assert!(split.together.upper <= 4.0 && split.together.upper > 3.99);
/// let sum: f64 = split.alone.iter().map(|bounds| bounds.upper).sum();
/// assert!(sum > 5.0);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Guarantee
/// The composition of the stages at the returned multipliers has certified upper ε ≤ `target_epsilon` at `delta`.
///
/// # Errors
/// Shares that are not finite numbers above 0, or none; whatever [`calibrate::noise_multiplier`] says.
pub fn split(
    target_epsilon: f64,
    delta: Delta,
    relation: NeighboringRelation,
    shares: &[f64],
    event_for: impl Fn(usize, f64) -> DpEvent,
) -> Result<Split, AccountantError> {
    let total: f64 = shares.iter().sum();
    for share in shares {
        if !(*share > 0.0 && total < f64::INFINITY) {
            return Err(AccountantError::OutOfRange {
                name: "share",
                value: *share,
                allowed: "finite numbers above 0",
            });
        }
    }
    if shares.is_empty() {
        return Err(AccountantError::OutOfRange { name: "shares", value: 0.0, allowed: "at least one" });
    }
    let try_at = |mu: f64| -> Result<(Vec<f64>, Bounds), AccountantError> {
        let mut noises = Vec::with_capacity(shares.len());
        for (stage, share) in shares.iter().enumerate() {
            let gaussian = DpEvent::Gaussian { noise_multiplier: 1.0 / (mu * libm::sqrt(share / total)) };
            let own = epsilon(&gaussian, delta, NeighboringRelation::AddOrRemoveOne)?.upper;
            noises.push(calibrate::noise_multiplier(own, delta, relation, |noise| event_for(stage, noise))?);
        }
        let events = noises.iter().enumerate().map(|(stage, noise)| event_for(stage, *noise)).collect();
        Ok((noises, epsilon(&DpEvent::Composed { events }, delta, relation)?))
    };
    let single = |noise_multiplier| DpEvent::Gaussian { noise_multiplier };
    let whole = 1.0
        / calibrate::noise_multiplier(target_epsilon, delta, NeighboringRelation::AddOrRemoveOne, single)?;
    let (mut low, mut high) = (0.25 * whole, 1.5 * whole);
    let mut found = try_at(low)?;
    if found.1.upper > target_epsilon {
        return Err(AccountantError::NotConverged {
            what: "the stages exceed the target at a quarter of its μ",
        });
    }
    for _ in 0..20 {
        if found.1.upper > target_epsilon * (1.0 - 1e-3) {
            break;
        }
        let middle = 0.5 * (low + high);
        let tried = try_at(middle)?;
        if tried.1.upper <= target_epsilon {
            (low, found) = (middle, tried);
        } else {
            high = middle;
        }
    }
    let alone =
        found.0.iter().enumerate().map(|(stage, noise)| epsilon(&event_for(stage, *noise), delta, relation));
    Ok(Split { alone: alone.collect::<Result<_, _>>()?, noise_multipliers: found.0, together: found.1 })
}
