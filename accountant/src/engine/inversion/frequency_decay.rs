//! Proves how fast |A(s + iω)| falls, for every ω, so that a sum over frequencies may be truncated.
//!
//! # Proof note
//! Let φ(ω) = A(s + iω)/A(s), s ≥ 1, the characteristic function of the loss ℓ under the tilted law, and D the
//! difference of two independent tilted losses. The better of two bounds counts:
//! * 1 − |φ|² = E[1 − cos ωD] ≥ (2ω²/π²)·E[D²; |D| ≤ π/ω], since 1 − cos y ≥ 2y²/π² for |y| ≤ π. For ω in [a, b]
//!   the right side is at least (2a²/π²)·E[D²; |D| ≤ π/b], and that is bounded from below by cells.
//! * |φ| ≤ P(x < x*) + (f(x*) + V)/ω, where f is the density of the loss right of x* and V its variation there
//!   (integration by parts; van der Corput's lemma).
//!
//! The tilted law has the density g = e^G, G = −x²/2σ² + s·log p + (s−1)·(−log q) + constant, where p and q are the
//! densities of P and Q over that of N(0, σ²). log p and log q are convex, log p grows and log q falls: their slopes
//! are the mean displacements of a mixture, over σ². On a cell [a, b] therefore
//! * mass ≥ (b−a)·e^{mean of G} (Jensen). The square's mean is exact, that of log p is at least its value in the
//!   middle, that of log q at most the mean of its values at both ends.
//! * G′ lies between −b/σ² + s·(log p)′(a) − (s−1)·(log q)′(b) and the same with a and b exchanged. With m the larger of
//!   their sizes, g ≤ g(a)·e^{m·(b−a)}, and for f = g/ℓ′ the variation is at most ∫ f·(m + |ℓ″|/ℓ′). Displacements in
//!   [0, d] of mean e have a variance of at most e·(d − e), hence |ℓ″|/ℓ′ is at most the larger of d/σ² − (log p)′(a), d that
//!   of P, and d/σ² + (log q)′(b), d that of Q.
//!
//! Left of the first cell G′ ≥ |x|/σ², so that the mass there is at most g·σ²/|x|. Right of the
//! last one f falls.

use core::f64::consts::PI;

use crate::dominating_pair::MixturePair;

use crate::dominating_pair::moment::{FOLLOWED, log_moment};

/// Error of logarithms and exponentials, relative to a mass or a density.
const ROUNDING: f64 = 1e-9;

/// Cells of the tilted law.
pub(super) struct FrequencyDecay {
    /// The cells that matter.
    cells: Vec<LossCell>,
    /// From the lowest loss of the cells to the highest.
    spread: f64,
    /// E[D²] of all cells from below.
    whole_moment: f64,
    /// (P(x < x*), f(x*) + V) for candidates x*.
    splits: Vec<(f64, f64)>,
    uses: f64,
}

/// A cell of the tilted law: its mass from below, and the losses at its ends.
struct LossCell {
    mass: f64,
    lowest: f64,
    highest: f64,
}

/// A point of the line under the tilted law.
#[derive(Clone, Copy)]
struct Point {
    x: f64,
    log_p: f64,
    log_q: f64,
    /// Slopes of log p and −log q.
    slopes: (f64, f64),
    /// g.
    density: f64,
    /// f.
    density_of_loss: f64,
}

/// A cell's mass from below and above, and the variation of f from above.
struct Cell {
    least: f64,
    most: f64,
    variation: f64,
}

