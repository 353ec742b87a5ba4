//! Parameters that meet a target.

use crate::{AccountantError, Delta, DpEvent, NeighboringRelation, epsilon};

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
    positive_target(target_epsilon)?;
    let spent = |noise: f64| Ok(epsilon(&event_for(noise), delta, relation)?.upper);
    let (mut low, mut high) = bracket(target_epsilon, &spent)?;
    let target = libm::log(target_epsilon);
    for round in 0..200 {
        if high.0 / low.0 - 1.0 <= PRECISION {
            break;
        }
        // log ε against log σ is nearly straight: aim just beyond the crossing, from either side in turn.
        let (x_low, x_high) = (libm::log(low.0), libm::log(high.0));
        let (y_low, y_high) = (libm::log(low.1) - target, libm::log(high.1) - target);
        let crossing = x_low - y_low * (x_high - x_low) / (y_high - y_low);
        let nudged = crossing + if round % 2 == 0 { 0.4 * PRECISION } else { -0.4 * PRECISION };
        let usable = round % 5 != 4 && nudged > x_low && nudged < x_high;
        let middle = libm::exp(if usable { nudged } else { 0.5 * (x_low + x_high) });
        if middle <= low.0 || middle >= high.0 {
            break;
        }
        let value = spent(middle)?;
        if value <= target_epsilon {
            high = (middle, value);
        } else {
            low = (middle, value);
        }
    }
    Ok(high.0)
}

/// A noise multiplier and its certified upper ε.
type Tried = (f64, f64);

/// A multiplier that misses the target and one that meets it, each with its ε.
fn bracket(
    target: f64,
    spent: &impl Fn(f64) -> Result<f64, AccountantError>,
) -> Result<(Tried, Tried), AccountantError> {
    let mut noise = (1.0, spent(1.0)?);
    if noise.1 <= target {
        while noise.0 > 1e-4 {
            let half = 0.5 * noise.0;
            let value = spent(half)?;
            if value > target {
                return Ok(((half, value), noise));
            }
            noise = (half, value);
        }
    } else {
        while noise.0 < 1e9 {
            let double = 2.0 * noise.0;
            let value = spent(double)?;
            if value <= target {
                return Ok((noise, (double, value)));
            }
            noise = (double, value);
        }
    }
    Err(AccountantError::NotConverged { what: "no noise multiplier between 1e-4 and 1e9 is the smallest" })
}

/// The largest count from 0 to `most` of which the event's certified upper ε meets the target: steps, trials, batch.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, calibrate};
/// let steps = calibrate::steps(2.0, Delta::new(1e-5)?, AddOrRemoveOne, 1_000_000, |count| {
///     let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.01, noise_multiplier: 1.0 };
///     DpEvent::SelfComposed { event: Box::new(step), count }
/// })?;
/// // A thousand steps cost 1.828 (reference query A).
/// assert!((1100..1300).contains(&steps));
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// A target that is not a finite number above 0; what `event_for` violates.
pub fn steps(
    target_epsilon: f64,
    delta: Delta,
    relation: NeighboringRelation,
    most: u64,
    event_for: impl Fn(u64) -> DpEvent,
) -> Result<u64, AccountantError> {
    positive_target(target_epsilon)?;
    let meets = |count: u64| -> Result<bool, AccountantError> {
        Ok(count == 0 || epsilon(&event_for(count), delta, relation)?.upper <= target_epsilon)
    };
    let (mut good, mut bad) = (0, 1);
    while meets(bad)? {
        good = bad;
        if bad >= most {
            return Ok(most);
        }
        bad = bad.saturating_mul(2).min(most);
    }
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if meets(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(good)
}

fn positive_target(target: f64) -> Result<(), AccountantError> {
    if target > 0.0 && target < f64::INFINITY {
        Ok(())
    } else {
        Err(AccountantError::OutOfRange {
            name: "target epsilon",
            value: target,
            allowed: "a finite number above 0",
        })
    }
}
