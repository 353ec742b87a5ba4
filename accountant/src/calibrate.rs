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
    noise_from(1.0, target_epsilon, delta, relation, event_for)
}

/// [`noise_multiplier`], searched from a guess.
fn noise_from(
    guess: f64,
    target_epsilon: f64,
    delta: Delta,
    relation: NeighboringRelation,
    event_for: impl Fn(f64) -> DpEvent,
) -> Result<f64, AccountantError> {
    positive_target(target_epsilon)?;
    let spent = |noise: f64| Ok(epsilon(&event_for(noise), delta, relation)?.upper);
    let (mut low, mut high) = bracket(guess, target_epsilon, &spent)?;
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
    guess: f64,
    target: f64,
    spent: &impl Fn(f64) -> Result<f64, AccountantError>,
) -> Result<(Tried, Tried), AccountantError> {
    let mut noise = (guess, spent(guess)?);
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
    let spent = |count: u64| Ok(epsilon(&event_for(count), delta, relation)?.upper);
    let (mut good, mut bad) = ((0, 0.0), (1, spent(1.min(most))?));
    while bad.1 <= target_epsilon {
        good = bad;
        if good.0 >= most {
            return Ok(most);
        }
        // ε grows no faster than in proportion to the count once it counts at all, and no slower than its root.
        let guess = (target_epsilon / good.1 * good.0 as f64).clamp(2.0 * good.0 as f64, 1e3 * good.0 as f64);
        let next = if guess < most as f64 { guess as u64 } else { most };
        bad = (next, spent(next)?);
    }
    Ok(last_good(target_epsilon, good, bad, spent)?.min(most))
}

/// The largest expected batch, a whole number up to `units`, whose certified upper ε meets the target: what a run of
/// given noise and steps may afford.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, calibrate};
/// let event_for = |batch: u64| {
///     let step = DpEvent::PoissonSampledGaussian {
///         sampling_probability: batch as f64 / 100_000.0,
///         noise_multiplier: 1.0,
///     };
///     DpEvent::SelfComposed { event: Box::new(step), count: 1000 }
/// };
/// let batch = calibrate::batch_size(1.83, Delta::new(1e-5)?, AddOrRemoveOne, 100_000, event_for)?;
/// // A batch of 1000, q = 0.01, costs 1.828 (reference query A).
/// assert!((1000..1005).contains(&batch));
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Guarantee
/// The event at the returned batch has certified upper ε ≤ `target_epsilon` at `delta`; 0 says that no batch does.
///
/// # Errors
/// A target that is not a finite number above 0; what `event_for` violates.
pub fn batch_size(
    target_epsilon: f64,
    delta: Delta,
    relation: NeighboringRelation,
    units: u64,
    event_for: impl Fn(u64) -> DpEvent,
) -> Result<u64, AccountantError> {
    steps(target_epsilon, delta, relation, units, event_for)
}

/// The smallest expected batch, a whole number up to `units`, whose certified upper ε meets the target where ε falls
/// with the batch: a run of given steps and noise-batch ratio, whose noise multiplier grows with the batch.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, calibrate};
/// let event_for = |batch: u64| {
///     let step = DpEvent::PoissonSampledGaussian {
///         sampling_probability: batch as f64 / 100_000.0,
///         noise_multiplier: 1e-3 * batch as f64,
///     };
///     DpEvent::SelfComposed { event: Box::new(step), count: 1000 }
/// };
/// let batch = calibrate::smallest_batch_size(1.83, Delta::new(1e-5)?, AddOrRemoveOne, 100_000, event_for)?;
/// // A batch of 1000 at a multiplier of 1 costs 1.828 (reference query A).
/// assert!((995..=1000).contains(&batch));
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Guarantee
/// The event at the returned batch has certified upper ε ≤ `target_epsilon` at `delta`.
///
/// # Errors
/// A target that is not a finite number above 0; what `event_for` violates; [`AccountantError::NotConverged`] when
/// even a batch of all units misses the target.
pub fn smallest_batch_size(
    target_epsilon: f64,
    delta: Delta,
    relation: NeighboringRelation,
    units: u64,
    event_for: impl Fn(u64) -> DpEvent,
) -> Result<u64, AccountantError> {
    positive_target(target_epsilon)?;
    let spent = |batch: u64| Ok(epsilon(&event_for(batch), delta, relation)?.upper);
    let mut good = (units, spent(units)?);
    if !(units > 0 && good.1 <= target_epsilon) {
        return Err(AccountantError::NotConverged {
            what: "no batch up to the number of units meets the target",
        });
    }
    while good.0 > 1 {
        let half = (good.0 / 2, spent(good.0 / 2)?);
        if half.1 <= target_epsilon {
            good = half;
        } else {
            return last_good(target_epsilon, good, half, spent);
        }
    }
    Ok(good.0)
}

/// A whole number and its certified upper ε.
type Counted = (u64, f64);

