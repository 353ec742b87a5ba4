//! log A(s) for real s, by the trapezoid rule on the line, and K(t) of a composition.
//!
//! # Proof note
//! The integrand is analytic in a strip |Im x| ≤ a. With θ = a·d/σ² < π (d the largest displacement) the
//! base (1 + Σ w(e^z−1)) neither vanishes there nor exceeds its value on the real line, and falls below it
//! by cos(θ/2) at most, −log of which is below 0.19·θ² for θ ≤ 2.5; the normal weight grows by e^{a²/2σ²}. The trapezoid rule with step h is then off
//! by at most 2·A(s)·e^{θ²σ²/2d² + |negative powers|·(−log cos(θ/2))}/(e^{2πa/h}−1) (Trefethen & Weideman
//! 2014, Theorem 5.1); `step` makes that e^{−38}.
//!
//! Where nothing of P is displaced and c = Re s > 1, rare sampling needs few nodes however high the power. The base of Q
//! over k = 1 − Σw is 1 + Σ yⱼe^{iθⱼ} with 0 ≤ θⱼ ≤ θ; let C = Σ yⱼ cos θⱼ and S = Σ yⱼ sin θⱼ. For θ ≤ π/2 its modulus is
//! at least 1 + C and its argument at most S/(1 + C), so that |its power 1 − s| is at most
//! e^{−(c−1)·log(1+C) + |Im s|·S/(1+C)} ≤ e^{(|Im s|·S − (c−1)·C)/(1+C)}, which is at most 1 where |Im s|·tan θ ≤ c − 1. With
//! k^{1−c} for what was divided out and A(c) ≥ 1 (Jensen), e^{(c−1)·(−log k)} stands for both the power and the turning.

use core::f64::consts::PI;

use super::{DominatingPair, Factor, Law, MixturePair, TruncationMixture};
use crate::numeric::{binomial, legendre};

/// Distance from the outermost peak up to which the integral extends, in σ: the normal tail is
/// below 1e-22 there.
pub(crate) const FOLLOWED: f64 = 9.8;

/// Largest number of nodes of a moment. No bound is best at an order that needs more.
const MAX_NODES: f64 = 1e6;

/// Nodes that a search for the best order may spend on one.
const CHEAP_NODES: f64 = 2e4;

/// Trapezoid step for A(s), s = `power` + i·ω with |ω| ≤ `frequency`.
fn step(pair: &MixturePair, power: f64, frequency: f64) -> f64 {
    let (p, q) = pair.largest_shifts();
    let far = p.max(q);
    let sigma = pair.sigma();
    if far == 0.0 {
        return 0.25 * sigma;
    }
    // The powers that divide: of P when s < 0, of Q when s > 1.
    let negative =
        if p > 0.0 { (-power).max(0.0) } else { 0.0 } + if q > 0.0 { (power - 1.0).max(0.0) } else { 0.0 };
    let normal = sigma * sigma / (2.0 * far * far);
    let doubled = if p > 0.0 && q > 0.0 { 2.0 } else { 1.0 };
    // The step for a strip given by θ, in which the integrand grows by e^{constant + turning·θ + widening·θ²}.
    let step = |constant: f64, turning: f64, widening: f64, widest: f64| {
        let theta = f64::sqrt((38.0 + constant) / widening).min(widest);
        let grown = 38.0 + constant + turning * theta + widening * theta * theta;
        2.0 * PI * theta * sigma * sigma / far / grown
    };
    let plain = step(0.0, frequency * doubled, normal + 0.19 * negative, 2.5);
    if p > 0.0 || power <= 1.0 {
        return plain;
    }
    let kept = -(power - 1.0) * pair.log_kept_of_q();
    plain.max(step(kept, 0.0, normal, libm::atan2(power - 1.0, frequency)))
}

