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

/// Distance from the outermost peak up to which the integrand is followed, in σ.
const FOLLOWED: f64 = 9.5;

/// Largest change of the phase in a panel, in radians. The panel's 16 points integrate polynomials
/// of degree 31 exactly.
const LARGEST_TURN: f64 = 12.0;

/// Panels a single value may take.
const MAX_PANELS: u32 = 4000;

/// A(s) of one pair. Points of the real line are kept from one value to the next.
pub(super) struct ComplexMoment<'a> {
    pair: &'a MixturePair,
    line: RealLine,
}

/// The panels between two points of the real line, fine enough for |s| + 1 up to `size`.
#[derive(Default)]
struct RealLine {
    left: f64,
    end: f64,
    size: f64,
    points: Vec<Point>,
}

/// A point of the real line, with the values that do not depend on s.
struct Point {
    weight: f64,
    loss: f64,
    /// log Q.
    log_base: f64,
    /// Q.
    base: f64,
    /// Q·e^ℓ.
    lifted: f64,
    /// e^ℓ − 1.
    ratio: f64,
}

impl<'a> ComplexMoment<'a> {
    pub(super) fn new(pair: &'a MixturePair) -> Self {
        Self { pair, line: RealLine::default() }
    }

    /// log A(s), Im s ≥ 0; NaN where it cannot be computed.
    pub(super) fn log_moment(&mut self, s: Complex) -> Complex {
        let Some(excess) = self.excess(s) else { return Complex::new(f64::NAN, f64::NAN) };
        log1p(excess)
    }

    /// A(s) − 1.
    fn excess(&mut self, s: Complex) -> Option<Complex> {
        let pair = self.pair;
        let (p, q) = pair.largest_shifts();
        let sigma = pair.sigma();
        let left = -(1.0 - s.re).max(1.0) * q - FOLLOWED * sigma;
        let right = s.re.max(1.0) * p + FOLLOWED * sigma;
        let bend = pair.overtaking().and_then(|(x, weight)| {
            let leave = x + (0.3 * sigma).max(0.8 * sigma * sigma);
            ((s.re > x + sigma && s.im > 0.0 || s.im > 2.0) && leave < right).then_some((leave, weight))
        });
        let end = bend.map_or(right, |(leave, _)| leave);
        // Steps of √2, so that neighbouring values share their points.
        let size = libm::exp2(0.5 * f64::ceil(2.0 * libm::log2(s.norm() + 1.0)));
        if (left, end, size) != (self.line.left, self.line.end, self.line.size) {
            self.line = RealLine::new(pair, left, end, size)?;
        }
        let along = self.line.points.iter().fold(Complex::default(), |sum, point| sum.add(point.value(s)));
        let Some((leave, weight)) = bend else { return Some(along) };
        let (rest, moved) = (normal::sf(leave / sigma), normal::sf((leave - 1.0) / sigma));
        let constant = Complex::new(1.0 - s.re * weight, -s.im * weight).scale(rest);
        let compensation = constant.add(s.scale(weight * moved));
        Some(along.sub(compensation).add(beyond(pair, s, leave, right, weight)))
    }
}

impl RealLine {
    fn new(pair: &MixturePair, left: f64, end: f64, size: f64) -> Option<Self> {
        let (p, q) = pair.largest_shifts();
        let sigma = pair.sigma();
        let log_norm = -libm::log(sigma * f64::sqrt(2.0 * PI));
        let widest = (1.5 * sigma).min(2.0 * sigma * sigma / (p + q));
        let mut points = Vec::new();
        let (mut at, mut panels) = (left, 0);
        while at < end {
            let mut width = widest;
            while size * (pair.loss(at + width) - pair.loss(at)) > LARGEST_TURN {
                width *= 0.7;
            }
            let next = (at + width).min(end);
            legendre::wide(at, next, |x, weight| {
                let loss = pair.loss(x);
                let log_base = log_norm - 0.5 * (x / sigma) * (x / sigma) + pair.log_q(x);
                let (base, lifted) = (libm::exp(log_base), libm::exp(log_base + loss));
                points.push(Point { weight, loss, log_base, base, lifted, ratio: libm::expm1(loss) });
            });
            at = next;
            panels += 1;
            if panels > MAX_PANELS {
                return None;
            }
        }
        Some(Self { left, end, size, points })
    }
}

impl Point {
    /// The term of ∫ Q·[e^{sℓ} − 1 − s·(e^ℓ − 1)], without overflow of the factors.
    fn value(&self, s: Complex) -> Complex {
        let power = s.scale(self.loss);
        let (sin, cos) = (libm::sin(0.5 * power.im), libm::cos(0.5 * power.im));
        // 1 − cos and sin of the whole angle.
        let (versine, turned) = (2.0 * sin * sin, 2.0 * sin * cos);
        if power.re < 1.0 && self.loss < 1.0 {
            let grown = libm::expm1(power.re);
            let re = grown * (1.0 - versine) - versine - s.re * self.ratio;
            let im = (grown + 1.0) * turned - s.im * self.ratio;
            return Complex::new(re, im).scale(self.base * self.weight);
        }
        let grown = libm::exp(self.log_base + power.re);
        let constant = Complex::new(self.base, 0.0).add(s.scale(self.lifted - self.base));
        Complex::new(grown * (1.0 - versine), grown * turned).sub(constant).scale(self.weight)
    }
}

/// ∫ Q·e^{sℓ} from `leave` up to Im x = Im s and on to the right.
fn beyond(pair: &MixturePair, s: Complex, leave: f64, right: f64, weight: f64) -> Complex {
    let sigma = pair.sigma();
    let variance = sigma * sigma;
    let log_norm = -libm::log(sigma * f64::sqrt(2.0 * PI));
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
    let top = if drop > 0.0 { s.im - f64::sqrt(drop) } else { s.im };
    let mut sum = Complex::default();
    let pace = (12.0 * variance / (libm::fabs(s.re - leave) + 2.0 * sigma)).min(sigma).min(variance);
    panels(0.0, top, pace, |y, weight| {
        sum = sum.add(value(Complex::new(leave, y)).mul(Complex::new(0.0, weight)));
    });
    panels(leave, right, 1.5 * sigma, |x, weight| sum = sum.add(value(Complex::new(x, s.im)).scale(weight)));
    sum
}

fn panels(from: f64, to: f64, width: f64, mut f: impl FnMut(f64, f64)) {
    let count = f64::ceil((to - from) / width).clamp(1.0, f64::from(MAX_PANELS));
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