/// The number next to one that misses the target, between `good`, which meets it, and `bad`, which does not.
fn last_good(
    target: f64,
    mut good: Counted,
    mut bad: Counted,
    spent: impl Fn(u64) -> Result<f64, AccountantError>,
) -> Result<u64, AccountantError> {
    let mut round = 0;
    while good.0.abs_diff(bad.0) > 1 {
        let (low, high) = (good.0.min(bad.0), good.0.max(bad.0));
        let (x_good, x_bad) = (libm::log(good.0 as f64), libm::log(bad.0 as f64));
        let (y_good, y_bad) = (libm::log(good.1 / target), libm::log(bad.1 / target));
        // log ε against the logarithm is nearly straight; a step beyond the crossing closes the bracket from both ends.
        let crossing = libm::exp(x_good - y_good * (x_bad - x_good) / (y_bad - y_good));
        let usable = round % 4 != 3 && crossing.is_finite();
        let nudged = if round % 2 == 0 { libm::floor(crossing) } else { libm::ceil(crossing) };
        let middle = if usable { nudged as u64 } else { low + (high - low) / 2 };
        let middle = middle.clamp(low + 1, high - 1);
        let value = spent(middle)?;
        if value <= target {
            good = (middle, value);
        } else {
            bad = (middle, value);
        }
        round += 1;
    }
    Ok(good.0)
}

/// What a run may spend besides privacy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute {
    /// So many steps, whatever the batch.
    Steps(u64),
    /// So many examples in all, expected batch times steps.
    Examples(u64),
}

/// A batch with the noise that its privacy needs.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct NoiseBatch {
    /// Expected batch, in units.
    pub expected_batch_size: u64,
    /// Steps of the run.
    pub steps: u64,
    /// Noise multiplier that meets the target.
    pub noise_multiplier: f64,
    /// Noise multiplier over expected batch: the noise on the mean gradient in clip norms, whatever the clip norm is.
    pub ratio: f64,
}

/// The batch of the least noise-batch ratio for a privacy target, or the cheapest within `slack` of it.
///
/// The ratio, not the multiplier, is what the weights feel (Ponomareva et al. 2023, section 5): with steps given it
/// falls with the batch and levels off where noise no longer shrinks, so that a little slack saves most of the
/// compute. Candidates are the powers of two up to `units` and `units` itself.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, calibrate};
/// let event_for = |batch: u64, steps, noise_multiplier| {
///     let sampling_probability = batch as f64 / 60_000.0;
///     let step = DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier };
///     DpEvent::SelfComposed { event: Box::new(step), count: steps }
/// };
/// let given = calibrate::Compute::Steps(500);
/// let found = calibrate::noise_batch_ratio(3.0, Delta::new(1e-5)?, AddOrRemoveOne, 60_000, given, 0.1, event_for)?;
/// // All units at once: μ = √500/σ; ε = 3 takes μ = 0.719117 (Balle & Wang 2018). Half of them are nearly as good.
/// assert!(found.expected_batch_size < 60_000 && found.ratio <= 1.1 * 500_f64.sqrt() / 0.719_117 / 60_000.0 * 1.000_01);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Guarantee
/// The event of the returned parameters has certified upper ε ≤ `target_epsilon` at `delta`.
///
/// # Errors
/// As [`noise_multiplier`]; a slack that is not a finite number from 0; no units, steps or examples.
pub fn noise_batch_ratio(
    target_epsilon: f64,
    delta: Delta,
    relation: NeighboringRelation,
    units: u64,
    compute: Compute,
    slack: f64,
    event_for: impl Fn(u64, u64, f64) -> DpEvent,
) -> Result<NoiseBatch, AccountantError> {
    if !(0.0..f64::INFINITY).contains(&slack) {
        return Err(AccountantError::OutOfRange {
            name: "slack",
            value: slack,
            allowed: "a finite number from 0",
        });
    }
    let mut found: Vec<NoiseBatch> = Vec::new();
    let mut near = 1.0;
    for batch in candidates(units) {
        let steps = match compute {
            Compute::Steps(steps) => steps,
            Compute::Examples(examples) => examples / batch,
        };
        if steps == 0 {
            break;
        }
        let event = |noise| event_for(batch, steps, noise);
        let noise = noise_from(near, target_epsilon, delta, relation, event)?;
        near = noise;
        found.push(NoiseBatch {
            expected_batch_size: batch,
            steps,
            noise_multiplier: noise,
            ratio: noise / batch as f64,
        });
    }
    let least = found.iter().fold(f64::INFINITY, |least, tried| least.min(tried.ratio));
    found.into_iter().find(|tried| tried.ratio <= least * (1.0 + slack)).ok_or(AccountantError::OutOfRange {
        name: "units, steps or examples",
        value: 0.0,
        allowed: "at least 1 of each",
    })
}

/// Powers of two up to `units`, and `units`.
fn candidates(units: u64) -> impl Iterator<Item = u64> {
    let powers = core::iter::successors(Some(1_u64), |batch| batch.checked_mul(2));
    powers.take_while(move |batch| *batch < units).chain((units > 0).then_some(units))
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
