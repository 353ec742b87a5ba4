//! The upper and the lower law of a single use.

use crate::dominating_pair::quadrature::{Quadrature, RELATIVE};
use crate::dominating_pair::{DiscretePair, MixturePair, TruncationMixture};
use crate::normal;
use crate::numeric::binomial;

use super::atoms::{self, Atoms};
use super::grid::{self, GridShape, middles};
use super::{Composed, LeftOut};

/// Returns both laws of the loss of `pair`, or `None` if the grid cannot hold them.
pub(super) fn mixture(pair: &MixturePair, shape: &GridShape, budget: &LeftOut) -> Option<Composed> {
    choice(vec![Part::new(pair, Probability { lower: 1.0, upper: 1.0 }, shape.highest, budget)?], shape)
}

/// Returns both laws of a step that is one of two pairs by a public coin: the masses of each pair,
/// weighted by its probability.
pub(super) fn truncated(step: &TruncationMixture, shape: &GridShape, budget: &LeftOut) -> Option<Composed> {
    choice(coin(step, shape.highest, budget)?, shape)
}

/// The two pairs of a step that is one of them by a public coin.
fn coin<'a>(step: &'a TruncationMixture, highest: f64, budget: &LeftOut) -> Option<Vec<Part<'a>>> {
    let (p, error) = (step.probability, 2.0 * binomial::RELATIVE * step.probability);
    let around = |p: f64| Probability { lower: (p - error).max(0.0), upper: (p + error).min(1.0) };
    let whole = Part::new(&step.whole, around(1.0 - p), highest, budget)?;
    let truncated = Part::new(&step.truncated, around(p), highest, budget)?;
    Some(vec![whole, truncated])
}

/// Growth of the distances between the outcomes of a step, and the distance in the bulk relative to its spread.
const GROWTH: f64 = 0.006;
const BULK: f64 = 1e-3;

/// Returns both laws of a step with a public coin on a grid of its own, which does not depend on the composition.
pub(super) fn outcomes(step: &TruncationMixture, budget: &LeftOut) -> Option<Composed> {
    let parts = coin(step, f64::INFINITY, budget)?;
    let range = Range::of(&parts)?;
    let unit = BULK * range.spread;
    let farthest = (range.top - range.center).max(range.center - range.bottom);
    let steps = f64::ceil(libm::asinh(farthest / unit) / GROWTH);
    if !(unit > 0.0 && steps < 1e5) {
        return None;
    }
    let (mut edges, mut step) = (vec![range.bottom], -steps);
    while step <= steps {
        let edge = range.center + unit * libm::sinh(GROWTH * step);
        if edge > range.bottom && edge < range.top {
            edges.push(edge);
        }
        step += 1.0;
    }
    edges.push(range.top);
    Some(Composed { upper: upper_law(&parts, &edges), lower: lower_law(&parts, &edges) })
}

/// The losses of the parts.
struct Range {
    center: f64,
    spread: f64,
    bottom: f64,
    top: f64,
}

impl Range {
    fn of(parts: &[Part<'_>]) -> Option<Self> {
        let first = parts.first()?.pair;
        Some(Self {
            center: first.loss(0.0),
            spread: 0.5 * (first.loss(first.sigma()) - first.loss(-first.sigma())),
            bottom: parts.iter().fold(f64::INFINITY, |least, part| least.min(part.pair.loss(part.left))),
            top: parts.iter().fold(f64::NEG_INFINITY, |most, part| most.max(part.pair.loss(part.right))),
        })
    }
}

/// Returns both laws of a discrete pair. Its outcomes are moved onto the grid in the same way as
/// the sums of a composition.
pub(super) fn discrete(pair: &DiscretePair, shape: &GridShape, budget: &LeftOut) -> Option<Composed> {
    let (mut outcomes, mut nothing) = (Atoms::default(), Atoms::default());
    nothing.push(0.0, 1.0);
    for outcome in pair.outcomes() {
        outcomes.push(outcome.loss, outcome.mass);
    }
    let edges = grid::edges(&nothing, &outcomes, shape, budget.leaving(1.0))?;
    let middles = middles(&edges);
    let dropped = 0.3 * budget.top(1.0);
    Some(Composed {
        upper: atoms::convolve(&nothing, &outcomes, &edges, dropped).split(&edges),
        lower: atoms::convolve(&nothing, &outcomes, &middles, dropped).merge(&middles),
    })
}

/// Bounds on a probability.
#[derive(Clone, Copy)]
struct Probability {
    lower: f64,
    upper: f64,
}

/// A pair, its probability, and the range of x in which it is integrated.
struct Part<'a> {
    probability: Probability,
    pair: &'a MixturePair,
    left: f64,
    right: f64,
}

