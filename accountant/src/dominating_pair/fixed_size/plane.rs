//! Pairs of normal mixtures in the plane: P = (1−q)N(0) + qN(u), Q = (1−q)N(0) + qN(u′), noise 1.
//!
//! # Proof note
//! The plane is cut into rectangles with one side along u − u′. On the density of N(0), N(u) and N(u′) are log-normal A and B, and
//! log A/B depends on the coordinate along u − u′ alone. The loss grows with log A/B at equal A, and is monotone in A at equal log A/B:
//! its extremes on a rectangle are at the corners of a box of A and log A/B. *Upper law*: the outcomes of a rectangle are split between two
//! points beyond these extremes, with P-mass and Q-mass preserved; P-mass outside all rectangles counts as failure. *Lower law*: the outcomes
//! of rectangles of about equal loss are merged (post-processing); those outside are left out.

use core::f64::consts::PI;

use super::super::{DiscretePair, Outcome};
use crate::numeric::{legendre, normal};

/// Mass beyond either end of an axis.
const TAIL: f64 = 1e-24;

/// Sides of the rectangles within [`NEAR`] of a mean, and elsewhere.
const FINE: f64 = 0.03;
const COARSE: f64 = 0.1;
const NEAR: f64 = 5.0;

/// Relative error of the mass of a rectangle: 16-point quadrature of a density whose exponent is at most 60, twice.
const RELATIVE: f64 = 4e-14;

/// Relative error of sums over all rectangles.
const SUMMED: f64 = 1e-12;

/// Growth of the distances between points of loss, and the loss from which they grow, in units of q.
const GROWTH: f64 = 0.006;
const BULK: f64 = 0.05;

/// The largest displacement, in standard deviations. Beyond it, there would be too many rectangles.
pub(super) const FARTHEST: f64 = 20.0;

/// The pair, by the squares of ‖u‖ and ‖u′‖ and by u·u′.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanarPair {
    pub(super) q: f64,
    pub(super) own: f64,
    pub(super) other: f64,
    pub(super) inner: f64,
}

/// Coordinates of u and u′: the first is along u − u′, the second is the same for both.
struct Place {
    own: f64,
    other: f64,
    common: f64,
}

/// Masses of the cells of an axis under normal laws of several means.
struct Axis<const N: usize> {
    edges: Vec<f64>,
    masses: Vec<[f64; N]>,
}

/// The masses of a rectangle under N(0), N(u) and N(u′).
#[derive(Clone, Copy)]
struct Masses {
    none: f64,
    own: f64,
    other: f64,
}

impl PlanarPair {
    pub(super) fn swapped(self) -> Self {
        Self { own: self.other, other: self.own, ..self }
    }

    fn place(&self) -> Place {
        let apart = f64::sqrt(self.own + self.other - 2.0 * self.inner);
        let own = (self.own - self.inner) / apart;
        Place { own, other: own - apart, common: f64::sqrt((self.own - own * own).max(0.0)) }
    }

    /// The upper law, and the P-mass that is left out.
    pub(super) fn upper_law(&self) -> (DiscretePair, f64) {
        let place = self.place();
        let (along, across) = (Axis::new([0.0, place.own, place.other]), Axis::new([0.0, place.common]));
        let grid = self.grid(&along, &across, &place);
        let (kept, mut masses) = (1.0 - self.q, vec![0.0; grid.len()]);
        // Each axis has two ends.
        let mut lost = 4.0 * TAIL;
        self.visit(&along, &across, &place, |cell, low, high| {
            // The ratios may be off by a few units.
            let low = low - 1e-13 * libm::fabs(low);
            let high = high + 1e-13 * libm::fabs(high);
            let from = grid.partition_point(|point| *point <= low).max(1) - 1;
            let to = grid.partition_point(|point| *point < high).max(from + 1);
            if to >= grid.len() {
                lost += kept * cell.none + self.q * cell.own;
                return;
            }
            let (low, high) = (grid[from], grid[to]);
            let sizes =
                |x: f64| kept * libm::fabs(x) * cell.none + self.q * (cell.own + (1.0 + x) * cell.other);
            let excess = self.q * (cell.own - (1.0 + low) * cell.other) - kept * low * cell.none;
            let deficit = self.q * ((1.0 + high) * cell.other - cell.own) + kept * high * cell.none;
            let width = high - low;
            masses[to] += (excess.max(0.0) + RELATIVE * sizes(low)) * (1.0 + high) / width;
            masses[from] += (deficit.max(0.0) + RELATIVE * sizes(high)) * (1.0 + low) / width;
        });
        let outcomes = grid.iter().zip(masses).map(|(point, mass)| {
            let loss = libm::log1p(*point);
            Outcome { loss: loss + 1e-15 * libm::fabs(loss), mass: mass * (1.0 + SUMMED) }
        });
        (DiscretePair::new(outcomes.collect()), lost * (1.0 + SUMMED))
    }

