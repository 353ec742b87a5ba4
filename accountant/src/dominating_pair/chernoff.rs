//! Chernoff's bound: Markov's inequality on e^{tL}, at the best order t.
//!
//! For every t > 0, log δ(ε) ≤ K(t) − tε + t·log t − (1+t)·log(1+t): e^{−ty}(1−e^{−y}) has its maximum over y ≥ 0 at
//! y = log(1 + 1/t). This is the conversion of Canonne, Kamath & Steinke 2020, Proposition 12
//! (<https://arxiv.org/abs/2004.00010>), with the Rényi order α = 1 + t.

use super::DominatingPair;
use super::moment::{cheap_cumulant, cumulant};

/// δ(`epsilon`) ≤ e^`log_delta`, by the moment of order `order` (t; the Rényi order is 1 + t).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChernoffBound {
    pub(crate) epsilon: f64,
    pub(crate) log_delta: f64,
    pub(crate) order: f64,
}

impl ChernoffBound {
    /// The smallest ε that some order proves at `delta`.
    pub(crate) fn at_delta(pair: &DominatingPair, delta: f64) -> Self {
        let log_delta = libm::log(delta);
        let (epsilon, order) = best_order(pair, |cumulant, t| {
            let (gained, wanted) = (log_hockey_stick(t), -log_delta);
            (cumulant + gained + wanted + ROUNDING * (libm::fabs(cumulant) - gained + wanted)) / t
        });
        Self { epsilon, log_delta, order }
    }

    /// The smallest δ that some order proves at `epsilon`.
    pub(crate) fn at_epsilon(pair: &DominatingPair, epsilon: f64) -> Self {
        let (log_delta, order) = best_order(pair, |cumulant, t| {
            let (gained, spent) = (log_hockey_stick(t), t * epsilon);
            cumulant - spent + gained + ROUNDING * (libm::fabs(cumulant) + libm::fabs(spent) - gained)
        });
        Self { epsilon, log_delta, order }
    }

    /// The bound on δ, at most 1.
    pub(crate) fn delta(&self) -> f64 {
        libm::exp(self.log_delta).min(1.0)
    }
}

/// log max_y e^{−ty}(1−e^{−y}) = t·log t − (1+t)·log(1+t): the gain over the tail probability P(L > ε).
pub(crate) fn log_hockey_stick(t: f64) -> f64 {
    -t * libm::log1p(1.0 / t) - libm::log1p(t)
}

/// Relative rounding of K and the logarithms, counted on the safe side.
const ROUNDING: f64 = 1e-12;

/// The least value over t > 0, given K(t) and t, and where it is taken: among cheap orders, or all if those fail. Of many phases, a sketch
/// gives the order.
fn best_order(pair: &DominatingPair, value: impl Fn(f64, f64) -> f64) -> (f64, f64) {
    let search = |pair: &DominatingPair| {
        let found = minimize(|t| value(cheap_cumulant(pair, t), t));
        if found.0.is_finite() { found } else { minimize(|t| value(cumulant(pair, t), t)) }
    };
    if let Some(sketch) = pair.sketch() {
        let (_, order) = search(&sketch);
        let least = value(cumulant(pair, order), order);
        if least.is_finite() {
            return (least, order);
        }
    }
    search(pair)
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
