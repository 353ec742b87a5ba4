//! How fast |A(s + iω)| falls, proven for every ω, so that a sum over frequencies may stop.
//!
//! # Proof note
//! Let φ(ω) = A(s + iω)/A(s), the characteristic function of the loss under the tilted law, and D the difference
//! of two independent tilted losses. Two bounds, the better of which counts:
//! * 1 − |φ|² = E[1 − cos ωD] ≥ (2ω²/π²)·E[D²; |D| ≤ π/ω], since 1 − cos y ≥ 2y²/π² for |y| ≤ π. For ω in [a, b]
//!   the right side is at least (2a²/π²)·E[D²; |D| ≤ π/b], and that is bounded from below by cells.
//! * |φ| ≤ P(x < x*) + (f(x*) + V)/ω, where f is the density of the loss right of x* and V its variation there
//!   (integration by parts; van der Corput's lemma). V is taken on a grid and doubled.

use core::f64::consts::PI;

use crate::mechanism::Pair;
use crate::numeric::legendre;

use super::moment::{FOLLOWED, log_moment};

/// Cells of the tilted law.
pub(super) struct Decay {
    /// Mass and the losses at the ends of each cell that matters.
    cells: Vec<(f64, f64, f64)>,
    /// (P(x < x*), f(x*) + V) for candidates x*.
    splits: Vec<(f64, f64)>,
    uses: f64,
}

impl Decay {
    /// Looks at the law of the loss of `pair` tilted to the power `s`, used `uses` times.
    pub(super) fn new(pair: &Pair, s: f64, uses: f64) -> Self {
        let (p, q) = pair.reach();
        let sigma = pair.sigma();
        let log_norm = -log_moment(pair, s) - libm::log(sigma * libm::sqrt(2.0 * PI));
        let density = |x: f64| {
            let base = -0.5 * (x / sigma) * (x / sigma) + pair.log_q(x) + s * pair.loss(x);
            libm::exp(base + log_norm)
        };
        let right = (s.max(1.0) * p + 0.7 * FOLLOWED * sigma).min(pair.cut());
        let left = -(1.0 - s).max(1.0) * q - 0.7 * FOLLOWED * sigma;
        let count = libm::ceil((right - left) / (0.12 * sigma)).clamp(120.0, 1500.0);
        let edge = |index: f64| left + (right - left) * index / count;
        let (mut all, mut index) = (Vec::new(), 0.0);
        while index < count {
            let (from, to) = (edge(index), edge(index + 1.0));
            let mut mass = 0.0;
            legendre::narrow(from, to, |x, weight| mass += weight * density(x));
            all.push((mass * (1.0 - 1e-6), from, to));
            index += 1.0;
        }
        let splits = splits(&all, |x| density(x) / pair.slope(x));
        let cells = all
            .iter()
            .filter(|cell| cell.0 > 1e-4)
            .map(|(mass, from, to)| (*mass, pair.loss(*from), pair.loss(*to)))
            .collect();
        Self { cells, splits, uses }
    }

    /// A bound on log |φ(ω)|^uses for all ω in [from, to]; `to` may be infinite.
    pub(super) fn log_bound(&self, from: f64, to: f64) -> f64 {
        let reach = PI / to;
        let mut moment = 0.0;
        for (index, upper) in self.cells.iter().enumerate() {
            for lower in self.cells[..index].iter().rev() {
                if upper.2 - lower.1 > reach {
                    break;
                }
                let apart = upper.1 - lower.2;
                moment += 2.0 * upper.0 * lower.0 * apart * apart;
            }
        }
        let by_spread = 0.5 * libm::log1p(-(2.0 * from * from / (PI * PI) * moment).clamp(0.0, 1.0 - 1e-15));
        let by_parts = self.splits.iter().map(|(mass, rough)| mass + rough / from).fold(1.0, f64::min);
        self.uses * by_spread.min(libm::log(by_parts))
    }
}

/// For every fourth cell: the mass left of it, and f + 2V right of it.
fn splits(cells: &[(f64, f64, f64)], density: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let values: Vec<f64> = cells.iter().map(|cell| density(cell.1)).collect();
    let total: f64 = cells.iter().map(|cell| cell.0).sum();
    let mut splits = Vec::new();
    let (mut variation, mut beyond) = (0.0, 0.0);
    for index in (0..cells.len()).rev() {
        beyond += cells[index].0;
        if let Some(next) = values.get(index + 1) {
            variation += libm::fabs(next - values[index]);
        } else {
            variation += values[index];
        }
        if index % 4 == 0 && values[index].is_finite() {
            splits
                .push(((1.0 - beyond).max(total - beyond).max(0.0) + 2e-6, values[index] + 2.0 * variation));
        }
    }
    splits
}
