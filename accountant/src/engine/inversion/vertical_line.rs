//! A(s) along a vertical line, for equally spaced imaginary parts.

use crate::dominating_pair::MixturePair;
use crate::numeric::fft::Complex;

use crate::dominating_pair::moment::points;

/// A unit in the last place of 1.
const ULP: f64 = 2.220_446_049_250_313e-16;

/// log A(power + i·j·spacing) for j = 0, 1, …, and a bound on the error of each.
pub(super) struct VerticalLine {
    pub(super) values: Vec<Complex>,
    pub(super) errors: Vec<f64>,
}

/// A quadrature node: its weight, e^{sℓ} − 1 at the current imaginary part, and the factor from one
/// imaginary part to the next.
struct Node {
    weight: f64,
    value: Complex,
    turn: Complex,
    excess: f64,
    /// e^{sℓ} less `value`: 1, or e^{−scale} where the node is scaled against overflow.
    one: f64,
}

/// Sums over all nodes that bound the rounding of a value.
struct Sizes {
    /// Sum of the terms' absolute values.
    magnitude: f64,
    /// Sum of the compensating terms' absolute values.
    linear: f64,
    /// Bound on the contribution beyond the nodes.
    edge: f64,
}

impl Node {
    /// The node and the size of its term in A.
    fn new(power: f64, spacing: f64, loss: f64, log_weight: f64) -> (Self, f64) {
        let half = 0.5 * spacing * loss;
        let (sin, cos) = (libm::sin(half), libm::cos(half));
        let turn = Complex::new(-2.0 * sin * sin, 2.0 * sin * cos);
        // Where e^{sℓ} overflows against a vanishing weight, the product does not.
        let largest = (power * loss).max(loss);
        if largest > 300.0 {
            let one = libm::exp(-largest);
            let grown = libm::exp(power * loss - largest);
            let weight = libm::exp(log_weight + largest);
            let excess = libm::exp(loss - largest) - one;
            let node = Self { weight, value: Complex::new(grown - one, 0.0), turn, excess, one };
            return (node, weight * (grown + one));
        }
        let weight = libm::exp(log_weight);
        let value = Complex::new(libm::expm1(power * loss), 0.0);
        let node = Self { weight, value, turn, excess: libm::expm1(loss), one: 1.0 };
        let size = weight * (value.re + 2.0);
        (node, size)
    }
}

impl VerticalLine {
    /// Computes `count` values. Returns `None` if they would take more than `budget` node
    /// evaluations.
    ///
    /// # Proof note
    /// An imaginary part ω raises the trapezoid error (see `moment`) by e^{|ω|θ}. In addition the sum leaves out the tails
    /// beyond the first and last node. There ℓ grows at most linearly with slope d/σ² and the integrand falls at least like
    /// e^{−9.8·x/σ}, so that each tail is below (first or last term)·σ/h; σ/h is below a nineteenth of the nodes. A cut pair
    /// lacks `lost` of either mass instead, and the error of its panels is below the rounding allowed here. Each further value
    /// multiplies by a rotation, which adds 4 units of rounding to those of the value before it.
    pub(super) fn new(
        pair: &MixturePair,
        power: f64,
        spacing: f64,
        count: usize,
        budget: f64,
    ) -> Option<Self> {
        let sigma = pair.sigma();
        let (mut magnitude, mut linear, mut edge) = (0.0, 0.0, 0.0);
        let mut line = Vec::new();
        let (mut first_term, mut last_term) = (None, 0.0);
        points(pair, power, spacing * count as f64, budget / count as f64, |x, log_weight| {
            let loss = pair.loss(x);
            let log_weight = log_weight - 0.5 * (x / sigma) * (x / sigma) + pair.log_q(x);
            let (node, size) = Node::new(power, spacing, loss, log_weight);
            magnitude += size;
            linear += node.weight * libm::fabs(node.excess);
            last_term = size + node.weight * libm::fabs(node.excess) * (1.0 + power + spacing * count as f64);
            first_term.get_or_insert(last_term);
            line.push(node);
        })?;
        if pair.cut() == f64::INFINITY {
            edge += (first_term.unwrap_or(0.0) + last_term) * (10.0 + 0.1 * line.len() as f64);
        } else {
            let lost = crate::normal::sf((pair.cut() - pair.largest_shifts().0) / sigma);
            edge += (1.0 + power + spacing * count as f64) * lost + first_term.unwrap_or(0.0);
        }
        if !magnitude.is_finite() {
            return None;
        }
        let sizes = Sizes { magnitude, linear, edge };
        Some(Self::walk(line, power, spacing, count, &sizes))
    }

