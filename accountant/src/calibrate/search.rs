//! Searches for the parameter at which ε crosses a target, in few evaluations of ε.

use super::EpsilonTarget;
use crate::{AccountantError, DpEvent, Result};

/// Relative width to which a noise multiplier is searched.
const PRECISION: f64 = 5e-7;

/// A parameter and the certified upper ε there.
#[derive(Clone, Copy)]
pub(super) struct Tried<T> {
    pub(super) at: T,
    epsilon: f64,
}

/// Tries parameters of an event against a target.
pub(super) struct Trials<'a, F> {
    target: &'a EpsilonTarget,
    event_for: F,
}

impl<'a, F> Trials<'a, F> {
    /// Refuses a target that is not a finite number above 0.
    pub(super) fn new(target: &'a EpsilonTarget, event_for: F) -> Result<Self> {
        if target.epsilon > 0.0 && target.epsilon < f64::INFINITY {
            Ok(Self { target, event_for })
        } else {
            let allowed = "a finite number above 0";
            Err(AccountantError::out_of_range("target epsilon", target.epsilon, allowed))
        }
    }

    fn of<T: Copy>(&self, at: T) -> Result<Tried<T>>
    where
        F: Fn(T) -> DpEvent,
    {
        Ok(Tried { at, epsilon: self.target.spent(&(self.event_for)(at))? })
    }

    fn meets<T>(&self, tried: &Tried<T>) -> bool {
        tried.epsilon <= self.target.epsilon
    }
}

impl<F: Fn(f64) -> DpEvent> Trials<'_, F> {
    /// Returns the smallest noise multiplier that meets the target, searched from a guess.
    pub(super) fn smallest_noise(&self, guess: f64) -> Result<f64> {
        let (mut low, mut high) = self.bracket(guess)?;
        let target = libm::log(self.target.epsilon);
        for round in 0..200 {
            if high.at / low.at - 1.0 <= PRECISION {
                break;
            }
            // log ε against log σ is nearly straight: aim just beyond the crossing, from either side in turn.
            let (x_low, x_high) = (libm::log(low.at), libm::log(high.at));
            let (y_low, y_high) = (libm::log(low.epsilon) - target, libm::log(high.epsilon) - target);
            let crossing = x_low - y_low * (x_high - x_low) / (y_high - y_low);
            let nudged = crossing + if round % 2 == 0 { 0.4 * PRECISION } else { -0.4 * PRECISION };
            let usable = round % 5 != 4 && nudged > x_low && nudged < x_high;
            let middle = libm::exp(if usable { nudged } else { 0.5 * (x_low + x_high) });
            if middle <= low.at || middle >= high.at {
                break;
            }
            let tried = self.of(middle)?;
            if self.meets(&tried) {
                high = tried;
            } else {
                low = tried;
            }
        }
        Ok(high.at)
    }

    /// Returns a multiplier that misses the target and one that meets it.
    fn bracket(&self, guess: f64) -> Result<(Tried<f64>, Tried<f64>)> {
        let mut noise = self.of(guess)?;
        if self.meets(&noise) {
            while noise.at > 1e-4 {
                let half = self.of(0.5 * noise.at)?;
                if !self.meets(&half) {
                    return Ok((half, noise));
                }
                noise = half;
            }
        } else {
            while noise.at < 1e9 {
                let double = self.of(2.0 * noise.at)?;
                if self.meets(&double) {
                    return Ok((noise, double));
                }
                noise = double;
            }
        }
        Err(AccountantError::NotConverged {
            what: "no noise multiplier between 1e-4 and 1e9 is the smallest",
        })
    }
}

impl<F: Fn(u64) -> DpEvent> Trials<'_, F> {
    /// Returns the largest count from 0 to `most` that meets the target. ε must grow with the
    /// count.
    pub(super) fn largest_count(&self, most: u64) -> Result<u64> {
        let mut good = Tried { at: 0, epsilon: 0.0 };
        let mut bad = Tried { at: 1, ..self.of(1.min(most))? };
        while self.meets(&bad) {
            good = bad;
            if good.at >= most {
                return Ok(most);
            }
            // ε grows at most in proportion to the count once it counts at all, and at least with its root.
            let count = good.at as f64;
            let guess = (self.target.epsilon / good.epsilon * count).clamp(2.0 * count, 1e3 * count);
            bad = self.of(if guess < most as f64 { guess as u64 } else { most })?;
        }
        Ok(self.last_good(good, bad)?.min(most))
    }

    /// Returns the smallest count from 1 to `most` that meets the target. ε must fall with the
    /// count.
    pub(super) fn smallest_count(&self, most: u64) -> Result<u64> {
        let mut good = self.of(most)?;
        if !(most > 0 && self.meets(&good)) {
            return Err(AccountantError::NotConverged {
                what: "no batch up to the number of units meets the target",
            });
        }
        while good.at > 1 {
            let half = self.of(good.at / 2)?;
            if !self.meets(&half) {
                return self.last_good(good, half);
            }
            good = half;
        }
        Ok(good.at)
    }

    /// Returns the count next to one that misses the target, between `good`, which meets it, and
    /// `bad`, which does not.
    fn last_good(&self, mut good: Tried<u64>, mut bad: Tried<u64>) -> Result<u64> {
        let target = self.target.epsilon;
        let mut round = 0;
        while good.at.abs_diff(bad.at) > 1 {
            let (low, high) = (good.at.min(bad.at), good.at.max(bad.at));
            let (x_good, x_bad) = (libm::log(good.at as f64), libm::log(bad.at as f64));
            let (y_good, y_bad) = (libm::log(good.epsilon / target), libm::log(bad.epsilon / target));
            // log ε against the logarithm is nearly straight; a step beyond the crossing closes the bracket from both ends.
            let crossing = libm::exp(x_good - y_good * (x_bad - x_good) / (y_bad - y_good));
            let usable = round % 4 != 3 && crossing.is_finite();
            let nudged = if round % 2 == 0 { f64::floor(crossing) } else { f64::ceil(crossing) };
            let middle = if usable { nudged as u64 } else { low + (high - low) / 2 };
            let tried = self.of(middle.clamp(low + 1, high - 1))?;
            if self.meets(&tried) {
                good = tried;
            } else {
                bad = tried;
            }
            round += 1;
        }
        Ok(good.at)
    }
}
