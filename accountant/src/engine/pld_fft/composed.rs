//! Reads ε and δ off the composed curves, with every error added or subtracted.

use crate::dominating_pair::chernoff::log_hockey_stick;
use crate::{AccountantError, Bounds, Result};

use crate::dominating_pair::quadrature::ULP;

use super::grid::Grid;

/// A composed curve.
#[derive(Default)]
pub(super) struct Curve {
    /// Tilted masses at grid points modulo the length. They sum to one.
    pub(super) masses: Vec<f64>,
    /// log of the divisor of the masses.
    pub(super) log_norm: f64,
    /// log moments at the grid's orders over the norm.
    pub(super) log_above: f64,
    pub(super) log_below: f64,
    /// Bound on the rounding error of a mass.
    pub(super) noise: f64,
    /// Relative error of the norm.
    pub(super) rounding: f64,
    /// P-mass that was moved to an infinite loss.
    pub(super) lost: f64,
}

/// Both composed curves, prepared for reading.
pub(super) struct Composed {
    upper: SuffixSums,
    lower: SuffixSums,
    origin: f64,
}

/// Suffix sums S = Σ_{j≥k} m_j e^{−(c+1)(j−k)h} and D = Σ_{j≥k} m_j e^{−c(j−k)h}·(1 − e^{−(j−k)h}). Where losses are tiny D
/// is far smaller than S, so it is summed by itself, of terms of one sign, and never as a difference of two sums.
struct SuffixSums {
    kept: Vec<f64>,
    risen: Vec<f64>,
    lowest: f64,
    step: f64,
    tilt: f64,
    log_norm: f64,
    /// Tilted error: what e^{log_norm − c·y} multiplies.
    uncertain: f64,
    /// Absolute error.
    lost: f64,
}

impl Composed {
    pub(super) fn new(upper: Curve, lower: Curve, origin: f64, grid: &Grid) -> Self {
        Self {
            upper: SuffixSums::new(upper, origin, grid, false),
            lower: SuffixSums::new(lower, origin, grid, true),
            origin,
        }
    }

    /// Bounds on δ at `epsilon`.
    pub(super) fn delta(&self, epsilon: f64) -> Result<Bounds> {
        let loss = epsilon - self.origin;
        let (value, error) = self.upper.at(loss);
        // Losses below the grid are not counted.
        let upper = if loss >= self.upper.lowest() { value + error } else { 1.0 };
        let (value, error) = self.lower.at(loss);
        let lower = value - error;
        if upper >= 0.0 {
            Bounds::new(if lower > 0.0 { lower.min(upper) } else { 0.0 }, upper.min(1.0))
        } else {
            Err(AccountantError::NotConverged { what: "the composed curve is not a number" })
        }
    }

    /// Bounds on ε at `delta`: where the upper curve has fallen to it, and where the lower one has not yet.
    pub(super) fn epsilon(&self, delta: f64) -> Result<Bounds> {
        // Error of the body's loss, times its uses.
        let slack = 1e-13 + 1e-12 * libm::fabs(self.origin);
        let met = |loss: f64| {
            let (value, error) = self.upper.at(loss);
            value + error <= delta
        };
        let missed = |loss: f64| {
            let (value, error) = self.lower.at(loss);
            value - error > delta
        };
        let zero = -self.origin;
        let top = self.upper.highest();
        // The upper curve is known on the grid only: losses below it are not counted.
        let bottom = self.upper.lowest().max(zero);
        let upper = if met(bottom) {
            if bottom > zero { bottom + self.origin + slack } else { 0.0 }
        } else if top > bottom && met(top) {
            let (_, high) = bisect(bottom, top, |loss| !met(loss));
            high + self.origin + slack
        } else {
            f64::INFINITY
        };
        let lower = match self.start_below(upper, zero, top, missed) {
            Some((from, to)) => (bisect(from, to, missed).0 + self.origin - slack).max(0.0),
            None => 0.0,
        };
        Bounds::new(lower.min(upper), upper)
    }
}

impl Composed {
    /// Losses between which the lower curve falls to δ: looked for from `upper` downwards, as the lower curve's error,
    /// relative to the tilted masses, grows towards small losses.
    fn start_below(
        &self,
        upper: f64,
        zero: f64,
        top: f64,
        missed: impl Fn(f64) -> bool,
    ) -> Option<(f64, f64)> {
        let mut high = (upper - self.origin).min(top);
        let mut reach = 1e-4 * (high - zero);
        while reach > 0.0 && high > zero {
            let low = (high - reach).max(zero);
            if missed(low) {
                return Some((low, high));
            }
            (high, reach) = (low, 2.0 * reach);
        }
        None
    }
}

