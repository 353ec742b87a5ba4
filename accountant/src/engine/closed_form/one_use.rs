//! A single use of a mixture: one integral.

use core::f64::consts::PI;

use crate::numeric::legendre;

use crate::dominating_pair::MixturePair;

/// Relative error of δ from quadrature and special functions.
pub(super) const RELATIVE: f64 = 1e-11;

/// log δ(ε) = log ∫ (p − e^ε·q) over the x with ℓ(x) > ε, where the integrand is positive.
pub(super) fn log_delta(pair: &MixturePair, epsilon: f64) -> f64 {
    let (p, q) = pair.largest_shifts();
    let sigma = pair.sigma();
    let from = pair.locate(epsilon).max(-q - 40.0 * sigma);
    // Beyond the farthest component and 40 σ no normal law has mass that a float can hold.
    let to = (p + 40.0 * sigma).max(from + 2.0 * sigma);
    if from.is_nan() || from >= to {
        return f64::NEG_INFINITY;
    }
    let width = 0.4 * sigma.min(1.4 * sigma * sigma / (p + q));
    let log_at = |x: f64| -0.5 * (x / sigma) * (x / sigma) + pair.log_p(x);
    // The largest density right of `from` is at `from` or at a component.
    let scale = log_at(from).max(if from < p { log_at(p) } else { f64::NEG_INFINITY }).max(if from < 0.0 {
        log_at(0.0)
    } else {
        f64::NEG_INFINITY
    });
    let (mut sum, mut at) = (0.0, from);
    while at < to {
        let next = at + width;
        legendre::wide(at, next, |x, weight| {
            sum += weight * libm::exp(log_at(x) - scale) * -libm::expm1((epsilon - pair.loss(x)).min(0.0));
        });
        at = next;
        // Beyond all components, the log density falls with the square of x, so the rest of the
        // integral is below the last bit.
        if at > p && log_at(at) < scale - 50.0 {
            break;
        }
    }
    scale + libm::log(sum) - libm::log(sigma * f64::sqrt(2.0 * PI))
}
