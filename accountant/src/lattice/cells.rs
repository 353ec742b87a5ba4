//! One use of a pair cut into cells between lattice points of the privacy loss.

use core::f64::consts::PI;

use crate::mechanism::tabulated::Outcome;
use crate::mechanism::{Pair, Tabulated};
use crate::numeric::legendre;

use super::Phase;

/// A unit in the last place of 1.
pub(super) const ULP: f64 = 2.220_446_049_250_313e-16;

/// Mass of losses between two lattice points g and g + h.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    /// Probability under P.
    pub(crate) mass: f64,
    /// P − e^g·Q ≥ 0.
    pub(crate) above: f64,
    /// e^{g+h}·Q − P ≥ 0.
    pub(crate) below: f64,
    /// What rounding may have changed `above` and `below` by.
    pub(crate) slack: f64,
}

impl Cell {
    /// P-mass at one loss, the mass known to the relative accuracy `relative`.
    fn of(mass: f64, loss: f64, low: f64, step: f64, relative: f64) -> Self {
        let above = -mass * libm::expm1(low - loss);
        let below = mass * libm::expm1(low + step - loss);
        let rounding = 4.0 * ULP * (libm::fabs(loss) + libm::fabs(low) + step);
        let slack = mass * rounding + relative * (libm::fabs(above) + libm::fabs(below));
        Self { mass, above, below, slack }
    }

    fn merge(self, other: Self) -> Self {
        Self {
            mass: self.mass + other.mass,
            above: self.above + other.above,
            below: self.below + other.below,
            slack: self.slack + other.slack,
        }
    }
}

/// A pair's losses: a body at `origin`, which is a lattice point, and cells above and below it.
#[derive(Debug)]
pub(super) struct Cells {
    /// Loss of the body taken as one outcome; lattice points are `origin` + k·`step`.
    pub(super) origin: f64,
    /// Distance of lattice points.
    pub(super) step: f64,
    /// P-mass of the body.
    pub(super) body: f64,
    /// Losses below `origin`, in the cell from `origin` − `step`.
    pub(super) under: Cell,
    /// Losses from `origin` to `origin` + `step` inside the body.
    pub(super) inner: Cell,
    /// Losses above the body; the first is in the cell from `origin`.
    pub(super) outer: Vec<Cell>,
    /// P-mass below the first panel: less than its loss is assumed nowhere.
    pub(super) start: f64,
    /// P-mass beyond the last cell.
    pub(super) lost: f64,
}

/// Relative error of every mass: special functions, quadrature, summation. Node-wise terms come on top.
///
/// # Proof note
/// Quadrature: with u = min(σ, 1.4σ²/d)/(1 + |x|/8σ), panels are at most u/2 long. On the Bernstein ellipse ρ = 4 around
/// one, |Re x| moves by at most 0.54u and the density of P by a factor below e^{6}: 0.54u·|x|/σ² < 4.4 and 0.54u·d/σ² < 0.8,
/// the rest being squares of at most u. P − e^g·Q vanishes at one end and is at most 6 times its largest value on the
/// panel beyond it, so that 16 points are off by less than 2.3e-19·6·e^{6} < 1e-15 (Trefethen 2013, Theorem 19.3). The
/// 4 points of panels of at most 0.0015u are off by less than 4.3·600^{−8}·600·e^{6} < 1e-16 by ρ = 600.
pub(crate) const RELATIVE: f64 = 64.0 * ULP;

impl Cells {
    /// Cuts `pair` at lattice distance `step`, leaving out about `tail` of P on either end.
    pub(super) fn cut(pair: &Pair, step: f64, tail: f64) -> Option<Self> {
        let (far_p, far_q) = pair.reach();
        let sigma = pair.sigma();
        let reach = crate::normal::isf(tail) * sigma;
        let (first, last) = (-far_q - reach, far_p + reach);
        let line = Line::new(pair);
        // The body reaches up to just below the lattice point above its own loss.
        let mut origin = pair.loss(first);
        let mut share = 0.999;
        let (split, mass) = loop {
            let split = pair.locate(origin + share * step).min(last);
            let (mass, excess) = line.body(first, split);
            // log(P/Q) of the body; both come from the same positive or compensated sums.
            let loss = -libm::log1p(-excess / mass);
            let settled = loss + step >= pair.loss(split) && loss - origin <= 1e-2 * step;
            origin = loss;
            if settled || split >= last {
                break (split, mass);
            }
            share *= 0.999;
            if !(share > 0.9 && loss.is_finite()) {
                return None;
            }
        };
        let top = pair.loss(last);
        let count = libm::ceil((top - origin) / step);
        if !(count < 2e6 && mass > 0.0 && origin.is_finite()) {
            return None;
        }
        let at_origin = pair.locate(origin).clamp(first, split);
        let under = line.cell(first, at_origin, origin - step, step);
        let inner = line.cell(at_origin, split, origin, step);
        let mut outer = Vec::with_capacity(count as usize + 1);
        let mut from = split;
        let mut index = 0.0;
        while from < last {
            let low = origin + index * step;
            index += 1.0;
            let to = pair.locate(origin + index * step).min(last);
            outer.push(if to > from { line.cell(from, to, low, step) } else { Cell::default() });
            from = from.max(to);
        }
        Some(Self { origin, step, body: mass, under, inner, outer, start: 2.0 * tail, lost: 2.0 * tail })
    }