/// Narrows [low, high], `holds` at low and not at high, to neighbouring numbers.
fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if !(middle > low && middle < high) {
            break;
        }
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
}

impl SuffixSums {
    fn new(curve: Curve, origin: f64, grid: &Grid, counts_below: bool) -> Self {
        let length = curve.masses.len();
        let (tilt, step) = (grid.tilt, grid.step);
        let lowest = f64::floor((grid.bottom - origin) / step);
        let start = f64::floor(lowest - f64::floor(lowest / length as f64) * length as f64) as usize % length;
        let (fade, fade_more) = (libm::exp(-tilt * step), libm::exp(-(tilt + 1.0) * step));
        let rise = -libm::expm1(-step);
        let (mut kept, mut risen) = (vec![0.0; length + 1], vec![0.0; length + 1]);
        for k in (0..length).rev() {
            kept[k] = curve.masses[(start + k) % length] + fade_more * kept[k + 1];
            risen[k] = fade * (risen[k + 1] + rise * kept[k + 1]);
        }
        // Tilted mass outside [lowest, lowest + length) · step.
        let above = curve.log_above - (grid.order_above - tilt) * (lowest + length as f64) * step;
        let below = curve.log_below + (tilt - grid.order_below) * lowest * step;
        let outside = libm::exp(above) + if counts_below { libm::exp(below) } else { 0.0 };
        let peak = libm::exp(log_hockey_stick(tilt));
        // Σ_k e^{−ckh}(1 − e^{−kh}) ≤ peak + ∫/h bounds how rounding errors of the masses add up.
        let spread = peak + 1.0 / (step * tilt * (1.0 + tilt));
        // A mass n points further up is rounded 3n times on its way, and n·e^{−cnh}(1 − e^{−nh}) ≤ 2·peak/ch.
        let sums = 6.0 * ULP / (tilt * step);
        let relative = 2.0 * curve.rounding + sums + 1e-13 * (1.0 + libm::fabs(curve.log_norm));
        Self {
            kept,
            risen,
            lowest,
            step,
            tilt,
            log_norm: curve.log_norm,
            uncertain: 1.01 * outside * peak + 1.01 * curve.noise * spread + relative * peak,
            lost: curve.lost,
        }
    }

    /// The grid's first point.
    fn lowest(&self) -> f64 {
        self.lowest * self.step
    }

    fn highest(&self) -> f64 {
        (self.lowest + self.kept.len() as f64 - 2.0) * self.step
    }

    /// δ at a loss relative to the origin, and how far off it may be.
    fn at(&self, loss: f64) -> (f64, f64) {
        let index = f64::ceil(loss / self.step).max(self.lowest);
        let slot = ((index - self.lowest) as usize).min(self.kept.len() - 1);
        let point = index * self.step;
        let scale = libm::exp(self.log_norm - self.tilt * point);
        let value = scale * (self.risen[slot] - libm::expm1(loss - point) * self.kept[slot]);
        let error = libm::exp(self.log_norm - self.tilt * loss) * self.uncertain;
        (value, error + self.lost)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn nothing_is_claimed_below_the_grid() {
        // A mass of 1e-6 at the grid's lowest loss, 5; what lies below is not on the grid at all.
        let grid = Grid {
            tilt: 1.0,
            step: 0.1,
            bottom: 5.0,
            top: 10.0,
            order_above: 2.0,
            order_below: 0.5,
            tail: 1e-12,
        };
        let curve = || {
            let mut masses = vec![0.0; 256];
            masses[50] = 1.0;
            let nothing = f64::NEG_INFINITY;
            Curve {
                masses,
                log_norm: 5.0 + libm::log(1e-6),
                log_above: nothing,
                log_below: nothing,
                ..Curve::default()
            }
        };
        let composed = Composed::new(curve(), curve(), 0.0, &grid);
        assert!(composed.epsilon(1e-3).unwrap().upper >= 5.0 - 1e-9);
        assert!(composed.delta(2.0).unwrap().upper >= 1.0);
    }
}
