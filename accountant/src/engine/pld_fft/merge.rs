//! Masses of the lower curve: outcomes merged until every merged loss is a grid point.

use super::cells::Cells;
use crate::dominating_pair::quadrature::ULP;

/// P-masses at grid points (index 0 is `origin` − `step`, as in [`Cells::split`]).
///
/// From the top: the part of a cell kept for its lower grid point g would have a loss above g; merging it with a portion of
/// the cells below, the body last, brings it to g exactly. Portions of a cell have the cell's loss. What remains of a cell at
/// the bottom is rounded down.
pub(super) fn merge(cells: &Cells) -> Vec<f64> {
    let count = cells.outer.len();
    let mut masses = vec![0.0; cells.points()];
    let mut left = vec![1.0; count];
    let mut body = 1.0;
    let grow = |cells_apart: usize| libm::expm1(cells_apart as f64 * cells.step);
    // Everything from `reach` upward is used up.
    let mut reach = count;
    for point in (1..count).rev() {
        let cell = &cells.outer[point];
        let mut surplus = left[point] * (cell.excess - cell.slack).max(0.0);
        let mut mass = left[point] * cell.mass;
        left[point] = 0.0;
        reach = reach.min(point);
        let mut source = reach;
        while surplus > 0.0 && source > 0 {
            let lower = &cells.outer[source - 1];
            let apart = point - source;
            let deficit = (lower.deficit + lower.slack) * (1.0 + grow(apart)) + lower.mass * grow(apart);
            let wanted = if deficit > 0.0 { surplus / deficit } else { f64::INFINITY };
            if wanted < left[source - 1] {
                mass += wanted * lower.mass;
                left[source - 1] -= wanted;
                surplus = 0.0;
            } else {
                mass += left[source - 1] * lower.mass;
                surplus -= left[source - 1] * deficit;
                left[source - 1] = 0.0;
                source -= 1;
            }
        }
        reach = reach.min(source.max(1));
        if surplus > 0.0 {
            let portion = (surplus / (cells.body * grow(point))).min(body);
            mass += portion * cells.body;
            body -= portion;
        }
        masses[point + 1] = mass;
    }
    masses[1] = body * cells.body + left.first().map_or(0.0, |portion| portion * cells.outer[0].mass);
    for mass in &mut masses {
        // Covers the rounding of the subtractions that led to a portion.
        *mass *= 1.0 - 512.0 * ULP;
    }
    masses
}
