//! Privacy loss distributions on an even grid, composed by a discrete Fourier transform.
//!
//! # Proof note
//! *Upper curve* (connect the dots: Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022, <https://arxiv.org/abs/2207.04380>): the
//! mass of a cell between neighbouring grid points is split onto both with its probabilities under P and under Q preserved. The
//! hockey-stick curve of the result interpolates the true one, which is convex in e^ε, and so is never below it. *Lower
//! curve*: outcomes are merged, which no attacker gains from, in portions whose joint loss is exactly a grid point (`merge`).
//! Both stay valid under composition. The composed distribution is tilted by e^{c·loss} before the transform, so that
//! rounding is relative to δ (after Koskela, Jälkö & Honkela 2020, <https://arxiv.org/abs/1906.03049>, who compose by FFT). Wrap-around
//! is bounded by Chernoff's inequality and counted, as is every rounding (`composed`).

mod cells;
mod compose;
mod composed;
mod grid;
mod merge;

use super::{Engine, Problem, Target};
use crate::dominating_pair::chernoff::ChernoffBound;
use crate::dominating_pair::{DiscretePair, DominatingPair, Law, MixturePair};
use crate::{AccountantError, Bounds, Result};
use grid::{Grid, Near};

/// Largest length of a transform: about 4 MiB and a few hundredths of a second.
pub(super) const LONGEST: usize = 1 << 18;

/// Length of a transform that takes less time than the adaptive engine.
pub(super) const SHORT: usize = 1 << 15;

/// The engine, on grids of up to `longest` points.
pub(super) struct PldFft {
    pub(super) longest: usize,
}

impl Engine for PldFft {
    /// Answers on finer and finer grids until the bounds are narrow or the next grid would be too
    /// long.
    fn bounds(&self, problem: &Problem<'_>, tightness: f64) -> Result<Bounds> {
        let pair = problem.pair;
        let losses = losses(pair);
        let order = problem.chernoff().order;
        let mut near =
            Near { order, epsilon: problem.first_epsilon(), delta: problem.first_delta(), fineness: 1.0 };
        let narrow = match problem.target {
            Target::Epsilon { .. } => tightness,
            // δ changes about ε·t times as fast as ε.
            Target::Delta { epsilon } => tightness * (1.0 + epsilon * order),
        };
        let mut best: Option<Bounds> = None;
        for _ in 0..5 {
            let grid = match Grid::plan(pair, &losses, &near) {
                Ok(grid) if grid.length() <= self.longest => grid,
                _ => break,
            };
            let composed = compose::compose(&losses, &grid)?;
            let bounds = match problem.target {
                Target::Epsilon { delta } => composed.epsilon(delta)?,
                Target::Delta { epsilon } => composed.delta(epsilon)?,
            };
            let merged = best.map_or(Ok(bounds), |known| known.intersect(bounds))?;
            if merged.upper - merged.lower <= narrow * merged.upper {
                return Ok(merged);
            }
            best = Some(merged);
            near.fineness *= 0.5;
            // If jumps are rare, Chernoff's ε is far too high, so the next grid is centred at the
            // answer found.
            let asks_epsilon = matches!(problem.target, Target::Epsilon { .. });
            if asks_epsilon && bounds.upper > 0.0 && bounds.upper < 0.9 * near.epsilon {
                let order = ChernoffBound::at_epsilon(pair, bounds.upper).order;
                near = Near { order, epsilon: bounds.upper, fineness: 1.0, ..near };
            }
        }
        best.ok_or(AccountantError::NotConverged {
            what: "the privacy loss needs a grid of more than 2^18 points",
        })
    }
}

/// The loss of a single use, before it is cut into cells, and the number of uses.
struct Loss {
    law: LossLaw,
    count: u64,
}

enum LossLaw {
    Mixture(MixturePair),
    Discrete(DiscretePair),
}

/// The factors and, as one more, the Gaussian.
fn losses(pair: &DominatingPair) -> Vec<Loss> {
    let of = |law: &Law| match law {
        Law::Mixture(pair) => Some(LossLaw::Mixture(pair.clone())),
        Law::Discrete(pair) => Some(LossLaw::Discrete(pair.clone())),
        // The engine table lets no such factor through.
        Law::Selection(_) | Law::Concentrated(_) | Law::Truncated(_) => None,
    };
    let factors = pair.factors().iter();
    let mut losses: Vec<Loss> =
        factors.filter_map(|factor| Some(Loss { law: of(&factor.law)?, count: factor.count })).collect();
    if pair.mu_squared() > 0.0 {
        losses.push(Loss { law: LossLaw::Mixture(MixturePair::gaussian(pair.mu())), count: 1 });
    }
    losses
}
