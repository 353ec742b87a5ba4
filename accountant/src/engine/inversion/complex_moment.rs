//! A(s) at complex s far from the real line, for estimates that are checked elsewhere.
//!
//! Where jumps are rare, (P/Q)^s oscillates right of the x₀ at which the sampled component overtakes the rest, and an integral
//! along the real line loses all digits there. The zeros of P/Q lie on Re x = x₀ only. The path leaves the real line just right
//! of x₀, climbs to Im x = Im s, where the phase is constant, and continues to the right. The compensation s·(P/Q − 1)
//! integrates to zero and keeps the digits of A − 1; beyond x₀ it is evaluated in closed form.

use core::f64::consts::PI;

use crate::dominating_pair::MixturePair;
use crate::normal;
use crate::numeric::fft::Complex;
use crate::numeric::legendre;

/// How far beyond the outermost peak the integrand is followed, in σ.
const FOLLOWED: f64 = 9.5;

/// Panels a single value may take.
const MOST_PANELS: u32 = 4000;

/// log A(s), Im s ≥ 0; NaN where it cannot be computed.
pub(super) fn log_moment(pair: &MixturePair, s: Complex) -> Complex {
    let Some(excess) = excess(pair, s) else { return Complex::new(f64::NAN, f64::NAN) };
    log1p(excess)
}

/// A(s) − 1.
fn excess(pair: &MixturePair, s: Complex) -> Option<Complex> {
    let (p, q) = pair.largest_shifts();
    let sigma = pair.sigma();
    let left = -(1.0 - s.re).max(1.0) * q - FOLLOWED * sigma;
    let right = s.re.max(1.0) * p + FOLLOWED * sigma;
    let bend = pair.overtaking().and_then(|(x, weight)| {
        let leave = x + (0.3 * sigma).max(0.8 * sigma * sigma);
        ((s.re > x + sigma && s.im > 0.0 || s.im > 2.0) && leave < right).then_some((leave, weight))
    });
    let end = bend.map_or(right, |(leave, _)| leave);
    let along = along(pair, s, left, end)?;
    let Some((leave, weight)) = bend else { return Some(along) };
    let (rest, moved) = (normal::sf(leave / sigma), normal::sf((leave - 1.0) / sigma));
    let constant = Complex::new(1.0 - s.re * weight, -s.im * weight).scale(rest);
    let compensation = constant.add(s.scale(weight * moved));
    Some(along.sub(compensation).add(beyond(pair, s, leave, right, weight)))
}

/// ∫ Q·[e^{sℓ} − 1 − s·(e^ℓ − 1)] on the real line.
fn along(pair: &MixturePair, s: Complex, left: f64, end: f64) -> Option<Complex> {
    let (p, q) = pair.largest_shifts();
    let sigma = pair.sigma();
    let log_norm = -libm::log(sigma * libm::sqrt(2.0 * PI));
    let widest = 0.5 * sigma.min(2.0 * sigma * sigma / (p + q));
    let size = s.norm() + 1.0;
    let mut sum = Complex::default();
    let (mut at, mut panels) = (left, 0);
    while at < end {
        let mut width = widest;
        while size * (pair.loss(at + width) - pair.loss(at)) > 5.0 {
            width *= 0.7;
        }
        let next = (at + width).min(end);
        legendre::wide(at, next, |x, weight| {
            let loss = pair.loss(x);
            let log_base = log_norm - 0.5 * (x / sigma) * (x / sigma) + pair.log_q(x);
            sum = sum.add(compensated(s, loss, log_base).scale(weight));
        });
        at = next;
        panels += 1;
        if panels > MOST_PANELS {
            return None;
        }
    }
    Some(sum)
}

/// e^{log_base}·[e^{sℓ} − 1 − s·(e^ℓ − 1)], without overflow of the factors.
fn compensated(s: Complex, loss: f64, log_base: f64) -> Complex {
    let power = s.scale(loss);
    let (sin, cos) = (libm::sin(power.im), libm::cos(power.im));
    let half = libm::sin(0.5 * power.im);
    let grown = if power.re < 1.0 && loss < 1.0 {
        let base = libm::exp(log_base);
        let em = libm::expm1(power.re);
        let ratio = libm::expm1(loss);
        return Complex::new(em * cos - 2.0 * half * half - s.re * ratio, (em + 1.0) * sin - s.im * ratio)
            .scale(base);
    } else {
        libm::exp(log_base + power.re)
    };
    let (base, lifted) = (libm::exp(log_base), libm::exp(log_base + loss));
    let constant = Complex::new(1.0, 0.0).sub(s).scale(base).add(s.scale(lifted));
    Complex::new(grown * cos, grown * sin).sub(constant)
}

/// ∫ Q·e^{sℓ} from `leave` up to Im x = Im s and on to the right.
fn beyond(pair: &MixturePair, s: Complex, leave: f64, right: f64, weight: f64) -> Complex {
    let sigma = pair.sigma();
    let variance = sigma * sigma;
    let log_norm = -libm::log(sigma * libm::sqrt(2.0 * PI));
    let (log_weight, odds) = (libm::log(weight), (1.0 - weight) / weight);
    let value = |x: Complex| {
        let z = Complex::new((x.re - 0.5) / variance, x.im / variance);
        let fade = odds * libm::exp(-z.re);
        let rest = log1p(Complex::new(fade * libm::cos(z.im), -fade * libm::sin(z.im)));
        let loss = Complex::new(log_weight, 0.0).add(z).add(rest);
        let power = s.mul(loss).sub(x.mul(x).scale(0.5 / variance));
        let size = libm::exp(power.re + log_norm);
        Complex::new(size * libm::cos(power.im), size * libm::sin(power.im))
    };
    // The modulus falls by e^{(y² − 2·y·Im s)/2σ²} on the way up.
    let drop = s.im * s.im - 100.0 * variance;
    let top = if drop > 0.0 { s.im - libm::sqrt(drop) } else { s.im };
    let mut sum = Complex::default();
    let pace = (6.0 * variance / (libm::fabs(s.re - leave) + 2.0 * sigma)).min(sigma).min(variance);
    panels(0.0, top, pace, |y, weight| {
        sum = sum.add(value(Complex::new(leave, y)).mul(Complex::new(0.0, weight)));
    });
    panels(leave, right, 0.5 * sigma, |x, weight| sum = sum.add(value(Complex::new(x, s.im)).scale(weight)));
    sum
}

fn panels(from: f64, to: f64, width: f64, mut f: impl FnMut(f64, f64)) {
    let count = libm::ceil((to - from) / width).clamp(1.0, f64::from(MOST_PANELS));
    let mut index = 0.0;
    while index < count {
        legendre::wide(
            from + (to - from) * index / count,
            from + (to - from) * (index + 1.0) / count,
            &mut f,
        );
        index += 1.0;
    }
}

/// log(1 + z), accurate for small z.
fn log1p(z: Complex) -> Complex {
    let square = 2.0 * z.re + z.re * z.re + z.im * z.im;
    Complex::new(0.5 * libm::log1p(square), libm::atan2(z.im, 1.0 + z.re))
}