impl<'a> Part<'a> {
    fn new(pair: &'a MixturePair, probability: Probability, highest: f64, budget: &LeftOut) -> Option<Self> {
        let (far_p, far_q) = pair.largest_shifts();
        let left = -far_q - pair.sigma() * normal::isf(budget.bottom(1.0));
        let right = (far_p + pair.sigma() * normal::isf(budget.top(1.0))).min(pair.locate(highest));
        let usable = left < right && left.is_finite() && right.is_finite();
        usable.then_some(Self { probability, pair, left, right })
    }

    /// P-mass left of `left`, from above: no component of P lies left of 0.
    fn outside_left(&self) -> f64 {
        normal::sf(-self.left / self.pair.sigma())
    }

    /// Calls `f(index, from, to)` for the x of every cell between neighbouring `edges` of the loss.
    fn for_cells(&self, edges: &[f64], mut f: impl FnMut(usize, f64, f64)) {
        let mut from = self.left;
        for index in 0..edges.len() - 1 {
            let last = index + 2 == edges.len();
            let to =
                if last { self.right } else { self.pair.locate(edges[index + 1]).clamp(from, self.right) };
            if to > from {
                f(index, from, to);
            }
            from = to;
        }
    }
}

/// Returns both laws of a public choice among pairs.
fn choice(parts: Vec<Part<'_>>, shape: &GridShape) -> Option<Composed> {
    let range = Range::of(&parts)?;
    let edges = shape.edges(range.center, range.spread, range.bottom, range.top)?;
    Some(Composed { upper: upper_law(&parts, &edges), lower: lower_law(&parts, &edges) })
}

/// Splits each cell's mass onto its two edges, with P-mass and Q-mass preserved.
fn upper_law(parts: &[Part<'_>], edges: &[f64]) -> Atoms {
    let mut upper = Atoms::default();
    let mut points = vec![0.0; edges.len()];
    for part in parts {
        let probability = part.probability.upper;
        let quadrature = Quadrature::new(part.pair);
        upper.infinite += probability * part.pair.p_above(part.right) * (1.0 + 1e-12);
        // Mass left of the part's first loss counts at the edge above that.
        let start = edges.partition_point(|edge| *edge < part.pair.loss(part.left)).min(edges.len() - 1);
        points[start] += probability * part.outside_left() * (1.0 + 1e-12);
        part.for_cells(edges, |index, from, to| {
            let (low, width) = (edges[index], edges[index + 1] - edges[index]);
            let cell = quadrature.cell(from, to, low, width);
            points[index] += probability * (cell.deficit + cell.slack) / libm::expm1(width);
            points[index + 1] += probability * (cell.excess + cell.slack) / -libm::expm1(-width);
        });
    }
    for (loss, mass) in edges.iter().zip(points) {
        upper.push(*loss, mass * (1.0 + RELATIVE));
    }
    upper
}

/// The outcomes of each cell around an edge merged into one.
fn lower_law(parts: &[Part<'_>], edges: &[f64]) -> Atoms {
    let middles = middles(edges);
    let mut cells = vec![(0.0, 0.0); middles.len()];
    let mut beyond = 0.0;
    for part in parts {
        let probability = part.probability.lower;
        let quadrature = Quadrature::new(part.pair);
        beyond += probability * part.pair.p_above(part.right) * (1.0 - 1e-12);
        part.for_cells(&middles, |index, from, to| {
            let (low, width) = (middles[index], middles[index + 1] - middles[index]);
            let cell = quadrature.cell(from, to, low, width);
            cells[index].0 += probability * cell.mass;
            cells[index].1 += probability * (cell.excess - cell.slack);
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
    // With several parts the mass beyond one's last x may fall short of the last edge: it is left out.
    if parts.len() == 1 {
        lower.push(edges[edges.len() - 1], beyond);
    }
    lower
}
