//! Splitting a budget among the parts of a pipeline.
//!
//! A split only proposes noise. What the parts give together is certified afterwards, on the composed event.

use crate::{AccountantError, Delta, DpEvent, NeighboringRelation, calibrate};

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
