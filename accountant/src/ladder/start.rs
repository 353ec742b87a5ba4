//! The laws of one use of a pair.

use crate::lattice::cells::{Line, RELATIVE};
use crate::mechanism::Pair;
use crate::normal;

use super::atoms::Atoms;
use super::grid::{Shape, middles};
use super::{Budget, Composed};

/// Both laws of the loss of `pair`; none where the grid cannot hold them.
pub(super) fn step(pair: &Pair, shape: &Shape, budget: &Budget) -> Option<Composed> {
    let (far_p, far_q) = pair.reach();
    let sigma = pair.sigma();
    let left = -far_q - sigma * normal::isf(budget.bottom(1.0));
    let right = (far_p + sigma * normal::isf(budget.top(1.0))).min(pair.locate(shape.highest));
    if !(left < right && left.is_finite() && right.is_finite()) {
        return None;
    }
    let center = pair.loss(0.0);
    let spread = 0.5 * (pair.loss(sigma) - pair.loss(-sigma));
    let edges = shape.edges(center, spread, pair.loss(left), pair.loss(right))?;
    let line = Line::new(pair);
    let beyond = pair.p_above(right) * (1.0 + 1e-12);
    let mut upper = Atoms { infinite: beyond, ..Atoms::default() };
    let mut points = vec![0.0; edges.len()];
    // What lies left of the first edge is taken to lie on it.
    points[0] = normal::sf((-far_q.max(0.0) - left) / sigma) * (1.0 + 1e-12);
    for_cells(pair, &edges, (left, right), |index, from, to| {
        let (low, width) = (edges[index], edges[index + 1] - edges[index]);
        let cell = line.cell(from, to, low, width);
        points[index] += (cell.below + cell.slack) / libm::expm1(width);
        points[index + 1] += (cell.above + cell.slack) / -libm::expm1(-width);
    });
    for (loss, mass) in edges.iter().zip(points) {
        upper.push(*loss, mass * (1.0 + RELATIVE));
    }
    let mut lower = Atoms::default();
    let middles = middles(&edges);
    for_cells(pair, &middles, (left, right), |index, from, to| {
        let (low, width) = (middles[index], middles[index + 1] - middles[index]);
        let cell = line.cell(from, to, low, width);
        if cell.mass > 0.0 {
            let share = ((cell.above - cell.slack) / cell.mass * (1.0 - RELATIVE)).max(0.0);
            let loss = low - libm::log1p(-share.min(1.0 - 1e-9));
            lower.push(loss - 1e-15 * libm::fabs(loss), cell.mass * (1.0 - RELATIVE));
        }
    });
    lower.push(edges[edges.len() - 1], pair.p_above(right) * (1.0 - 1e-12));
    Some(Composed { upper, lower })
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
