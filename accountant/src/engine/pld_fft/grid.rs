//! Chooses the losses that the grid covers, and its fineness. The choice affects time and
//! tightness, never validity.

use core::f64::consts::PI;

use crate::dominating_pair::moment::{FOLLOWED, cumulant};
use crate::dominating_pair::{DiscretePair, DominatingPair, MixturePair};
use crate::{AccountantError, Result};

use super::{Loss, LossLaw};

/// log of the part of δ that may lie beyond either end.
const LOG_TOLERANCE: f64 = -12.0;

/// log of the largest ratio of the tilted total to δ: rounding is relative to the total and to the uses.
fn most_cancelled(pair: &DominatingPair) -> f64 {
    (-9.0 - libm::log((pair.uses() + 100.0) * 2e-14)).clamp(5.0, 13.0)
}

const NO_GRID: AccountantError =
    AccountantError::NotConverged { what: "no finite grid covers the privacy loss" };

/// Losses above the lowest and their tilted weights.
fn sketch(loss: &Loss, order: f64) -> Vec<(f64, f64)> {
    let uses = loss.count as f64;
    match &loss.law {
        LossLaw::Mixture(pair) => sketch_of_mixture(pair, 1.0 + order, uses),
        LossLaw::Discrete(pair) => sketch_of_discrete(pair, order, uses),
    }
}

fn sketch_of_discrete(pair: &DiscretePair, order: f64, uses: f64) -> Vec<(f64, f64)> {
    let lowest = pair.outcomes().first().map_or(0.0, |outcome| outcome.loss);
    let weight = |mass: f64, loss: f64| uses * mass * libm::exp(order * loss);
    pair.outcomes().iter().map(|at| (at.loss - lowest, weight(at.mass, at.loss))).collect()
}

/// Losses above the lowest and their weights under the law tilted by (P/Q)^s: enough nodes to choose a grid by, not to
/// answer from.
fn sketch_of_mixture(pair: &MixturePair, s: f64, uses: f64) -> Vec<(f64, f64)> {
    let (p, q) = pair.largest_shifts();
    let sigma = pair.sigma();
    let (left, right) = (-q - FOLLOWED * sigma, ((s * p).max(p) + FOLLOWED * sigma).min(pair.cut()));
    let lowest = pair.loss(left);
    let nodes: u32 = 300;
    let h = (right - left) / f64::from(nodes);
    let log_norm = libm::log(uses * h / (sigma * f64::sqrt(2.0 * PI)));
    (0..=nodes)
        .map(|index| {
            let x = left + f64::from(index) * h;
            let loss = pair.loss(x);
            let log_weight = -0.5 * (x / sigma) * (x / sigma) + log_norm + pair.log_q(x) + s * loss;
            (loss - lowest, libm::exp(log_weight))
        })
        .filter(|(_, weight)| *weight > 0.0)
        .collect()
}

/// About how much splitting cells of width `step` adds to the variance of a sketch.
fn added_variance(sketch: &[(f64, f64)], step: f64) -> f64 {
    let variance = |rise: f64| if rise < step { rise * (step - rise) } else { step * step / 6.0 };
    sketch.iter().map(|(rise, weight)| weight * variance(*rise)).sum()
}

/// A tilt and the losses that a grid tilted by it has to cover.
struct Span {
    tilt: f64,
    bottom: f64,
    top: f64,
    order_above: f64,
    order_below: f64,
}

/// The expected answer, and the fineness that the grid should have.
pub(super) struct Near {
    /// e^{order·loss} is centred near the answer.
    pub(super) order: f64,
    pub(super) epsilon: f64,
    pub(super) delta: f64,
    /// Factor of the grid distance that is expected to suffice.
    pub(super) fineness: f64,
}

/// An even grid of losses.
pub(super) struct Grid {
    /// Tilt c: masses are weighted by e^{c·loss}.
    pub(super) tilt: f64,
    /// Distance of grid points.
    pub(super) step: f64,
    /// Lowest loss covered.
    pub(super) bottom: f64,
    /// Highest loss covered.
    pub(super) top: f64,
    /// The order at which Chernoff's inequality bounds what lies above.
    pub(super) order_above: f64,
    /// The order at which it bounds what lies below.
    pub(super) order_below: f64,
    /// Mass that each use may leave out.
    pub(super) tail: f64,
}

