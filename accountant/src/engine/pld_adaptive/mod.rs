//! Privacy loss distributions on an uneven grid, composed by repeated squaring: the engine for rare jumps.
//!
//! Where sampling is rare and noise low, the loss of a step spans ten powers of ten: an even grid is either too coarse for
//! most steps or too long. Here the grid is as fine as the bulk of the loss near the bulk and grows in proportion to the distance
//! from it (Ghazi, Kamath, Kumar & Manurangsi 2022, <https://arxiv.org/abs/2207.04381>, evolve an even grid for the same reason).
//! Compositions are direct sums of products of masses.
//!
//! # Proof note
//! *Upper law*: a mass between two grid points is split onto both with its probabilities under P and under Q preserved
//! (connect the dots: Doroshenko et al. 2022, <https://arxiv.org/abs/2207.04380>). What leaves the grid at the top moves to an
//! infinite loss, at the bottom up to the first point. *Lower law*: the outcomes of a cell are merged into one, whose loss is
//! log(P/Q) of the cell (post-processing). What leaves at the top moves down to the last edge; at the bottom it is left out.
//! Both stay valid under composition. Every sum has positive terms only: a term that goes through n additions is rounded by at
//! most n units of 2⁻⁵³, relatively. This is added to masses of the upper law and subtracted from those of the lower one; no
//! absolute rounding floor hides a small δ.

mod atoms;
mod grid;
mod single_step;

use super::{Engine, Problem, Target};
use crate::dominating_pair::chernoff::ChernoffBound;
use crate::dominating_pair::{
    DiscretePair, DominatingPair, Factor, Law, MixturePair, Outcome, TruncationMixture,
};
use crate::{Bounds, Result};
use atoms::{Atoms, Rounding};
use grid::{GridShape, Leaving};

/// Growth of neighbouring distances from the bulk near the answer: at first, on the finest grid,
/// and if that grid does not suffice.
const RATIO: f64 = 0.08;
pub(super) const FINE: f64 = 0.005;
const LAST: f64 = 0.0025;

/// Factor by which a gap may be too wide and still be accepted on the finest grid.
const NEARLY: f64 = 1.2;

/// The finest grid of a first look.
pub(super) const COARSE: f64 = 0.03;

/// Width of the cells of the bulk, relative to other cells. It is small compared with the bulk,
/// which is small compared with ε in the cases that need this engine. In other cases the finest
/// grid is built again with narrower cells.
const BULK: f64 = 4.0;
const FINE_BULK: f64 = 1.5;

/// The upper and the lower composed law.
struct Composed {
    upper: Atoms,
    lower: Atoms,
}

/// The engine, on grids no finer than `finest`.
pub(super) struct PldAdaptive {
    pub(super) finest: f64,
}

impl Engine for PldAdaptive {
    /// Answers for the whole pair, because it handles rare outcomes itself, as infinite losses.
    fn bounds(&self, problem: &Problem<'_>, tightness: f64) -> Result<Bounds> {
        let (pair, target) = (problem.whole, problem.target);
        let mut order = problem.chernoff().order;
        let mut near = problem.first_epsilon();
        let mut expected = problem.first_delta();
        let most = if matches!(target, Target::Delta { .. }) { 1.0 } else { f64::INFINITY };
        let mut best = Bounds::new(0.0, most)?;
        let mut fineness = Fineness { ratio: RATIO, bulk: BULK };
        for _ in 0..8 {
            let shape = GridShape::new(near, order, fineness);
            let Some(composed) = compose(pair, &shape, expected) else { break };
            let found = composed.read(target)?;
            best = Bounds::new(best.lower.max(found.lower), best.upper.min(found.upper))?;
            let narrow = match target {
                Target::Epsilon { .. } => tightness,
                // δ changes about ε·t times as fast as ε.
                Target::Delta { epsilon } => tightness * (1.0 + epsilon * order),
            };
            let gap = (best.upper - best.lower) / best.upper;
            let settled = match target {
                Target::Epsilon { .. } => best.upper <= problem.floor || gap <= narrow,
                Target::Delta { .. } => gap <= narrow,
            };
            if settled {
                break;
            }
            let Some(next) = fineness.next(gap / narrow, self.finest) else { break };
            fineness = next;
            match target {
                Target::Epsilon { .. } if best.upper.is_finite() => {
                    let close = best.lower > 0.3 * best.upper;
                    near = if close { 0.5 * (best.lower + best.upper) } else { best.upper };
                    order = ChernoffBound::at_epsilon(pair, near).order;
                }
                Target::Epsilon { .. } => {}
                Target::Delta { .. } => expected = best.upper.max(1e-300),
            }
        }
        Ok(best)
    }
}

impl Composed {
    fn read(&self, target: Target) -> Result<Bounds> {
        let (upper, lower) = match target {
            Target::Epsilon { delta } => {
                (self.upper.epsilon(delta, Rounding::Up), self.lower.epsilon(delta, Rounding::Down))
            }
            Target::Delta { epsilon } => {
                (self.upper.delta(epsilon, Rounding::Up), self.lower.delta(epsilon, Rounding::Down))
            }
        };
        // Each curve is rounded outward, so `best` is checked instead of each pair.
        Ok(Bounds { lower, upper })
    }
}

/// Fineness of a grid: the growth of neighbouring distances from the bulk, and the relative width
/// of the bulk's own cells.
#[derive(Clone, Copy, Debug)]
struct Fineness {
    ratio: f64,
    bulk: f64,
}

