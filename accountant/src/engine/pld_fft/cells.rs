//! The privacy loss of one use, cut into cells between grid points.

use crate::dominating_pair::quadrature::{Cell, Quadrature, RELATIVE};
use crate::dominating_pair::{DiscretePair, MixturePair, Outcome};

use super::LossLaw;

/// A pair's losses: a body at `origin`, which is a grid point, and cells above and below it.
pub(super) struct Cells {
    /// Loss of the body taken as one outcome; grid points are `origin` + k·`step`.
    pub(super) origin: f64,
    /// Distance of grid points.
    pub(super) step: f64,
    /// P-mass of the body.
    pub(super) body: f64,
    /// Losses below `origin`, in the cell from `origin` − `step`.
    pub(super) under: Cell,
    /// Losses from `origin` to `origin` + `step` inside the body.
    pub(super) inner: Cell,
    /// Losses above the body; the first is in the cell from `origin`.
    pub(super) outer: Vec<Cell>,
    /// P-mass below the first panel, which counts at a higher loss.
    pub(super) below: f64,
    /// P-mass beyond the last cell.
    pub(super) lost: f64,
}

impl Cells {
    /// Cuts `pair` at grid distance `step`, leaving out about `tail` of P on either end.
    fn of_mixture(pair: &MixturePair, step: f64, tail: f64) -> Option<Self> {
        let (far_p, far_q) = pair.largest_shifts();
        let sigma = pair.sigma();
        let reach = crate::normal::isf(tail) * sigma;
        let (first, last) = (-far_q - reach, far_p + reach);
        let quadrature = Quadrature::new(pair);
        // The body reaches up to just below the grid point above its own loss.
        let mut origin = pair.loss(first);
        let mut share = 0.999;
        let (split, mass) = loop {
            let split = pair.locate(origin + share * step).min(last);
            let (mass, excess) = quadrature.body(first, split);
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
        let count = f64::ceil((top - origin) / step);
        if !(count < 2e6 && mass > 0.0 && origin.is_finite()) {
            return None;
        }
        let at_origin = pair.locate(origin).clamp(first, split);
        let under = quadrature.cell(first, at_origin, origin - step, step);
        let inner = quadrature.cell(at_origin, split, origin, step);
        let mut outer = Vec::with_capacity(count as usize + 1);
        let mut from = split;
        let mut index = 0.0;
        while from < last {
            let low = origin + index * step;
            index += 1.0;
            let to = pair.locate(origin + index * step).min(last);
            outer.push(if to > from { quadrature.cell(from, to, low, step) } else { Cell::default() });
            from = from.max(to);
        }
        Some(Self { origin, step, body: mass, under, inner, outer, below: 2.0 * tail, lost: 2.0 * tail })
    }

    /// The cells of `law`.
    pub(super) fn new(law: &LossLaw, step: f64, tail: f64) -> Option<Self> {
        match law {
            LossLaw::Mixture(pair) => Self::of_mixture(pair, step, tail),
            LossLaw::Discrete(pair) => Self::of_discrete(pair, step),
        }
    }

    /// Collects the outcomes of `pair` at grid distance `step`; leaves nothing out.
    fn of_discrete(pair: &DiscretePair, step: f64) -> Option<Self> {
        let outcomes = pair.outcomes();
        let lowest = outcomes.first()?.loss;
        let count = f64::ceil((pair.highest_loss() - lowest) / step) + 2.0;
        if !(count < 2e6 && lowest.is_finite()) {
            return None;
        }
        let split = outcomes.partition_point(|at| at.loss <= lowest + 0.9 * step);
        let mass: f64 = outcomes[..split].iter().map(|at| at.mass).sum();
        // Relative to the lowest loss, so that nothing cancels.
        let lack: f64 = outcomes[..split].iter().map(|at| at.mass * libm::expm1(lowest - at.loss)).sum();
        let origin = lowest - libm::log1p(lack / mass);
        let under = outcomes[..split].partition_point(|at| at.loss < origin);
        let mut cells = Self {
            origin,
            step,
            body: mass,
            under: sum_of(&outcomes[..under], origin - step, step),
            inner: sum_of(&outcomes[under..split], origin, step),
            outer: vec![Cell::default(); count as usize],
            below: 0.0,
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

    /// Grid points that carry mass, from `origin` − `step`: both curves have as many, or the composition would
    /// drop the top of the longer one.
    pub(super) fn points(&self) -> usize {
        self.outer.len() + 3
    }

    /// Masses of the upper curve, by splitting cells; index 0 is `origin` − `step`.
    pub(super) fn split(&self) -> Vec<f64> {
        let (up, down) = (-libm::expm1(-self.step), libm::expm1(self.step));
        let mut masses = vec![0.0; self.points()];
        let whole = |cell: &Cell| ((cell.excess + cell.slack) / up, (cell.deficit + cell.slack) / down);
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
        masses[1] += self.below;
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