impl Grid {
    /// Returns the shortest grid that covers the losses that matter near the answer.
    pub(super) fn plan(pair: &DominatingPair, losses: &[Loss], near: &Near) -> Result<Self> {
        let Near { order: saddle, epsilon, delta, fineness } = *near;
        let choices = [0.25, 0.4, 0.55, 0.7, 0.85, 1.0].map(|factor| Span::new(pair, near, factor * saddle));
        let mut best: Option<Span> = None;
        for span in choices.into_iter().flatten() {
            if best.as_ref().is_none_or(|best| span.top - span.bottom < best.top - best.bottom) {
                best = Some(span);
            }
        }
        let Some(Span { tilt, bottom, top, order_above, order_below }) = best else {
            return Err(NO_GRID);
        };
        let uses: f64 = losses.iter().map(|loss| loss.count as f64).sum();
        let tail = (1e-5 * delta / uses).clamp(1e-290, 1e-3);
        // Splitting cells raises log δ by about tilt·(tilt+1)/2 times the variance that it adds.
        let allowed = 4e-4 * libm::fabs(epsilon).max(1e-3 * (top - bottom)) / (1.0 + saddle);
        let sketch: Vec<(f64, f64)> = losses.iter().flat_map(|loss| sketch(loss, saddle)).collect();
        let added = |step: f64| added_variance(&sketch, step);
        let mut step = (top - bottom) / 512.0;
        let mut rounds = 0;
        while (added(step) > allowed || added(step).is_nan()) && rounds < 60 {
            step *= 0.7;
            rounds += 1;
        }
        step *= fineness;
        let grid =
            Self { tilt, step, bottom: bottom - step, top: top + step, order_above, order_below, tail };
        if grid.top > grid.bottom && grid.tilt.is_finite() && grid.step > 0.0 && rounds < 60 {
            Ok(grid)
        } else {
            Err(NO_GRID)
        }
    }

    /// Number of grid points, a power of two.
    pub(super) fn length(&self) -> usize {
        let points = (self.top - self.bottom) / self.step + 4.0;
        if points < 1e9 { (points as usize).next_power_of_two().max(256) } else { usize::MAX }
    }
}

impl Span {
    /// Returns the losses that a grid tilted by `tilt` has to cover, or `None` if rounding would
    /// show.
    fn new(pair: &DominatingPair, near: &Near, tilt: f64) -> Option<Self> {
        let Near { order: saddle, epsilon, delta, .. } = *near;
        let at_tilt = cumulant(pair, tilt);
        let cancelled = at_tilt - tilt * epsilon - libm::log(delta);
        // At the saddle point the cancellation is least: no other grid is better.
        let at_saddle = tilt == saddle;
        if !(cancelled < most_cancelled(pair) || (at_saddle && cancelled < f64::INFINITY)) {
            return None;
        }
        let tolerance = LOG_TOLERANCE - cancelled;
        let mut span =
            Self { tilt, bottom: f64::NEG_INFINITY, top: f64::INFINITY, order_above: 0.0, order_below: 0.0 };
        for factor in [1.1, 1.2, 1.35, 1.5, 1.8, 2.2, 3.0, 5.0, 10.0] {
            let order = factor * tilt;
            let candidate = (cumulant(pair, order) - at_tilt - tolerance) / (order - tilt);
            if candidate < span.top {
                (span.top, span.order_above) = (candidate, order);
            }
        }
        for factor in [0.0, 0.25, 0.5, 0.7, 0.85] {
            let order = factor * tilt;
            let candidate = (at_tilt - cumulant(pair, order) + tolerance) / (tilt - order);
            if candidate > span.bottom {
                (span.bottom, span.order_below) = (candidate, order);
            }
        }
        (span.top.is_finite() && span.bottom.is_finite()).then_some(span)
    }
}