/// Calls `f(x, log of the quadrature weight less that of N(0, σ²))` over the line, for A at
/// `power` + iω with |ω| ≤ `frequency`. Returns the number of points, or `None` if it exceeds
/// `most`.
///
/// A cut pair's integrand ends abruptly, and is integrated by panels of 16 Gauss points instead.
///
/// # Proof note
/// On a panel of width w from a, the rule is off by at most (64/15)·M·4^{−32}/(1 − 4^{−2})·w/2 with M the largest modulus
/// on the Bernstein ellipse ρ = 4 (Trefethen 2013, Theorem 19.3), whose real parts lie within [a − 0.6w, a + 1.6w] and
/// whose imaginary parts y within 0.94w. Let F = e^{−x²/2σ²}·P^s·Q^{1−s}, s = c + iω, λ = ℓ′ on the real line, d the
/// displacement. As w·d/σ² ≤ 0.56 and posterior displacements in [0, d] have a variance of at most d times their mean,
/// at x + iy the moduli of P and of Q fall below their value at x by at most 0.27·wλ in the logarithm, their arguments
/// are at most 0.98·wλ, and e^{y²/2σ²} ≤ e^{0.08}. Along the line log F moves by at most 1.57·w·(|x|/σ² + (|c|+1)·λ), and λ
/// by a factor of at most e^{2.2·0.56}, hence wλ ≤ 1.56·(ℓ(a + 1.6w) − ℓ(a − 0.6w)) on all of the ellipse. Together M is
/// at most e^{10.1} times the least |F| on the panel where `panel_growth` is at most 10: relative to ∫|F| the rule is then off by
/// less than 4e-15. That holds for the powers 0, 1 and c of P/Q alike.
pub(crate) fn points(
    pair: &MixturePair,
    power: f64,
    frequency: f64,
    most: f64,
    mut f: impl FnMut(f64, f64),
) -> Option<f64> {
    let (p, q) = pair.largest_shifts();
    let sigma = pair.sigma();
    // Positive powers of a mixture peak as far out as the power; negative ones never exceed its kept part.
    let right = (power.max(1.0) * p + FOLLOWED * sigma).min(pair.cut());
    let left = -(1.0 - power).max(1.0) * q - FOLLOWED * sigma;
    let log_norm = -libm::log(sigma * f64::sqrt(2.0 * PI));
    if pair.cut() == f64::INFINITY {
        let h = step(pair, power, frequency);
        let nodes = f64::ceil((right - left) / h);
        if nodes.is_nan() || nodes > most {
            return None;
        }
        let log_weight = log_norm + libm::log(h);
        let mut index = 0.0;
        while index <= nodes {
            f(left + index * h, log_weight);
            index += 1.0;
        }
        return Some(nodes + 1.0);
    }
    let widest = 0.4 * sigma.min(1.4 * sigma * sigma / (p + q));
    let size = libm::fabs(power) + 1.0 + frequency;
    let panel_growth = |at: f64, width: f64| {
        let (from, to) = (at - 0.6 * width, at + 1.6 * width);
        let farthest = libm::fabs(from).max(libm::fabs(to));
        2.9 * size * (pair.loss(to) - pair.loss(from)) + 1.57 * width * farthest / (sigma * sigma)
    };
    let (mut at, mut count) = (left, 0.0);
    while at < right {
        let mut width = widest;
        while panel_growth(at, width) > 10.0 {
            width *= 0.6;
        }
        let next = (at + width).min(right);
        legendre::wide(at, next, |x, weight| f(x, log_norm + libm::log(weight)));
        count += 16.0;
        if count > most {
            return None;
        }
        at = next;
    }
    Some(count)
}

/// log A(s) of one use of `pair`, s real. Relative accuracy about 1e-13 also where A is close to 1.
pub(crate) fn log_moment(pair: &MixturePair, s: f64) -> f64 {
    log_moment_within(pair, s, MAX_NODES)
}

/// Returns [`log_moment`], or +∞ where it needs more than `most` nodes.
fn log_moment_within(pair: &MixturePair, s: f64, most: f64) -> f64 {
    let sigma = pair.sigma();
    let mut scale = 0.0;
    let mut sum = Sum::default();
    let mut tail = Sum::default();
    let seen = points(pair, s, 0.0, most, |x, log_weight| {
        let log_base = log_weight - 0.5 * (x / sigma) * (x / sigma);
        let loss = pair.loss(x);
        let log_weight = if pair.q_is_plain() { log_base } else { log_base + pair.log_q(x) };
        let power = s * loss + log_weight;
        if power > 600.0 {
            // The compensation no longer matters: collect e^{power − scale}.
            if power > scale {
                tail.rescale(libm::exp(scale - power));
                scale = power;
            }
            tail.add(libm::exp(power - scale));
        } else {
            sum.add(compensated(s, loss, log_weight));
        }
    });
    if seen.is_none() {
        return f64::INFINITY;
    }
    if tail.value() > 0.0 {
        return scale + libm::log(tail.value() + (1.0 + sum.value()) * libm::exp(-scale));
    }
    libm::log1p(sum.value())
}

/// w·[(1+u)^s − 1 − s·u] with 1+u = e^ℓ: the subtracted terms integrate to zero and hold the digits.
fn compensated(s: f64, loss: f64, log_weight: f64) -> f64 {
    if libm::fabs(loss) * (1.0 + libm::fabs(s)) < 0.03 {
        let u = libm::expm1(loss);
        let mut term = 0.5 * s * (s - 1.0) * u * u;
        let mut total = term;
        for k in 3..=10 {
            let k = f64::from(k);
            term *= (s - k + 1.0) / k * u;
            total += term;
        }
        return libm::exp(log_weight) * total;
    }
    let power = s * loss;
    let weight = libm::exp(log_weight);
    let first =
        if power < 1.0 { weight * libm::expm1(power) } else { libm::exp(power + log_weight) - weight };
    let second = if loss < 1.0 { weight * libm::expm1(loss) } else { libm::exp(loss + log_weight) - weight };
    first - s * second
}