impl FrequencyDecay {
    /// Creates the bounds for the law of the loss of `pair` tilted by (P/Q)^s, `s` ≥ 1, used `uses`
    /// times.
    pub(super) fn new(pair: &MixturePair, s: f64, uses: f64) -> Self {
        let (p, q) = pair.largest_shifts();
        let (sigma, far) = (pair.sigma(), p.max(q));
        let variance = sigma * sigma;
        let log_norm = -log_moment(pair, s) - libm::log(sigma * f64::sqrt(2.0 * PI));
        let point = |x: f64| {
            let (log_p, log_q, slopes) = (pair.log_p(x), pair.log_q(x), pair.slopes(x));
            let density = libm::exp(log_norm - 0.5 * x * x / variance + s * log_p - (s - 1.0) * log_q);
            Point { x, log_p, log_q, slopes, density, density_of_loss: density / (slopes.0 + slopes.1) }
        };
        let right = (s * p + far + 0.7 * FOLLOWED * sigma).min(pair.cut());
        let left = -q - 0.7 * FOLLOWED * sigma;
        let width = (0.12 * sigma).min(0.25 * variance / far);
        let count = f64::ceil((right - left) / width).clamp(120.0, 1500.0) as usize;
        let edges: Vec<Point> =
            (0..=count).map(|index| point(left + (right - left) * index as f64 / count as f64)).collect();
        let measure = |a: &Point, b: &Point| {
            let width = b.x - a.x;
            let square = (a.x * a.x + a.x * b.x + b.x * b.x) / (6.0 * variance);
            let mean = s * pair.log_p(0.5 * (a.x + b.x)) - (s - 1.0) * 0.5 * (a.log_q + b.log_q) - square;
            let falls = -b.x / variance + s * a.slopes.0 + (s - 1.0) * b.slopes.1;
            let rises = -a.x / variance + s * b.slopes.0 + (s - 1.0) * a.slopes.1;
            let steepest = libm::fabs(falls).max(libm::fabs(rises));
            let curved = (p / variance - a.slopes.0).max(q / variance - b.slopes.1).max(0.0);
            let with_curvature = steepest + curved * (1.0 + ROUNDING);
            Cell {
                least: width * libm::exp(log_norm + mean) * (1.0 - ROUNDING),
                most: width * a.density.min(b.density) * libm::exp(width * steepest) * (1.0 + ROUNDING),
                variation: width
                    * a.density_of_loss.min(b.density_of_loss)
                    * with_curvature
                    * libm::exp(width * with_curvature)
                    * (1.0 + ROUNDING),
            }
        };
        let cells: Vec<Cell> = edges.windows(2).map(|ends| measure(&ends[0], &ends[1])).collect();
        // Whether f falls beyond the last edge, where both slopes are bounded and the square dominates.
        let last = edges[count];
        let onward = -right / variance + s * p / variance + (s - 1.0) * last.slopes.1 + far / variance;
        let falling = onward < 0.0 || right == pair.cut();
        let splits = if falling { splits(&cells, &edges, variance) } else { Vec::new() };
        let loss = |at: &Point| at.log_p - at.log_q;
        let cells: Vec<LossCell> = cells
            .iter()
            .zip(edges.windows(2))
            .filter(|(cell, _)| cell.least > 1e-4)
            .map(|(cell, ends)| LossCell {
                mass: cell.least,
                lowest: loss(&ends[0]),
                highest: loss(&ends[1]),
            })
            .collect();
        let spread = cells.last().map_or(0.0, |last| last.highest - cells[0].lowest);
        let whole_moment = moment_within(&cells, f64::INFINITY);
        Self { cells, spread, whole_moment, splits, uses }
    }

    /// A bound on log |φ(ω)|^uses for all ω in [from, to]; `to` may be infinite.
    pub(super) fn log_bound(&self, from: f64, to: f64) -> f64 {
        let reach = PI / to;
        let moment = if self.spread <= reach { self.whole_moment } else { moment_within(&self.cells, reach) };
        let by_variance =
            0.5 * libm::log1p(-(2.0 * from * from / (PI * PI) * moment).clamp(0.0, 1.0 - 1e-15));
        let by_parts = self.splits.iter().map(|(mass, rough)| mass + rough / from).fold(1.0, f64::min);
        self.uses * by_variance.min(libm::log(by_parts))
    }
}

