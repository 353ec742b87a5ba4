//! The cheapest certified bound: Markov's inequality on the exponential moment.

use crate::mechanism::Lowered;
use crate::transform::moment::{cheap_cumulant, cumulant};

/// log max_y e^{−ty}(1−e^{−y}) = t·log t − (1+t)·log(1+t): what δ gains over the plain tail probability.
pub(crate) fn log_hockey_stick(t: f64) -> f64 {
    -t * libm::log1p(1.0 / t) - libm::log1p(t)
}

/// What K and the logarithms may be off by, relative to their sizes: counted on the safe side.
const ROUNDING: f64 = 1e-12;

/// The smallest ε with e^{K(t) − tε + log_hockey_stick(t)} ≤ δ for some t, and that t.
pub(crate) fn epsilon(side: &Lowered, delta: f64) -> (f64, f64) {
    let log_delta = libm::log(delta);
    least(side, |at, t| {
        let (gained, wanted) = (log_hockey_stick(t), -log_delta);
        (at + gained + wanted + ROUNDING * (libm::fabs(at) - gained + wanted)) / t
    })
}

/// The smallest K(t) − tε + log_hockey_stick(t), an upper bound on log δ, and its t.
pub(crate) fn log_delta(side: &Lowered, epsilon: f64) -> (f64, f64) {
    least(side, |at, t| {
        let (gained, spent) = (log_hockey_stick(t), t * epsilon);
        at - spent + gained + ROUNDING * (libm::fabs(at) + libm::fabs(spent) - gained)
    })
}

/// The least value of K(t) and t, looked for where K is cheap, and everywhere if that finds none.
fn least(side: &Lowered, value: impl Fn(f64, f64) -> f64) -> (f64, f64) {
    let found = minimize(|t| value(cheap_cumulant(side, t), t));
    if found.0.is_finite() { found } else { minimize(|t| value(cumulant(side, t), t)) }
}

/// The least value over t > 0 of a function that falls and then rises, and where it is taken.
fn minimize(value: impl Fn(f64) -> f64) -> (f64, f64) {
    let at = |log_t: f64| value(libm::exp(log_t));
    // The moment grows without bound, and its cost with t: widen only while the bound still falls.
    let (mut low, mut high) = (libm::log(0.25), libm::log(4.0));
    let (mut at_low, mut at_high) = (at(low), at(high));
    let mut middle = 0.0;
    let mut at_middle = at(middle);
    while at_high < at_middle - 2e-3 * libm::fabs(at_middle) && high < 30.0 {
        (low, at_low) = (middle, at_middle);
        (middle, at_middle) = (high, at_high);
        high += core::f64::consts::LN_2;
        at_high = at(high);
    }
    while at_low < at_middle && low > -20.0 {
        high = middle;
        (middle, at_middle) = (low, at_low);
        low -= 2.0 * core::f64::consts::LN_2;
        at_low = at(low);
    }
    let golden = 0.618_033_988_749_894_9;
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_left, mut at_right) = (at(left), at(right));
    while high - low > 0.02 {
        // A NaN or an infinity on the right moves the search to the left.
        if at_right < at_left {
            low = left;
            (left, at_left) = (right, at_right);
            right = low + golden * (high - low);
            at_right = at(right);
        } else {
            high = right;
            (right, at_right) = (left, at_left);
            left = high - golden * (high - low);
            at_left = at(left);
        }
    }
    let best = 0.5 * (low + high);
    (at(best), libm::exp(best))
}