/// A sum that keeps the digits a plain one drops (Neumaier 1974).
#[derive(Default)]
struct Sum {
    total: f64,
    rest: f64,
}

impl Sum {
    fn add(&mut self, term: f64) {
        let next = self.total + term;
        self.rest += if libm::fabs(self.total) >= libm::fabs(term) {
            (self.total - next) + term
        } else {
            (term - next) + self.total
        };
        self.total = next;
    }

    fn rescale(&mut self, factor: f64) {
        self.total *= factor;
        self.rest *= factor;
    }

    fn value(&self) -> f64 {
        self.total + self.rest
    }
}

/// K(t) = log E_P[e^{tL}] of the whole composition, t real.
pub(crate) fn cumulant(pair: &DominatingPair, t: f64) -> f64 {
    cumulant_within(pair, t, MAX_NODES)
}

/// Returns [`cumulant`] where it is cheap, +∞ elsewhere: for a search that rarely ends at such an order.
pub(crate) fn cheap_cumulant(pair: &DominatingPair, t: f64) -> f64 {
    cumulant_within(pair, t, CHEAP_NODES)
}

fn cumulant_within(pair: &DominatingPair, t: f64, most: f64) -> f64 {
    let gaussian = 0.5 * t * (t + 1.0) * pair.mu_squared();
    pair.factors().iter().fold(gaussian, |sum, Factor { law, count }| {
        let one = match law {
            Law::Mixture(pair) => log_moment_within(pair, 1.0 + t, most),
            // The rounding of a sum over outcomes comes on top.
            Law::Discrete(pair) => pair.log_moment(t) + 1e-15 * (1.0 + libm::fabs(t)),
            Law::Selection(selection) => selection.cumulant(t),
            Law::Concentrated(rho) => t * (1.0 + t) * rho,
            Law::Truncated(mixture) => truncated_moment(mixture, 1.0 + t, most),
        };
        sum + *count as f64 * one
    })
}

/// log((1−p)·A + p·B), A of the whole and B of the truncated pair, from above.
fn truncated_moment(mixture: &TruncationMixture, s: f64, most: f64) -> f64 {
    let whole = log_moment_within(&mixture.whole, s, most);
    let truncated = log_moment_within(&mixture.truncated, s, most);
    let p = mixture.probability;
    // The slack is the error of p, on either part.
    let slack = binomial::RELATIVE * p;
    let most = whole.max(truncated);
    if most > 1.0 {
        let rest = (1.0 - p + slack) * libm::exp(whole - most) + (p + slack) * libm::exp(truncated - most);
        return most + libm::log(rest);
    }
    libm::log1p((1.0 - p) * libm::expm1(whole) + p * libm::expm1(truncated) + 8.0 * slack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dominating_pair::Component;

    #[test]
    fn cut_moments_agree_with_a_fine_rectangle_rule() {
        let part = |weight, shift| vec![Component { weight, shift }];
        for (sigma, weight, power, tail, allowed) in
            [(0.5, 1e-2, 3.0, 1e-9, 1e-9), (2.0, 0.2, 12.0, 1e-12, 1e-9), (0.3, 1e-2, 1000.0, 1e-9, 1e-3)]
        {
            let pair = MixturePair::new(sigma, part(weight, 1.0), part(0.5 * weight, 1.0)).cut_at_tail(tail);
            let (left, right, count) = (-1.0 - 9.8 * sigma, pair.cut(), 2_000_000);
            let width = (right - left) / f64::from(count);
            // This factor is taken out, so that no power overflows.
            let scale = power * pair.loss(right);
            let sum: f64 = (0..count)
                .map(|index| {
                    let x = left + width * (f64::from(index) + 0.5);
                    libm::exp(-0.5 * x * x / (sigma * sigma) + pair.log_q(x) + power * pair.loss(x) - scale)
                })
                .sum();
            let expected = scale + libm::log(sum * width / (sigma * f64::sqrt(2.0 * PI)));
            // The middles are off by width²/24 times the slope at the cut; what is cut off lacks its compensation.
            let lost = (power + 1.0) * 4.0 * tail;
            let off = libm::fabs(log_moment(&pair, power) - expected);
            assert!(off < allowed + lost, "{sigma} {weight} {power}: {off}");
        }
    }
}