/// E[D²; |D| ≤ `reach`] from below.
fn moment_within(cells: &[LossCell], reach: f64) -> f64 {
    let mut moment = 0.0;
    for (index, upper) in cells.iter().enumerate() {
        for lower in cells[..index].iter().rev() {
            if upper.highest - lower.lowest > reach {
                break;
            }
            let apart = upper.lowest - lower.highest;
            moment += 2.0 * upper.mass * lower.mass * apart * apart;
        }
    }
    moment
}

/// Returns, for every fourth cell, the mass left of it, and f + V from its left end on.
fn splits(cells: &[Cell], edges: &[Point], variance: f64) -> Vec<(f64, f64)> {
    let first = edges[0];
    let mut left = vec![first.density * variance / libm::fabs(first.x)];
    for cell in cells {
        left.push(left[left.len() - 1] + cell.most);
    }
    let mut splits = Vec::new();
    let (mut variation, mut right) = (edges[cells.len()].density_of_loss, 0.0);
    for index in (0..cells.len()).rev() {
        right += cells[index].least;
        variation += cells[index].variation;
        let rough = (edges[index].density_of_loss + variation) * (1.0 + ROUNDING);
        if index % 4 == 0 && rough.is_finite() {
            splits.push((left[index].min(1.0 - right).max(0.0) + ROUNDING, rough));
        }
    }
    splits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dominating_pair::Component;

    /// log |φ(ω)|, by the rectangle rule over the line.
    fn log_modulus(pair: &MixturePair, s: f64, frequency: f64) -> f64 {
        let (p, q) = pair.largest_shifts();
        let (sigma, count, log_norm) = (pair.sigma(), 40_000, log_moment(pair, s));
        let (left, right) = (-q - 9.0 * sigma, s * p + 9.0 * sigma);
        let (mut re, mut im, mut all) = (0.0, 0.0, 0.0);
        for index in 0..=count {
            let x = left + (right - left) * f64::from(index) / f64::from(count);
            let (log_p, log_q) = (pair.log_p(x), pair.log_q(x));
            let mass = libm::exp(-0.5 * x * x / (sigma * sigma) + s * log_p - (s - 1.0) * log_q - log_norm);
            let turn = frequency * (log_p - log_q);
            (re, im, all) = (re + mass * libm::cos(turn), im + mass * libm::sin(turn), all + mass);
        }
        libm::log(libm::hypot(re, im) / all)
    }

    #[test]
    fn the_bound_is_never_below_the_transform_and_falls_with_it() {
        let part = |weight, shift| vec![Component { weight, shift }];
        let pairs = [
            MixturePair::new(1.0, part(0.05, 1.0), Vec::new()),
            MixturePair::new(0.4, part(1e-3, 1.0), Vec::new()),
            MixturePair::new(3.0, Vec::new(), part(0.3, 1.0)),
            MixturePair::new(2.0, part(0.1, 2.0), part(0.1, 1.0)),
            MixturePair::new(
                0.8,
                vec![Component { weight: 0.1, shift: 1.0 }, Component { weight: 0.02, shift: 2.0 }],
                Vec::new(),
            ),
        ];
        for pair in &pairs {
            let spread = pair.loss(pair.sigma()) - pair.loss(-pair.sigma());
            for s in [1.3, 4.0] {
                let decay = FrequencyDecay::new(pair, s, 1.0);
                let mut least = 0.0_f64;
                for power in 0..6 {
                    let frequency = 0.3 * libm::pow(4.0, f64::from(power)) / spread;
                    let bound = decay.log_bound(frequency, frequency * 1.0001);
                    least = least.min(bound);
                    let actual = log_modulus(pair, s, frequency);
                    // The rectangle rule is off by less than 1e-9 where the loss turns by less than a radian a step.
                    assert!(
                        libm::exp(bound) >= libm::exp(actual) - 1e-8,
                        "{pair:?} {s} {frequency}: {bound} {actual}"
                    );
                }
                assert!(least < -1.0, "{pair:?} {s}: only {least}");
                assert!(decay.log_bound(1e7 / spread, f64::INFINITY) < -1.0, "{pair:?} {s}");
            }
        }
    }
}
