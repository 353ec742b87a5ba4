//! The laws of one use of a pair.

use crate::lattice::cells::{Line, RELATIVE};
use crate::mechanism::{Coin, Pair, Tabulated};
use crate::normal;
use crate::numeric::binomial;

use super::atoms::{self, Atoms};
use super::grid::{self, Shape, middles};
use super::{Budget, Composed};

/// Both laws of the loss of `pair`; none where the grid cannot hold them.
pub(super) fn step(pair: &Pair, shape: &Shape, budget: &Budget) -> Option<Composed> {
    mixture(&[(1.0, 1.0, pair)], shape, budget)
}

/// Both laws of a step that is one of two pairs by a public coin: the masses of either, by its chance.
pub(super) fn coin(coin: &Coin, shape: &Shape, budget: &Budget) -> Option<Composed> {
    let (p, off) = (coin.probability, 2.0 * binomial::RELATIVE * coin.probability);
    let above = |chance: f64| (chance + off).min(1.0);
    let below = |chance: f64| (chance - off).max(0.0);
    let parts = [(below(1.0 - p), above(1.0 - p), &coin.whole), (below(p), above(p), &coin.cut)];
    mixture(&parts, shape, budget)
}

/// Both laws of a table, its outcomes moved onto the grid as the sums of a composition are.
pub(super) fn table(table: &Tabulated, shape: &Shape, budget: &Budget) -> Option<Composed> {
    let (mut outcomes, mut nothing) = (Atoms::default(), Atoms::default());
    nothing.push(0.0, 1.0);
    for outcome in table.outcomes() {
        outcomes.push(outcome.loss, outcome.mass);
    }
    let edges = grid::edges(&nothing, &outcomes, shape, budget.bottom(1.0), budget.top(1.0))?;
    let middles = middles(&edges);
    let dropped = 0.3 * budget.top(1.0);
    Some(Composed {
        upper: atoms::convolve(&nothing, &outcomes, &edges, dropped).split(&edges),
        lower: atoms::convolve(&nothing, &outcomes, &middles, dropped).merge(&middles),
    })
}

/// A pair with its chance from below and from above, and the x that it is followed over.
struct Part<'a> {
    chances: (f64, f64),
    pair: &'a Pair,
    left: f64,
    right: f64,
}

/// Both laws of a public choice among pairs.
fn mixture(parts: &[(f64, f64, &Pair)], shape: &Shape, budget: &Budget) -> Option<Composed> {
    let mut known = Vec::new();
    for (low, high, pair) in parts {
        let (far_p, far_q) = pair.reach();
        let left = -far_q - pair.sigma() * normal::isf(budget.bottom(1.0));
        let right = (far_p + pair.sigma() * normal::isf(budget.top(1.0))).min(pair.locate(shape.highest));
        if !(left < right && left.is_finite() && right.is_finite()) {
            return None;
        }
        known.push(Part { chances: (*low, *high), pair, left, right });
    }
    let first = known.first()?.pair;
    let spread = 0.5 * (first.loss(first.sigma()) - first.loss(-first.sigma()));
    let bottom = known.iter().fold(f64::INFINITY, |least, part| least.min(part.pair.loss(part.left)));
    let top = known.iter().fold(f64::NEG_INFINITY, |most, part| most.max(part.pair.loss(part.right)));
    let edges = shape.edges(first.loss(0.0), spread, bottom, top)?;
    Some(Composed { upper: above(&known, &edges), lower: below(&known, &edges) })
}

/// Each cell's mass on its two edges, P and Q kept.
fn above(parts: &[Part<'_>], edges: &[f64]) -> Atoms {
    let mut upper = Atoms::default();
    let mut points = vec![0.0; edges.len()];
    for part in parts {
        let chance = part.chances.1;
        let line = Line::new(part.pair);
        upper.infinite += chance * part.pair.p_above(part.right) * (1.0 + 1e-12);
        // What lies left of the part's first loss is taken to lie on the edge above that.
        let start = edges.partition_point(|edge| *edge < part.pair.loss(part.left)).min(edges.len() - 1);
        points[start] += chance * part.outside_left() * (1.0 + 1e-12);
        for_cells(part.pair, edges, (part.left, part.right), |index, from, to| {
            let (low, width) = (edges[index], edges[index + 1] - edges[index]);
            let cell = line.cell(from, to, low, width);
            points[index] += chance * (cell.below + cell.slack) / libm::expm1(width);
            points[index + 1] += chance * (cell.above + cell.slack) / -libm::expm1(-width);
        });
    }
    for (loss, mass) in edges.iter().zip(points) {
        upper.push(*loss, mass * (1.0 + RELATIVE));
    }
    upper
}

/// The outcomes of each cell around an edge as one.
fn below(parts: &[Part<'_>], edges: &[f64]) -> Atoms {
    let middles = middles(edges);
    let mut cells = vec![(0.0, 0.0); middles.len()];
    let mut beyond = 0.0;
    for part in parts {
        let chance = part.chances.0;
        let line = Line::new(part.pair);
        beyond += chance * part.pair.p_above(part.right) * (1.0 - 1e-12);
        for_cells(part.pair, &middles, (part.left, part.right), |index, from, to| {
            let (low, width) = (middles[index], middles[index + 1] - middles[index]);
            let cell = line.cell(from, to, low, width);
            cells[index].0 += chance * cell.mass;
            cells[index].1 += chance * (cell.above - cell.slack);
        });
    }
    let mut lower = Atoms::default();
    for (low, (mass, rise)) in middles.iter().zip(cells) {
        if mass > 0.0 {
            let share = (rise / mass * (1.0 - RELATIVE)).max(0.0);
            let loss = low - libm::log1p(-share.min(1.0 - 1e-9));
            lower.push(loss - 1e-15 * libm::fabs(loss), mass * (1.0 - RELATIVE));
        }
    }
    // With several parts what lies beyond one's last x may fall short of the last edge: it is left out.
    if parts.len() == 1 {
        lower.push(edges[edges.len() - 1], beyond);
    }
    lower
}

impl Part<'_> {
    /// P-mass left of `left`, from above: no component of P lies left of 0.
    fn outside_left(&self) -> f64 {
        normal::sf(-self.left / self.pair.sigma())
    }
}

/// Calls `f(index, from, to)` for the x of every cell between neighbouring `edges` of the loss.
fn for_cells(pair: &Pair, edges: &[f64], (left, right): (f64, f64), mut f: impl FnMut(usize, f64, f64)) {
    let mut from = left;
    for index in 0..edges.len() - 1 {
        let last = index + 2 == edges.len();
        let to = if last { right } else { pair.locate(edges[index + 1]).clamp(from, right) };
        if to > from {
            f(index, from, to);
        }
        from = to;
    }
}