    /// The lower law.
    pub(super) fn lower_law(&self) -> DiscretePair {
        let place = self.place();
        let (along, across) = (Axis::new([0.0, place.own, place.other]), Axis::new([0.0, place.common]));
        let grid = self.grid(&along, &across, &place);
        let mut cells = vec![(0.0, 0.0); grid.len() + 1];
        self.visit(&along, &across, &place, |cell, _, _| {
            let p = (1.0 - self.q) * cell.none + self.q * cell.own;
            let rise = self.q * (cell.own - cell.other);
            let sum = &mut cells[grid.partition_point(|point| *point * (p - rise) <= rise)];
            sum.0 += p;
            sum.1 += rise - 2.0 * RELATIVE * self.q * (cell.own + cell.other);
        });
        let merged = cells.iter().filter(|(p, _)| *p > 0.0).map(|(p, rise)| {
            let share = rise / p - SUMMED * libm::fabs(rise / p);
            let loss = -libm::log1p(-share);
            Outcome { loss: loss - 1e-14 * libm::fabs(loss), mass: p * (1.0 - SUMMED) }
        });
        DiscretePair::new(merged.collect())
    }

    /// Points e^ℓ − 1 that cover all losses ℓ: evenly spaced near 0, and then growing.
    fn grid(&self, along: &Axis<3>, across: &Axis<2>, place: &Place) -> Vec<f64> {
        let end = |edges: &[f64], coordinate: f64, half: f64| {
            let (first, last) = (edges[0], edges[edges.len() - 1]);
            (coordinate * first).max(coordinate * last) - half
        };
        let farthest = |square: f64, coordinate: f64| {
            let log = end(&along.edges, coordinate, 0.5 * square) + end(&across.edges, place.common, 0.0);
            libm::log1p(self.q * libm::expm1(log)) - libm::log1p(-self.q)
        };
        // A box reaches beyond its rectangle.
        let beyond = COARSE * (libm::fabs(place.own) + libm::fabs(place.other) + place.common);
        let most = farthest(self.own, place.own).max(farthest(self.other, place.other)) + beyond;
        let unit = BULK * self.q * f64::sqrt(self.own.max(self.other)).min(1.0);
        let steps = f64::ceil(libm::asinh(most / unit) / GROWTH) + 1.0;
        let mut points = Vec::new();
        let mut step = -steps;
        while step <= steps {
            points.push(libm::expm1(unit * libm::sinh(GROWTH * step)));
            step += 1.0;
        }
        points
    }

    /// Calls `f` with the masses of each rectangle and the least and the largest P/Q − 1 on a box around it.
    fn visit(&self, along: &Axis<3>, across: &Axis<2>, place: &Place, mut f: impl FnMut(Masses, f64, f64)) {
        let apart = place.own - place.other;
        let half = 0.5 * (self.own - self.other);
        let powers: Vec<f64> =
            across.edges.iter().map(|edge| libm::exp(place.common * edge - 0.5 * self.own)).collect();
        let ratio =
            |a: f64, (rise, other): (f64, f64)| self.q * a * rise / ((1.0 - self.q) + self.q * a * other);
        for (own, ends) in along.masses.iter().zip(along.edges.windows(2)) {
            let (one, two) = (libm::exp(place.own * ends[0]), libm::exp(place.own * ends[1]));
            let (least, most) = (one.min(two), one.max(two));
            // 1 − B/A and B/A at both ends.
            let [first, last] = [ends[0], ends[1]].map(|edge| {
                let log = apart * edge - half;
                (-libm::expm1(-log), libm::exp(-log))
            });
            for (common, powers) in across.masses.iter().zip(powers.windows(2)) {
                let masses =
                    Masses { none: own[0] * common[0], own: own[1] * common[1], other: own[2] * common[1] };
                let (low, high) = (least * powers[0], most * powers[1]);
                f(masses, ratio(low, first).min(ratio(high, first)), ratio(low, last).max(ratio(high, last)));
            }
        }
    }
}

