//! ε to nine digits, by inversion on two bent contours that check each other.
//!
//! δ(ε) = (1/2πi) ∫ e^{K(t) − tε}/(t(t+1)) dt (Alghamdi et al. 2023, Theorem 3.1,
//! <https://arxiv.org/abs/2208.09595>). The contour t = c + β(√(ω² + w²) − w) + iω bends to the
//! right. On it the integrand falls geometrically also where jumps are rare and a straight line
//! would need ten thousand nodes, and the trapezoid sum converges geometrically (Trefethen &
//! Weideman 2014). The figure is not proved. Two contours of different bend and spacing must agree,
//! and the figure is reported only inside certified bounds.

use core::f64::consts::PI;

use crate::Bounds;
use crate::dominating_pair::chernoff::ChernoffBound;
use crate::dominating_pair::moment::cumulant;
use crate::dominating_pair::{Composition, DominatingPair};
use crate::numeric::fft::Complex;

use super::complex_moment::ComplexMoment;

/// log of the part of δ that aliases and truncation may amount to.
const LOG_TOLERANCE: f64 = -25.3;

/// Relative difference at which two contours agree.
const AGREED: f64 = 1e-9;

const MAX_NODES: usize = 700;

/// Logarithms of the ratio by which terms may exceed their sum, the smaller one tried first.
const CANCELLED: [f64; 2] = [9.0, 14.0];

/// Pairs of bends β, tried in turn. A strong bend needs the fewest nodes; a weak one keeps the digits of A where few steps make
/// the integrand fall slowly.
const BENDS: [(f64, f64); 2] = [(0.35, 0.5), (0.1, 0.16)];

/// ε at `delta`, given bounds on it; none where the contours disagree, or the pair is more than mixtures.
pub(crate) fn epsilon(pair: &DominatingPair, delta: f64, bounds: &Bounds) -> Option<f64> {
    if !matches!(pair.composition(), Composition::OneMixture(_) | Composition::Mixtures) {
        return None;
    }
    let middle = 0.5 * (bounds.lower + bounds.upper);
    let saddle = ChernoffBound::at_epsilon(pair, middle).order;
    let near = Near { epsilon: middle, log_delta: libm::log(delta), saddle };
    let placement = CANCELLED.iter().find_map(|most| ContourPlacement::new(pair, &near, *most))?;
    let mut transform = Transform::new(pair);
    BENDS.iter().find_map(|(bend, further)| {
        let one = Contour::new(&mut transform, &placement, *bend, 0.7)?.epsilon(delta, middle)?;
        let other = Contour::new(&mut transform, &placement, *further, 0.55)?.epsilon(delta, middle)?;
        let agree = libm::fabs(one - other) <= AGREED * libm::fabs(other);
        agree.then_some(other)
    })
}

/// The expected answer.
struct Near {
    epsilon: f64,
    log_delta: f64,
    saddle: f64,
}

/// The point at which contours cross the real line, and the period of a straight one.
struct ContourPlacement {
    abscissa: f64,
    period: f64,
    /// K(c) − c·ε, taken out of every term.
    exponent: f64,
    near: f64,
}

impl ContourPlacement {
    fn new(pair: &DominatingPair, near: &Near, most: f64) -> Option<Self> {
        let Near { epsilon: near, log_delta, saddle } = *near;
        let powers: Vec<(f64, f64)> =
            [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.6, 2.0, 2.6]
                .iter()
                .map(|factor| (factor * saddle, cumulant(pair, factor * saddle) - factor * saddle * near))
                .filter(|(_, exponent)| exponent.is_finite())
                .collect();
        let alias = log_delta + LOG_TOLERANCE - 0.7;
        let mut best: Option<Self> = None;
        for (index, (abscissa, exponent)) in powers.iter().enumerate() {
            if exponent - libm::log(abscissa * (abscissa + 1.0)) - log_delta > most {
                continue;
            }
            let above = powers[index + 1..]
                .iter()
                .map(|(power, at)| (at - alias) / (power - abscissa))
                .fold(f64::INFINITY, f64::min);
            let below = powers[..index]
                .iter()
                .map(|(power, at)| (at - alias) / (abscissa - power))
                .fold(-alias / abscissa, f64::min);
            let period = above.max(below);
            if period.is_finite() && period > 0.0 && best.as_ref().is_none_or(|best| period < best.period) {
                best = Some(Self { abscissa: *abscissa, period, exponent: *exponent, near });
            }
        }
        best
    }
}

