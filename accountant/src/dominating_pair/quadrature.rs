//! Masses of cells of the privacy loss, by Gauss–Legendre quadrature along the line.

use core::f64::consts::PI;

use crate::numeric::legendre;

use super::MixturePair;

/// A unit in the last place of 1.
pub(crate) const ULP: f64 = 2.220_446_049_250_313e-16;

/// Relative error of every mass: special functions, quadrature, summation. The rounding at each node comes on top.
///
/// # Proof note
/// With u = min(σ, 1.4σ²/d)/(1 + |x|/8σ), panels are at most u/2 long. On the Bernstein ellipse ρ = 4 around
/// one, |Re x| moves by at most 0.54u and the density of P by a factor below e^{6}: 0.54u·|x|/σ² < 4.4 and 0.54u·d/σ² < 0.8,
/// the rest being squares of at most u. P − e^g·Q vanishes at one end and is at most 6 times its largest value on the
/// panel beyond it, so that 16 points are off by less than 2.3e-19·6·e^{6} < 1e-15 (Trefethen 2013, Theorem 19.3). The
/// 4 points of panels of at most 0.0015u are off by less than 4.3·600^{−8}·600·e^{6} < 1e-16 by ρ = 600.
pub(crate) const RELATIVE: f64 = 64.0 * ULP;

/// Mass of losses between g and g + h.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    /// Probability under P.
    pub(crate) mass: f64,
    /// P − e^g·Q ≥ 0.
    pub(crate) excess: f64,
    /// e^{g+h}·Q − P ≥ 0.
    pub(crate) deficit: f64,
    /// Bound on the rounding error of `excess` and `deficit`.
    pub(crate) slack: f64,
}

impl Cell {
    /// P-mass at one loss, the mass known to the relative accuracy `relative`.
    pub(crate) fn of(mass: f64, loss: f64, low: f64, step: f64, relative: f64) -> Self {
        let excess = -mass * libm::expm1(low - loss);
        let deficit = mass * libm::expm1(low + step - loss);
        let rounding = 4.0 * ULP * (libm::fabs(loss) + libm::fabs(low) + step);
        let slack = mass * rounding + relative * (libm::fabs(excess) + libm::fabs(deficit));
        Self { mass, excess, deficit, slack }
    }

    pub(crate) fn merge(self, other: Self) -> Self {
        Self {
            mass: self.mass + other.mass,
            excess: self.excess + other.excess,
            deficit: self.deficit + other.deficit,
            slack: self.slack + other.slack,
        }
    }
}

/// Quadrature along the line of a pair.
pub(crate) struct Quadrature<'a> {
    pair: &'a MixturePair,
    sigma: f64,
    widest: f64,
}

impl<'a> Quadrature<'a> {
    pub(crate) fn new(pair: &'a MixturePair) -> Self {
        let (far_p, far_q) = pair.largest_shifts();
        let sigma = pair.sigma();
        Self { pair, sigma, widest: 0.5 * sigma.min(1.4 * sigma * sigma / (far_p + far_q)) }
    }
}

impl Quadrature<'_> {
    /// Calls `f(loss, mass, relative error of the mass)` at quadrature points of [from, to].
    fn walk(&self, from: f64, to: f64, mut f: impl FnMut(f64, f64, f64)) {
        let norm = 1.0 / (self.sigma * f64::sqrt(2.0 * PI));
        let mut visit = |x: f64, weight: f64| {
            let log_base = -0.5 * (x / self.sigma) * (x / self.sigma);
            let log_p = self.pair.log_p(x);
            let loss = if self.pair.q_is_plain() { log_p } else { log_p - self.pair.log_q(x) };
            let mass = weight * norm * libm::exp(log_base + log_p);
            f(loss, mass, 4.0 * ULP * (libm::fabs(log_base) + libm::fabs(log_p) + 4.0));
        };
        let width = to - from;
        let farthest = libm::fabs(from).max(libm::fabs(to));
        let longest = self.widest / (1.0 + farthest / (8.0 * self.sigma));
        if width <= 0.003 * longest {
            legendre::narrow(from, to, visit);
            return;
        }
        let panels = f64::ceil(width / longest);
        let mut panel = 0.0;
        while panel < panels {
            let left = from + width * panel / panels;
            panel += 1.0;
            let right = from + width * panel / panels;
            legendre::wide(left, right, &mut visit);
        }
    }

    /// P and P − Q of [from, to].
    pub(crate) fn body(&self, from: f64, to: f64) -> (f64, f64) {
        let (mut mass, mut excess) = (0.0, 0.0);
        self.walk(from, to, |loss, p, _| {
            mass += p;
            excess -= p * libm::expm1(-loss);
        });
        (mass, excess)
    }

    /// The cell of [`from`, `to`], whose losses lie between `low` and `low` + `step`.
    pub(crate) fn cell(&self, from: f64, to: f64, low: f64, step: f64) -> Cell {
        let mut cell = Cell::default();
        self.walk(from, to, |loss, p, relative| {
            cell = cell.merge(Cell::of(p, loss, low, step, relative));
        });
        cell
    }
}
