//! The fallback that always holds: privacy losses on a lattice, composed by a discrete Fourier transform.
//!
//! # Proof note
//! *Above* (Doroshenko et al. 2022): the mass of a cell between neighbouring lattice points is split onto both so
//! that its probabilities under P and under Q stay; the hockey-stick curve of the result interpolates the true
//! one, which is convex in e^ε, hence is never below it. *Below*: outcomes are merged, which no attacker gains
//! from, in portions whose joint loss is exactly a lattice point (`contract`). Both stay valid under composition.
//! The composed distribution is tilted by e^{c·loss} before the transform, so that round-off is relative to δ;
//! wrap-around is bounded by Chernoff's inequality and counted, as is every rounding (`answer`).

mod answer;
pub(crate) mod cells;
mod compose;
mod contract;
mod window;

use crate::mechanism::{Lowered, Pair, Tabulated};
use crate::{AccountantError, Bounds, chernoff};
use window::Window;

/// The longest transform: about 4 MiB and a few hundredths of a second.
const LONGEST: usize = 1 << 18;

/// The relative gap in ε at which the lattice is fine enough.
const GAP: f64 = 8e-4;

/// [`epsilon`] on a short lattice only: quick where jumps are rare but plain, an error elsewhere.
pub(crate) fn quick_epsilon(
    side: &Lowered,
    delta: f64,
    start: (f64, f64),
) -> Result<Bounds, AccountantError> {
    epsilon_within(side, delta, start, 1 << 15)
}

/// Certified bounds on ε at `delta`, given Chernoff's ε and its power; refuses where no lattice of affordable length holds the loss.
pub(crate) fn epsilon(side: &Lowered, delta: f64, start: (f64, f64)) -> Result<Bounds, AccountantError> {
    epsilon_within(side, delta, start, LONGEST)
}

fn epsilon_within(
    side: &Lowered,
    delta: f64,
    (ceiling, tilt): (f64, f64),
    longest: usize,
) -> Result<Bounds, AccountantError> {
    refine(side, tilt, ceiling, delta, Target::Epsilon, longest, |bounds| {
        bounds.upper - bounds.lower <= GAP * bounds.upper
    })
}

/// Certified bounds on δ at `epsilon`, given Chernoff's log δ and its power.
pub(crate) fn delta(
    side: &Lowered,
    epsilon: f64,
    (ceiling, tilt): (f64, f64),
) -> Result<Bounds, AccountantError> {
    let ceiling = libm::exp(ceiling).min(1.0);
    refine(side, tilt, epsilon, ceiling, Target::Delta, LONGEST, |bounds| {
        bounds.upper - bounds.lower <= GAP * (1.0 + epsilon * tilt) * bounds.upper
    })
}

/// Answers on ever finer lattices until the bounds are `tight` or the next would be too long.
fn refine(
    side: &Lowered,
    tilt: f64,
    epsilon: f64,
    delta: f64,
    target: Target,
    longest: usize,
    tight: impl Fn(&Bounds) -> bool,
) -> Result<Bounds, AccountantError> {
    let phases = phases(side);
    let (mut tilt, mut near, mut fineness) = (tilt, epsilon, 1.0);
    let mut best: Option<Bounds> = None;
    for _ in 0..5 {
        let window = match Window::plan(side, &phases, tilt, near, delta, fineness) {
            Ok(window) if window.length() <= longest => window,
            _ => break,
        };
        let answer = compose::compose(&phases, &window)?;
        let bounds = match target {
            Target::Epsilon => answer.epsilon(delta)?,
            Target::Delta => answer.delta(epsilon)?,
        };
        let merged = match best {
            Some(known) => Bounds::new(known.lower.max(bounds.lower), known.upper.min(bounds.upper))?,
            None => bounds,
        };
        if tight(&merged) {
            return Ok(merged);
        }
        best = Some(merged);
        fineness *= 0.5;
        // Where jumps are rare Chernoff's ε is far too high: the next lattice is centred where it matters.
        if target == Target::Epsilon && bounds.upper > 0.0 && bounds.upper < 0.9 * near {
            near = bounds.upper;
            tilt = chernoff::log_delta(side, near).1;
            fineness = 1.0;
        }
    }
    best.ok_or(AccountantError::NotConverged {
        what: "the privacy loss needs a lattice of more than 2^18 points",
    })
}

/// What is being asked.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    Epsilon,
    Delta,
}

/// What is cut into cells.
#[derive(Clone)]
enum Phase {
    Line(Pair),
    Table(Tabulated),
}

/// The mixture pairs and tables and, as one more pair, the Gaussian.
fn phases(side: &Lowered) -> Vec<(Phase, u64)> {
    let pairs = side.pairs.iter().map(|(pair, count)| (Phase::Line(pair.clone()), *count));
    let tables = side.tables.iter().map(|(table, count)| (Phase::Table(table.clone()), *count));
    let mut phases: Vec<(Phase, u64)> = pairs.chain(tables).collect();
    if side.mu_squared > 0.0 {
        phases.push((Phase::Line(Pair::gaussian(libm::sqrt(side.mu_squared))), 1));
    }
    phases
}
