//! Chooses the points of the grid. The choice affects time and tightness, never validity.

use super::Fineness;
use super::atoms::Atoms;

/// The properties shared by all grids of a computation.
#[derive(Clone, Debug)]
pub(super) struct GridShape {
    fineness: Fineness,
    /// Losses beyond this count as infinite.
    pub(super) highest: f64,
    /// Distances from the bulk, ascending, the same for every grid: a jump that falls on a point in one composition falls on
    /// one in the next, and is not split again.
    offsets: Vec<f64>,
}

/// Largest number of points of a grid.
const MOST: usize = 5000;

impl GridShape {
    /// Creates the shape for losses near `epsilon` in a law whose saddle point is `order`.
    pub(super) fn new(epsilon: f64, order: f64, fineness: Fineness) -> Self {
        let ratio = fineness.ratio;
        let near = epsilon.max(1e-290);
        let highest = epsilon + 30.0;
        let finest = (4.0 * ratio / (1.0 + order)).max(near / 400.0);
        let width = |offset: f64| {
            let away = (near / (3.0 * offset)).max(offset / (3.0 * near)).clamp(1.0, 30.0);
            let relative = ratio * f64::sqrt(away) * offset;
            // The law tilted to ε has a scale of its own there.
            relative.min(finest * (1.0 + 0.25 * libm::fabs(offset - near) * (1.0 + order)))
        };
        let mut offsets = Vec::new();
        // Points are placed from ε outward and inward, so that those close to ε are the same however far the grid
        // reaches.
        let mut at = near;
        while at < highest && offsets.len() < MOST {
            at += width(at);
            offsets.push(at);
        }
        at = near;
        while at > 1e-4 * near.min(1e-9) && offsets.len() < 2 * MOST {
            offsets.push(at);
            at -= width(at);
        }
        offsets.sort_by(f64::total_cmp);
        Self { fineness, highest, offsets }
    }

    /// A grid from `bottom` to `top` for a law of the given centre and spread.
    pub(super) fn edges(&self, center: f64, spread: f64, bottom: f64, top: f64) -> Option<Vec<f64>> {
        let usable = spread > 0.0 && spread.is_finite() && center.is_finite() && bottom < top;
        if !usable {
            return None;
        }
        let ratio = (self.fineness.bulk * self.fineness.ratio).min(0.12);
        let unit = spread / 3.0;
        let inner = 6.0 * spread;
        let steps = f64::ceil(libm::log(40.0) / ratio);
        let mut edges = Vec::new();
        // Left of the bulk the grid coarsens twice as fast.
        let mut offset = -inner;
        let mut left = Vec::new();
        while center + offset > bottom && left.len() < MOST {
            left.push(center + offset);
            offset -= 2.0 * ratio * libm::fabs(offset);
        }
        left.push(bottom);
        edges.extend(left.into_iter().rev());
        let mut k = -steps;
        while k <= steps {
            let offset = unit * libm::sinh(ratio * k);
            if libm::fabs(offset) < inner * (1.0 - 0.3 * ratio) {
                edges.push(center + offset);
            }
            k += 1.0;
        }
        edges.push(center + inner);
        edges.extend(self.offsets.iter().filter(|offset| **offset > inner).map(|offset| center + offset));
        edges.push(top);
        edges.retain(|edge| *edge >= bottom && *edge <= top);
        edges.sort_by(f64::total_cmp);
        edges.dedup_by(|next, before| *next - *before <= 1e-3 * ratio * unit);
        (edges.len() >= 3 && edges.len() < MOST).then_some(edges)
    }
}

/// P-mass that may leave a grid at either end.
#[derive(Clone, Copy)]
pub(super) struct Leaving {
    pub(super) bottom: f64,
    pub(super) top: f64,
}

/// The grid of the convolution of two laws.
pub(super) fn edges(one: &Atoms, other: &Atoms, shape: &GridShape, leaving: Leaving) -> Option<Vec<f64>> {
    let (first, second) = (one.bulk(), other.bulk());
    let spread = libm::hypot(first.spread, second.spread);
    let bottom = one.quantile(0.5 * leaving.bottom) + other.quantile(0.5 * leaving.bottom);
    let highest = one.upper_quantile(0.5 * leaving.top) + other.upper_quantile(0.5 * leaving.top);
    // A sum of two highest points must fall below the last edge, beyond which it would count as infinite.
    let top = (highest + 1e-2 * spread).min(shape.highest);
    shape.edges(first.center + second.center, spread, bottom, top.max(bottom + spread))
}

/// Middles of the cells, and the outermost edges: cells around the points.
pub(super) fn middles(edges: &[f64]) -> Vec<f64> {
    let mut middles = vec![edges[0]];
    middles.extend(edges.windows(2).map(|pair| 0.5 * (pair[0] + pair[1])));
    middles.extend(edges.last());
    middles.dedup();
    middles
}
