//! Which losses the lattice covers and how finely: choices that cost time or tightness, never validity.

use crate::AccountantError;
use crate::mechanism::{Lowered, Tabulated};
use crate::transform::moment::{cumulant, dither, sketch};

use super::Phase;

/// log of how much of δ what falls off either end may amount to.
const LOG_TOLERANCE: f64 = -12.0;

/// log of how many times δ the tilted total may be, round-off being relative to the total and to the uses.
fn most_cancelled(side: &Lowered) -> f64 {
    (-9.0 - libm::log((side.uses() + 100.0) * 2e-14)).clamp(5.0, 13.0)
}

const NO_WINDOW: AccountantError =
    AccountantError::NotConverged { what: "the privacy loss has no finite window" };

/// Losses above the lowest and their tilted weights.
fn outline(phase: &Phase, saddle: f64, uses: f64) -> Vec<(f64, f64)> {
    match phase {
        Phase::Line(pair) => sketch(pair, 1.0 + saddle, uses),
        Phase::Table(table) => outline_of_table(table, saddle, uses),
    }
}

fn outline_of_table(table: &Tabulated, saddle: f64, uses: f64) -> Vec<(f64, f64)> {
    let lowest = table.outcomes().first().map_or(0.0, |outcome| outcome.loss);
    let weight = |mass: f64, loss: f64| uses * mass * libm::exp(saddle * loss);
    table.outcomes().iter().map(|at| (at.loss - lowest, weight(at.mass, at.loss))).collect()
}

/// A tilt and what it has to cover.
struct Span {
    tilt: f64,
    bottom: f64,
    top: f64,
    power_above: f64,
    power_below: f64,
}

/// A stretch of the lattice, relative to the sum of the phases' origins where it says so.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Tilt c: masses are weighted by e^{c·loss}.
    pub(super) tilt: f64,
    /// Distance of lattice points.
    pub(super) step: f64,
    /// Lowest loss covered.
    pub(super) bottom: f64,
    /// Highest loss covered.
    pub(super) top: f64,
    /// The power at which Chernoff's inequality bounds what lies above.
    pub(super) power_above: f64,
    /// The power at which it bounds what lies below.
    pub(super) power_below: f64,
    /// Mass each use of a phase may leave out.
    pub(super) tail: f64,
}

impl Window {
    /// A window for losses near `epsilon`, where δ is near `delta` and e^{saddle·loss} is centred. `fineness`
    /// multiplies the distance of lattice points that should do.
    pub(super) fn plan(
        side: &Lowered,
        phases: &[(Phase, u64)],
        saddle: f64,
        epsilon: f64,
        delta: f64,
        fineness: f64,
    ) -> Result<Self, AccountantError> {
        let most = most_cancelled(side);
        let choices = [0.25, 0.4, 0.55, 0.7, 0.85, 1.0]
            .map(|factor| Self::span(side, factor * saddle, epsilon, delta, most, factor == 1.0));
        let mut best: Option<Span> = None;
        for span in choices.into_iter().flatten() {
            if best.as_ref().is_none_or(|best| span.top - span.bottom < best.top - best.bottom) {
                best = Some(span);
            }
        }
        let Some(Span { tilt, bottom, top, power_above, power_below }) = best else {
            return Err(NO_WINDOW);
        };
        let uses: f64 = phases.iter().map(|(_, count)| *count as f64).sum();
        let tail = (1e-5 * delta / uses).clamp(1e-290, 1e-3);
        // Spread by splitting cells raises log δ by about tilt·(tilt+1)/2 times the added variance.
        let allowed = 4e-4 * libm::fabs(epsilon).max(1e-3 * (top - bottom)) / (1.0 + saddle);
        let sketch: Vec<(f64, f64)> =
            phases.iter().flat_map(|(phase, count)| outline(phase, saddle, *count as f64)).collect();
        let added = |step: f64| dither(&sketch, step);
        let mut step = (top - bottom) / 512.0;
        let mut rounds = 0;
        while (added(step) > allowed || added(step).is_nan()) && rounds < 60 {
            step *= 0.7;
            rounds += 1;
        }
        step *= fineness;
        let window =
            Self { tilt, step, bottom: bottom - step, top: top + step, power_above, power_below, tail };
        if window.top > window.bottom && window.tilt.is_finite() && window.step > 0.0 && rounds < 60 {
            Ok(window)
        } else {
            Err(NO_WINDOW)
        }
    }

    /// What a lattice tilted by `tilt` has to cover; none where round-off would show.
    fn span(side: &Lowered, tilt: f64, epsilon: f64, delta: f64, most: f64, at_saddle: bool) -> Option<Span> {
        let at_tilt = cumulant(side, tilt);
        let cancelled = at_tilt - tilt * epsilon - libm::log(delta);
        // At the saddle it is least: a lattice there is the best there is.
        if !(cancelled < most || (at_saddle && cancelled < f64::INFINITY)) {
            return None;
        }
        let tolerance = LOG_TOLERANCE - cancelled;
        let mut span =
            Span { tilt, bottom: f64::NEG_INFINITY, top: f64::INFINITY, power_above: 0.0, power_below: 0.0 };
        for factor in [1.1, 1.2, 1.35, 1.5, 1.8, 2.2, 3.0, 5.0, 10.0] {
            let power = factor * tilt;
            let candidate = (cumulant(side, power) - at_tilt - tolerance) / (power - tilt);
            if candidate < span.top {
                (span.top, span.power_above) = (candidate, power);
            }
        }
        for factor in [0.0, 0.25, 0.5, 0.7, 0.85] {
            let power = factor * tilt;
            let candidate = (at_tilt - cumulant(side, power) + tolerance) / (tilt - power);
            if candidate > span.bottom {
                (span.bottom, span.power_below) = (candidate, power);
            }
        }
        (span.top.is_finite() && span.bottom.is_finite()).then_some(span)
    }

    /// Lattice points needed, a power of two.
    pub(super) fn length(&self) -> usize {
        let points = (self.top - self.bottom) / self.step + 4.0;
        if points < 1e9 { (points as usize).next_power_of_two().max(256) } else { usize::MAX }
    }
}