/// A bent contour: t and e^{K(t) − t·near − exponent}/(t(t+1))·dt/(i·dω) at its nodes.
struct Contour {
    nodes: Vec<(Complex, Complex)>,
    spacing: f64,
    exponent: f64,
    near: f64,
}

impl Contour {
    fn new(
        transform: &mut Transform<'_>,
        placement: &ContourPlacement,
        bend: f64,
        fineness: f64,
    ) -> Option<Self> {
        let spacing = 2.0 * PI / placement.period * fineness;
        let width = placement.abscissa;
        let (mut nodes, mut total, mut small, mut least) = (Vec::new(), 0.0, 0, f64::INFINITY);
        while nodes.len() < MAX_NODES && small < 6 {
            let frequency = nodes.len() as f64 * spacing;
            let radius = libm::hypot(frequency, width);
            let t = Complex::new(placement.abscissa + bend * (radius - width), frequency);
            let exponent = transform.cumulant(t).sub(t.scale(placement.near));
            let size = libm::exp(exponent.re - placement.exponent);
            let turned = Complex::new(size * libm::cos(exponent.im), size * libm::sin(exponent.im));
            let pole = t.mul(Complex::new(t.re + 1.0, t.im));
            let square = pole.re * pole.re + pole.im * pole.im;
            let slope = Complex::new(1.0, -bend * frequency / radius);
            let term = turned.mul(pole.conj()).mul(slope).scale(1.0 / square);
            let count = 1.0 + nodes.len() as f64;
            total += if nodes.is_empty() { 0.5 * term.re } else { term.re };
            // The last few terms must be negligible, even if as many more followed as there are.
            let fading = term.norm() * count <= 1e-12 * libm::fabs(total);
            least = least.min(term.norm());
            // Terms that grow again have lost their digits, or the bend is too strong.
            if !(fading || term.norm() <= 1e3 * least) {
                return None;
            }
            small = if fading { small + 1 } else { 0 };
            nodes.push((t, term));
        }
        (small >= 6).then_some(Self { nodes, spacing, exponent: placement.exponent, near: placement.near })
    }

    /// log δ at `epsilon` and its slope.
    fn log_delta(&self, epsilon: f64) -> (f64, f64) {
        let moved = epsilon - self.near;
        let (mut sum, mut slope) = (0.0, 0.0);
        for (index, (t, term)) in self.nodes.iter().enumerate() {
            let size = libm::exp(-t.re * moved) * if index == 0 { 0.5 } else { 1.0 };
            let turn = Complex::new(size * libm::cos(t.im * moved), -size * libm::sin(t.im * moved));
            let value = term.mul(turn);
            sum += value.re;
            slope -= value.mul(*t).re;
        }
        (libm::log(sum * self.spacing / PI) + self.exponent, slope / sum)
    }

    fn epsilon(&self, delta: f64, start: f64) -> Option<f64> {
        let target = libm::log(delta);
        let mut epsilon = start;
        for _ in 0..40 {
            let (value, slope) = self.log_delta(epsilon);
            let next = epsilon + (target - value) / slope;
            if !(next.is_finite() && next > 0.0 && slope < 0.0) {
                return None;
            }
            let done = libm::fabs(next - epsilon) <= 1e-13 * next;
            epsilon = next;
            if done {
                return Some(epsilon);
            }
        }
        None
    }
}

/// K(t) of the whole composition.
struct Transform<'a> {
    mu_squared: f64,
    mixtures: Vec<(ComplexMoment<'a>, u64)>,
}

impl<'a> Transform<'a> {
    fn new(pair: &'a DominatingPair) -> Self {
        let mixtures = pair.mixtures().map(|(mixture, count)| (ComplexMoment::new(mixture), count));
        Self { mu_squared: pair.mu_squared(), mixtures: mixtures.collect() }
    }

    fn cumulant(&mut self, t: Complex) -> Complex {
        let shifted = Complex::new(1.0 + t.re, t.im);
        let gaussian = t.mul(shifted).scale(0.5 * self.mu_squared);
        self.mixtures
            .iter_mut()
            .fold(gaussian, |sum, (moment, count)| sum.add(moment.log_moment(shifted).scale(*count as f64)))
    }
}