    fn walk(mut line: Vec<Node>, power: f64, spacing: f64, count: usize, sizes: &Sizes) -> Self {
        let mut values = Vec::with_capacity(count);
        let mut errors = Vec::with_capacity(count);
        for j in 0..count {
            let frequency = j as f64 * spacing;
            let (mut re, mut im, mut mean) = (0.0, 0.0, 0.0);
            for node in &mut line {
                re += node.weight * (node.value.re - power * node.excess);
                im += node.weight * node.value.im;
                mean += node.weight * node.excess;
                let whole = Complex::new(node.value.re + node.one, node.value.im);
                node.value = node.value.add(whole.mul(node.turn));
            }
            let a = Complex::new(re, im - frequency * mean);
            let rounding = (4.0 * j as f64 + 128.0) * ULP;
            let size = libm::hypot(power, frequency);
            let error =
                rounding * (sizes.magnitude + size * sizes.linear) + sizes.edge + 8e-17 * sizes.magnitude;
            let modulus = libm::hypot(1.0 + a.re, a.im);
            values.push(log1p(a));
            errors.push(if error < 0.5 * modulus {
                1.5 * error / modulus + 4.0 * ULP
            } else {
                f64::INFINITY
            });
        }
        Self { values, errors }
    }
}

/// log(1 + z), accurate for small z.
fn log1p(z: Complex) -> Complex {
    let square = 2.0 * z.re + z.re * z.re + z.im * z.im;
    Complex::new(0.5 * libm::log1p(square), libm::atan2(z.im, 1.0 + z.re))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::dominating_pair::Component;
    use core::f64::consts::PI;

    /// log A(s) by the rectangle rule on a grid far finer than any that is chosen.
    fn log_by_rectangles(pair: &MixturePair, s: Complex) -> Complex {
        let (sigma, count) = (pair.sigma(), 40_000);
        let (left, right) =
            (-pair.largest_shifts().1 - 10.0 * sigma, pair.largest_shifts().0 * s.re.max(1.0) + 10.0 * sigma);
        let width = (right - left) / f64::from(count);
        let (mut re, mut im) = (0.0, 0.0);
        for index in 0..=count {
            let x = left + width * f64::from(index);
            let loss = pair.loss(x);
            let density = libm::exp(-0.5 * (x / sigma) * (x / sigma) + pair.log_q(x));
            let size = libm::exp(s.re * loss);
            re += density * (size * libm::cos(s.im * loss) - 1.0);
            im += density * size * libm::sin(s.im * loss);
        }
        let scale = width / (sigma * f64::sqrt(2.0 * PI));
        log1p(Complex::new(re * scale, im * scale))
    }

    #[test]
    fn values_are_within_their_errors_at_high_powers_of_rare_samples_too() {
        let moved = |weight: f64, shift: f64| vec![Component { weight, shift }];
        let group = vec![Component { weight: 2e-5, shift: 1.0 }, Component { weight: 1e-9, shift: 2.0 }];
        for (sigma, p, q, power, frequency) in [
            (1.0, moved(0.01, 1.0), vec![], 5.0, 40.0),
            (2.0, vec![], moved(1e-6, 1.0), 1e6, 3e6),
            (2.0, vec![], moved(1e-6, 1.0), 3e7, 2e6),
            (0.6, vec![], moved(1e-5, 1.0), 1e5, 3e5),
            (30.0, vec![], moved(1e-7, 1.0), 4e7, 2e7),
            (1.5, vec![], group, 1e5, 3e5),
        ] {
            let pair = MixturePair::new(sigma, p, q);
            let count = 9;
            let spacing = frequency / count as f64;
            let line = VerticalLine::new(&pair, power, spacing, count, 4e6).unwrap();
            for j in 0..count {
                let (value, error) = (line.values[j], line.errors[j]);
                let expected = log_by_rectangles(&pair, Complex::new(power, j as f64 * spacing));
                let turns = libm::round((value.im - expected.im) / (2.0 * PI)) * 2.0 * PI;
                let off = libm::hypot(value.re - expected.re, value.im - expected.im - turns);
                // The rectangles' own rounding comes on top.
                let allowed = error + 1e-12 * (1.0 + libm::exp(-expected.re));
                assert!(
                    off <= allowed && error < 1e-2,
                    "σ = {sigma}, {power} + {j}·{spacing}i: {off} > {allowed}"
                );
            }
        }
    }
}