impl<const N: usize> Axis<N> {
    fn new(means: [f64; N]) -> Self {
        let far = normal::isf(TAIL);
        let (first, last) = (means.into_iter().fold(0.0, f64::min), means.into_iter().fold(0.0, f64::max));
        let mut edges = vec![first - far];
        let mut at = first - far;
        while at < last + far {
            at += if at >= first - NEAR && at < last + NEAR { FINE } else { COARSE };
            edges.push(at);
        }
        let density = |x: f64| libm::exp(-0.5 * x * x) / f64::sqrt(2.0 * PI);
        let mass = |from: f64, to: f64, mean: f64| {
            let mut sum = 0.0;
            legendre::wide(from - mean, to - mean, |x, weight| sum += weight * density(x));
            sum
        };
        let masses = edges.windows(2).map(|cell| means.map(|mean| mass(cell[0], cell[1], mean))).collect();
        Self { edges, masses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E[(P − aQ)⁺] by the midpoint rule.
    fn hockey_stick(pair: &PlanarPair, a: f64) -> f64 {
        let (along, step) = (pair.own.sqrt(), 0.01);
        let (shared, across) = (pair.inner / along, (pair.other - pair.inner * pair.inner / pair.own).sqrt());
        let line = |far: f64| {
            let count = ((far + 8.0) / step) as i32;
            (0..count).map(move |index| -8.0 + step * (f64::from(index) + 0.5)).collect::<Vec<f64>>()
        };
        let columns = line(8.0 + across);
        let sum_of = |x: f64| -> f64 {
            let own = 1.0 + pair.q * (along * x - 0.5 * pair.own).exp_m1();
            let rest = columns.iter().map(|y| {
                let other = 1.0 + pair.q * (shared * x + across * y - 0.5 * pair.other).exp_m1();
                (-0.5 * (x * x + y * y)).exp() * (own - a * other).max(0.0)
            });
            rest.sum()
        };
        line(8.0 + along).into_iter().map(sum_of).sum::<f64>() * step * step / (2.0 * PI)
    }

    #[test]
    fn both_laws_enclose_the_hockey_stick_written_out() {
        // Oracle: the midpoint rule in the plane, which is off by a few 1e-6 where the positive part has its kink.
        for (q, own, other, inner) in [(0.1, 1.0, 1.0, 0.5), (0.02, 4.0, 1.0, 1.99), (0.3, 0.5, 2.0, 0.9)] {
            let pair = PlanarPair { q, own, other, inner };
            let ((upper, lost), lower) = (pair.upper_law(), pair.lower_law());
            assert!(lost < 1e-20);
            for epsilon in [1e-3, 0.03, 0.2, 0.7] {
                let expected = hockey_stick(&pair, f64::exp(epsilon));
                let (above, below) = (upper.log_delta(epsilon).exp(), lower.log_delta(epsilon).exp());
                assert!(above >= expected * (1.0 - 1e-5), "{pair:?} {epsilon}: {above} {expected}");
                assert!(below <= expected * (1.0 + 1e-5), "{pair:?} {epsilon}: {below} {expected}");
                // Far out, a cell of the plane spans a large part of δ.
                let close = if expected > 1e-5 { 4e-3 } else { 4e-2 };
                assert!(above - below <= close * expected, "{pair:?} {epsilon}: {above} {below}");
            }
        }
    }
}
