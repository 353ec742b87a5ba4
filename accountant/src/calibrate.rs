//! Parameters that meet a target.

use crate::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation, epsilon};

/// Relative width to which a parameter is searched.
const PRECISION: f64 = 5e-7;

/// Smallest noise multiplier (rounded up by at most 1e-6, relative) whose certified upper ε meets the target.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, calibrate};
/// // Igamberdiev et al. 2024, WMT16 at ε = 5: 2.973747 by contour inversion, 3.123536 by Rényi orders.
/// let noise = calibrate::noise_multiplier(5.0, Delta::new(1e-8)?, AddOrRemoveOne, |noise_multiplier| {
///     let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.230_402_891_286_282_25, noise_multiplier };
///     DpEvent::SelfComposed { event: Box::new(step), count: 109 }
/// })?;
/// assert!(noise >= 2.973_746_6 && noise < 2.973_750);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Guarantee
/// The event at the returned multiplier has certified upper ε ≤ `target_epsilon` at `delta`.
///
/// # Errors
/// A target that is not a finite number above 0, what `event_for` violates, or
/// [`AccountantError::NotConverged`] when no multiplier up to 1e9 meets the target.
pub fn noise_multiplier(
    target_epsilon: f64,
    delta: Delta,
    relation: NeighboringRelation,
    event_for: impl Fn(f64) -> DpEvent,
) -> Result<f64, AccountantError> {
    if !(target_epsilon > 0.0 && target_epsilon < f64::INFINITY) {
        return Err(AccountantError::OutOfRange {
            name: "target epsilon",
            value: target_epsilon,
            allowed: "a finite number above 0",
        });
    }
    let spent =
        |noise: f64| -> Result<Bounds, AccountantError> { epsilon(&event_for(noise), delta, relation) };
    let (mut low, mut high) = bracket(target_epsilon, &spent)?;
    while high / low - 1.0 > PRECISION {
        let middle = libm::sqrt(low * high);
        if spent(middle)?.upper <= target_epsilon {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// A multiplier that misses the target and one that meets it, a factor 2 apart.
fn bracket(
    target: f64,
    spent: &impl Fn(f64) -> Result<Bounds, AccountantError>,
) -> Result<(f64, f64), AccountantError> {
    let mut noise = 1.0;
    if spent(noise)?.upper <= target {
        while noise > 1e-4 {
            let half = 0.5 * noise;
            if spent(half)?.upper <= target {
                noise = half;
            } else {
                return Ok((half, noise));
            }
        }
    } else {
        while noise < 1e9 {
            let double = 2.0 * noise;
            if spent(double)?.upper <= target {
                return Ok((noise, double));
            }
            noise = double;
        }
    }
    Err(AccountantError::NotConverged { what: "no noise multiplier between 1e-4 and 1e9 is the smallest" })
}
