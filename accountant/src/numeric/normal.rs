//! The standard normal distribution, with relative accuracy far into the tails.

use core::f64::consts::{LN_2, PI, SQRT_2};

use crate::numeric::legendre;

/// P(Z ≤ x) for a standard normal Z.
///
/// ```
/// assert!((accountant::normal::cdf(-1.0) - 0.158_655_253_931_457_05).abs() < 1e-16);
/// ```
#[must_use]
pub fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / SQRT_2)
}

/// P(Z > x) for a standard normal Z; relative accuracy about 1e-13 down to 1e-300.
///
/// ```
/// let tail = accountant::normal::sf(10.0);
/// assert!((tail / 7.619_853_024_160_526e-24 - 1.0).abs() < 1e-13);
/// ```
#[must_use]
pub fn sf(x: f64) -> f64 {
    0.5 * libm::erfc(x / SQRT_2)
}

/// log P(Z > x); finite for every finite x.
///
/// ```
/// assert!((accountant::normal::log_sf(100.0) + 5_005.524_208_694_205).abs() < 1e-9);
/// ```
#[must_use]
pub fn log_sf(x: f64) -> f64 {
    if x < -1.0 {
        libm::log1p(-cdf(x))
    } else if x < 8.0 {
        libm::log(sf(x))
    } else {
        -0.5 * x * x - 0.5 * libm::log(2.0 * PI) + libm::log(mills(x))
    }
}

/// Mills' ratio P(Z > x)/φ(x) for x ≥ 8, by Laplace's continued fraction.
fn mills(x: f64) -> f64 {
    let mut tail = x;
    for k in (1..=60).rev() {
        tail = x + f64::from(k) / tail;
    }
    1.0 / tail
}

/// The x with P(Z > x) = `probability`; +∞ at 0 and −∞ at 1, NaN outside [0, 1].
///
/// ```
/// assert!((accountant::normal::isf(1e-9) - 5.997_807_015_007_687).abs() < 1e-13);
/// ```
#[must_use]
pub fn isf(probability: f64) -> f64 {
    if !(0.0..=1.0).contains(&probability) {
        return f64::NAN;
    }
    if probability > 0.5 {
        return -isf_upper(1.0 - probability);
    }
    isf_upper(probability)
}

/// Upper quantile for a probability of at most one half: Newton on log P, which is concave there.
fn isf_upper(probability: f64) -> f64 {
    if probability == 0.0 {
        return f64::INFINITY;
    }
    if probability == 0.5 {
        return 0.0;
    }
    let target = libm::log(probability);
    let mut x = f64::sqrt((-2.0 * (target + LN_2)).max(0.0));
    for _ in 0..60 {
        let value = log_sf(x);
        // d/dx log P(Z > x) = −φ(x)/P(Z > x).
        let slope = -libm::exp(-0.5 * x * x - 0.5 * libm::log(2.0 * PI) - value);
        let next = x - (value - target) / slope;
        let done = libm::fabs(next - x) <= 2e-16 * libm::fabs(x);
        x = next;
        if done {
            break;
        }
    }
    x
}

/// log δ(ε) of the Gaussian mechanism with sensitivity over noise `mu` (Balle & Wang 2018, arXiv v2, Theorem 8).
///
/// δ = φ(a)·∫₀^∞ e^{−au−u²/2}(1−e^{−μu}) du with a = ε/μ − μ/2: every term is positive, so that nothing
/// cancels where the textbook difference of two tails loses all digits.
pub(crate) fn log_gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let a = epsilon / mu - 0.5 * mu;
    if a < -1.0 {
        // 1 − δ = Φ(a) + e^ε Φ(−b): δ is of order one, a difference keeps its digits.
        let b = epsilon / mu + 0.5 * mu;
        let miss = cdf(a) + libm::exp(epsilon + log_sf(b));
        return libm::log1p(-miss);
    }
    // e^{−au−u²/2} has fallen below e^{−45} at `reach`.
    let reach = f64::sqrt(a * a + 90.0) - a;
    let panels = 24;
    let mut sum = 0.0;
    for panel in 0..panels {
        let from = reach * f64::from(panel) / f64::from(panels);
        let to = reach * f64::from(panel + 1) / f64::from(panels);
        sum += legendre::integrate(from, to, |u| libm::exp(-u * (a + 0.5 * u)) * -libm::expm1(-mu * u));
    }
    -0.5 * a * a - 0.5 * libm::log(2.0 * PI) + libm::log(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, Normal};

    #[test]
    fn quantiles_and_tails_are_those_of_statrs() {
        // Oracle: statrs 0.18; the README's table measures its quantile at 2e-16 and its tail at 1e-10.
        let standard = Normal::standard();
        for p in [0.4, 0.05, 1e-3, 1e-9, 1e-20, 1e-100, 1e-300] {
            let (ours, theirs) = (isf(p), -standard.inverse_cdf(p));
            assert!((ours / theirs - 1.0).abs() < 1e-14, "{p}: {ours} against {theirs}");
            let (ours, theirs) = (sf(isf(p)), standard.sf(-standard.inverse_cdf(p)));
            assert!((ours / theirs - 1.0).abs() < 1e-9, "{p}: {ours} against {theirs}");
        }
    }
}