impl Fineness {
    /// The next fineness after a gap that was `excess` times too wide: gaps shrink with the square of the ratio once the grid
    /// lies where it matters. None beyond `finest`.
    fn next(self, excess: f64, finest: f64) -> Option<Self> {
        let excess = if excess.is_finite() { excess } else { 16.0 };
        let wanted = self.ratio * f64::sqrt(0.6 / excess);
        let finer = |least: f64| wanted.clamp(0.25 * self.ratio, 0.75 * self.ratio).max(least);
        if self.ratio > finest {
            return Some(Self { ratio: finer(finest), ..self });
        }
        if finest > FINE || excess <= NEARLY {
            return None;
        }
        if self.bulk > FINE_BULK {
            return Some(Self { bulk: FINE_BULK, ..self });
        }
        (self.ratio > LAST).then(|| Self { ratio: finer(LAST), ..self })
    }
}

/// Returns both laws of the whole composition, or `None` if a step does not fit the grid.
fn compose(pair: &DominatingPair, shape: &GridShape, delta: f64) -> Option<Composed> {
    let uses = pair.uses() + 1.0;
    let budget = LeftOut { delta, uses };
    let mut all: Option<Composed> = None;
    let mut add = |law: Composed| {
        all = Some(match all.take() {
            Some(known) => join(&known, &law, uses, shape, &budget)?,
            None => law,
        });
        Some(())
    };
    // The laws of discrete pairs have gaps; they are spread last.
    let is_discrete = |factor: &&Factor| matches!(factor.law, Law::Discrete(_));
    let factors = pair.factors().iter();
    let (discrete, mixtures): (Vec<&Factor>, Vec<&Factor>) = factors.partition(is_discrete);
    for Factor { law, count } in mixtures.into_iter().chain(discrete) {
        let step = match law {
            Law::Mixture(pair) => single_step::mixture(pair, shape, &budget),
            Law::Truncated(mixture) => single_step::truncated(mixture, shape, &budget),
            Law::Discrete(pair) => single_step::discrete(pair, shape, &budget),
            Law::Selection(_) | Law::Concentrated(_) => None,
        };
        add(power(step?, *count, shape, &budget)?)?;
    }
    if pair.mu_squared() > 0.0 {
        add(single_step::mixture(&MixturePair::gaussian(pair.mu()), shape, &budget)?)?;
    }
    all
}

/// A step with a public coin as finitely many outcomes.
pub(super) struct Outcomes {
    pub(super) upper: DiscretePair,
    /// P-mass of an infinite loss.
    pub(super) failure: f64,
    pub(super) lower: DiscretePair,
}

impl Outcomes {
    /// The outcomes of a step in a composition of `uses` steps with a δ near `delta`.
    pub(super) fn of(step: &TruncationMixture, delta: f64, uses: f64) -> Option<Self> {
        let Composed { upper, lower } = single_step::outcomes(step, &LeftOut { delta, uses })?;
        let pair = |law: &Atoms| {
            let both = law.losses.iter().zip(&law.masses);
            DiscretePair::new(both.map(|(&loss, &mass)| Outcome { loss, mass }).collect())
        };
        Some(Self { failure: upper.infinite, upper: pair(&upper), lower: pair(&lower) })
    }
}

/// The mass that the laws may leave out.
struct LeftOut {
    /// δ near the answer.
    delta: f64,
    /// Uses of all factors.
    uses: f64,
}

impl LeftOut {
    /// Returns the mass that a law of `count` uses may leave out at both ends.
    fn leaving(&self, count: f64) -> Leaving {
        Leaving { bottom: self.bottom(count), top: self.top(count) }
    }

    /// P-mass that a law of `count` uses may send to an infinite loss.
    fn top(&self, count: f64) -> f64 {
        (1e-6 * self.delta * count / self.uses).max(1e-300)
    }

    /// P-mass that a law of `count` uses may pile up at its lowest point.
    fn bottom(&self, count: f64) -> f64 {
        1e-8 * count / self.uses
    }
}

fn join(
    one: &Composed,
    other: &Composed,
    count: f64,
    shape: &GridShape,
    budget: &LeftOut,
) -> Option<Composed> {
    let edges = grid::edges(&one.upper, &other.upper, shape, budget.leaving(count))?;
    let dropped = 0.3 * budget.top(count);
    let upper = atoms::convolve(&one.upper, &other.upper, &edges, dropped).split(&edges);
    let middles = grid::middles(&edges);
    let lower = atoms::convolve(&one.lower, &other.lower, &middles, dropped).merge(&middles);
    Some(Composed { upper, lower })
}

/// The law of `count` uses, by squaring.
fn power(step: Composed, count: u64, shape: &GridShape, budget: &LeftOut) -> Option<Composed> {
    let bits = 64 - count.leading_zeros();
    let mut done = 1.0;
    let mut whole: Option<Composed> = None;
    for bit in (0..bits.saturating_sub(1)).rev() {
        let known = whole.as_ref().unwrap_or(&step);
        done *= 2.0;
        let mut next = join(known, known, done, shape, budget)?;
        if count >> bit & 1 == 1 {
            done += 1.0;
            next = join(&next, &step, done, shape, budget)?;
        }
        whole = Some(next);
    }
    Some(whole.unwrap_or(step))
}