    /// What `phase` is cut into.
    pub(super) fn of_phase(phase: &Phase, step: f64, tail: f64) -> Option<Self> {
        match phase {
            Phase::Line(pair) => Self::cut(pair, step, tail),
            Phase::Table(table) => Self::gather(table, step),
        }
    }

    /// Gathers the outcomes of `table` at lattice distance `step`; leaves nothing out.
    pub(super) fn gather(table: &Tabulated, step: f64) -> Option<Self> {
        let outcomes = table.outcomes();
        let lowest = outcomes.first()?.loss;
        let count = libm::ceil((table.highest_loss() - lowest) / step) + 2.0;
        if !(count < 2e6 && lowest.is_finite()) {
            return None;
        }
        let split = outcomes.partition_point(|at| at.loss <= lowest + 0.9 * step);
        let mass: f64 = outcomes[..split].iter().map(|at| at.mass).sum();
        // Relative to the lowest loss, so that nothing cancels.
        let lack: f64 = outcomes[..split].iter().map(|at| at.mass * libm::expm1(lowest - at.loss)).sum();
        let origin = lowest - libm::log1p(lack / mass);
        let below = outcomes[..split].partition_point(|at| at.loss < origin);
        let mut cells = Self {
            origin,
            step,
            body: mass,
            under: sum_of(&outcomes[..below], origin - step, step),
            inner: sum_of(&outcomes[below..split], origin, step),
            outer: vec![Cell::default(); count as usize],
            start: 0.0,
            lost: 0.0,
        };
        let mut rest = &outcomes[split..];
        for (index, cell) in cells.outer.iter_mut().enumerate() {
            let low = origin + index as f64 * step;
            let within = rest.partition_point(|at| at.loss < low + step);
            *cell = sum_of(&rest[..within], low, step);
            rest = &rest[within..];
        }
        rest.is_empty().then_some(cells)
    }

    /// Lattice points that carry mass, from `origin` − `step`: both curves have as many, or the composition would
    /// drop the top of the longer one.
    pub(super) fn points(&self) -> usize {
        self.outer.len() + 3
    }

    /// Upper masses by splitting cells (index 0 is `origin` − `step`) and the mass that goes to infinity.
    pub(super) fn spread(&self) -> Vec<f64> {
        let (up, down) = (-libm::expm1(-self.step), libm::expm1(self.step));
        let mut masses = vec![0.0; self.points()];
        let whole = |cell: &Cell| ((cell.above + cell.slack) / up, (cell.below + cell.slack) / down);
        let mut place = |cell: &Cell, index: usize| {
            let (higher, lower) = whole(cell);
            masses[index] += lower;
            masses[index + 1] += higher;
        };
        place(&self.under, 0);
        place(&self.inner, 1);
        for (index, cell) in self.outer.iter().enumerate() {
            place(cell, index + 1);
        }
        masses[1] += self.start;
        for mass in &mut masses {
            *mass *= 1.0 + RELATIVE;
        }
        masses
    }
}

/// The cell from `low` to `low` + `step` of the outcomes in it.
fn sum_of(outcomes: &[Outcome], low: f64, step: f64) -> Cell {
    outcomes
        .iter()
        .fold(Cell::default(), |cell, at| cell.merge(Cell::of(at.mass, at.loss, low, step, RELATIVE)))
}

/// A pair with what its quadrature needs.
pub(crate) struct Line<'a> {
    pair: &'a Pair,
    sigma: f64,
    widest: f64,
}

impl<'a> Line<'a> {
    /// Quadrature along the whole of `pair`.
    pub(crate) fn new(pair: &'a Pair) -> Self {
        let (far_p, far_q) = pair.reach();
        let sigma = pair.sigma();
        Self { pair, sigma, widest: 0.5 * sigma.min(1.4 * sigma * sigma / (far_p + far_q)) }
    }
}

impl Line<'_> {
    /// Calls `f(loss, mass, relative error of the mass)` at quadrature points of [from, to].
    fn walk(&self, from: f64, to: f64, mut f: impl FnMut(f64, f64, f64)) {
        let norm = 1.0 / (self.sigma * libm::sqrt(2.0 * PI));
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
        let panels = libm::ceil(width / longest);
        let mut panel = 0.0;
        while panel < panels {
            let left = from + width * panel / panels;
            panel += 1.0;
            let right = from + width * panel / panels;
            legendre::wide(left, right, &mut visit);
        }
    }

    /// P and P − Q of [from, to].
    fn body(&self, from: f64, to: f64) -> (f64, f64) {
        let (mut mass, mut excess) = (0.0, 0.0);
        self.walk(from, to, |loss, p, _| {
            mass += p;
            excess -= p * libm::expm1(-loss);
        });
        (mass, excess)
    }

    /// The masses of [`from`, `to`], whose losses lie between `low` and `low` + `step`.
    pub(crate) fn cell(&self, from: f64, to: f64, low: f64, step: f64) -> Cell {
        let mut cell = Cell::default();
        self.walk(from, to, |loss, p, relative| {
            cell = cell.merge(Cell::of(p, loss, low, step, relative));
        });
        cell
    }
}
