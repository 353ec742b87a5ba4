//! Batches of a fixed size, drawn without replacement.
//!
//! # Proof note
//! B of N units are drawn; q = B/N. Couple a data set that contains the unit x with one that does not: draw a batch S of B
//! other units, and with probability q let x replace a uniform member y of S. Given S and y, the sum is displaced from
//! that of S by x − y with probability q, and otherwise not at all.
//! * Add or remove: without x the batch is S. Since ‖x − y‖ ≤ 2, the pair is that of Poisson sampling at q with displacement
//!   2. It is attained when all other units contribute −e and x contributes e, so both bounds are exact. A data set of more
//!   than N units has a smaller q, at which the pair costs less.
//! * Replace-one: the displacements are u = x − y and u′ = x′ − y, with the same
//!   probability, and ‖u‖, ‖u′‖ and ‖u − u′‖ are at most 2. Write H_a for the hockey-stick divergence at e^ε = a. For a = 1 + q(b − 1)
//!   ≥ 1 and β = a/b, advanced joint convexity (Balle, Barthe & Gaboardi 2018, Theorem 2, <https://arxiv.org/abs/1807.01647>) gives
//!   H_a((1−q)N(0)+qN(u) ‖ (1−q)N(0)+qN(u′)) ≤ q·((1−β)·H_b(N(u) ‖ N(0)) + β·H_b(N(u) ‖ N(u′))) ≤ q·H_b(N(2) ‖ N(0)),
//!   which is what the add-or-remove pair has at a. The same holds with P and Q exchanged. Take the positive losses of that
//!   pair, their mirror image as negative losses, and the remaining mass at 0: this law dominates at every ε (after Zhu, Dong
//!   & Wang 2022, <https://arxiv.org/abs/2106.08567>).
//! * Zero-out: P = (1−q)N(y) + qN(x) and Q = (1−q)N(y) + qN(0), x the unit's contribution. Over the density of N(0), N(x) and N(y) are
//!   X and Y, log-normal of mean 1, whose logarithms have the covariance of x and y over σ². A divergence E[F], F = (Q/N)·f(P/Q) with f
//!   convex, moves with the covariances G by ½ Σ E[pᵢpⱼFᵢⱼ] dGᵢⱼ (Price's theorem), where F is convex in (X, Y) and F_XY is a positive
//!   multiple of f″·(1 − P/Q). For the hockey stick at a ≥ 1 only P/Q = a counts, so that F_XY ≤ 0, and E[F] grows as x·y falls and, along
//!   x = re, y = −se, with r and with s: no (x, y) costs more than (e, −e), displacements 2 and 1. With P and Q exchanged F_XY is a positive
//!   multiple of f″·(Q/P − 1)·Q/P ≥ 0, and the worst is x = y = e: removal at displacement 1. The law takes its positive losses from
//!   the first of these pairs, its negative ones from the mirror image of the second, and has the remaining mass at 0. The same equation
//!   shows that no data sets cost more than these at any single ε.
//! * From below: let all other units contribute −e and x contribute e. Replace-one with x′ = −e has the add-or-remove pair. With x, x′ and
//!   −y at angles of 60° both displacements are 2, and their distance too, which may cost more over many steps. Zero-out has displacements
//!   2 and 1 with probability q (`zeroed_out`).
//!
//! No single data set attains the upper law (Lebeda et al. 2024, <https://arxiv.org/abs/2405.20769>), and no dominating pair of one step is
//! below it. Over many steps, in which one pair of data sets is nearly the worst, `smooth` proves a second bound, and the smaller one counts.
//! They meet the lower bounds unless the worst data sets depend on the loss so far. Then ε is that of an attacker who chooses them anew
//! before each step, and no product of pairs is known to equal it.
//!
//! By joint convexity the worst S and y bound all others. A law is cut into cells of x; each cell is split onto its
//! two ends with its P-mass and Q-mass preserved, which only helps the attacker.

mod plane;
mod smooth;

use crate::numeric::normal;
use crate::{AccountantError, NeighboringRelation, Result};

use super::quadrature::{Quadrature, RELATIVE};
use super::{Builder, Component, Direction, DiscretePair, Law, Mechanism, MixturePair, Outcome, positive};

use plane::{FARTHEST, PlanarPair};
use smooth::Edge;
pub(super) use smooth::{Orders, Smoothing};

const EVENT: &str = "fixed_size_sampled_gaussian";

/// The most units: beyond this the binomial's whole numbers and their sums lose digits.
pub(super) const LARGEST_POPULATION: u64 = 1_000_000_000_000;

/// A step on a batch of fixed size.
#[derive(Clone, Copy, Debug)]
pub(super) struct FixedSize {
    pub(super) sample_size: u64,
    pub(super) population: u64,
    pub(super) noise_multiplier: f64,
}

impl Mechanism for FixedSize {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let (view, pair) = (builder.view, &mut builder.pair);
        view.single_unit(EVENT)?;
        let sigma = positive("noise_multiplier", self.noise_multiplier)?;
        let relation = view.request.relation;
        self.check_sizes(relation == NeighboringRelation::AddOrRemoveOne)?;
        if self.sample_size == self.population {
            let displacement = view.displacement();
            pair.push_mu_squared(displacement * displacement / (sigma * sigma) * count as f64);
            return Ok(());
        }
        let from_below = view.request.is_lower();
        // Rounded up: a larger probability costs more. The exact quotient may lie just above the float.
        let ulps = if from_below { -4.0 } else { 4.0 };
        let q = self.sample_size as f64 / self.population as f64 * (1.0 + ulps * f64::EPSILON);
        if !(q > 0.0 && q < 1.0) {
            let allowed = "a sampling probability that a float distinguishes from 1";
            return Err(AccountantError::out_of_range("sample_size", self.sample_size as f64, allowed));
        }
        match (relation, from_below) {
            (NeighboringRelation::ZeroOut, true) => {
                pair.push(Law::Discrete(zeroed_out(sigma, q, view.direction)), count);
            }
            (NeighboringRelation::ReplaceOne, true)
                if view.request.alternative.is_some() && is_planar(sigma, q) =>
            {
                // Rounded down: the displacement over σ, which costs less if it is shorter.
                let square = 4.0 / (sigma * sigma) * (1.0 - 4.0 * f64::EPSILON);
                let triangle = PlanarPair { q, own: square, other: square, inner: 0.5 * square };
                pair.push(Law::Discrete(triangle.lower_law()), count);
            }
            (NeighboringRelation::ZeroOut | NeighboringRelation::ReplaceOne, false) => {
                let smooth = view.request.alternative.filter(|_| is_planar(sigma, q) && count > 0);
                let smooth = smooth.and_then(|failure| {
                    let tails = [failure / count as f64, HARDLY_EVER];
                    builder.orders.best(tails.map(|tail| edge(sigma, q, relation, tail)), count as f64)
                });
                let (law, lost) = match smooth {
                    Some((edge, order)) => {
                        builder.smoothing.at_most(order);
                        let end = edge.end();
                        let end = if view.direction == Direction::Remove { end.swapped() } else { end };
                        let (law, lost) = end.upper_law();
                        (law, lost + edge.failure)
                    }
                    None => worst_law(sigma, q, view.direction, relation),
                };
                pair.push(Law::Discrete(law), count);
                pair.push_failure(lost, count);
            }
            _ => pair.push(Law::Mixture(displaced_by_two(sigma, q, view.direction)), count),
        }
        Ok(())
    }
}

impl FixedSize {
    fn check_sizes(self, unit_may_be_absent: bool) -> Result<()> {
        let Self { sample_size, population, .. } = self;
        let refused =
            |name, value: u64, allowed| Err(AccountantError::out_of_range(name, value as f64, allowed));
        if !(1..=LARGEST_POPULATION).contains(&population) {
            return refused("population", population, "1 to 1e12 units");
        }
        if unit_may_be_absent && !(1..population).contains(&sample_size) {
            let allowed = "1 to population − 1 where the unit may be absent";
            return refused("sample_size", sample_size, allowed);
        }
        if !(1..=population).contains(&sample_size) {
            return refused("sample_size", sample_size, "1 to population");
        }
        Ok(())
    }
}

/// Whether a pair in the plane is computed.
fn is_planar(sigma: f64, q: f64) -> bool {
    2.0 / sigma <= FARTHEST && q <= 0.5
}

/// Probability of an outcome that may be left out of every step.
const HARDLY_EVER: f64 = 1e-60;

/// The edge of the module `smooth`, of which about `tail` may fail in each step.
fn edge(sigma: f64, q: f64, relation: NeighboringRelation, tail: f64) -> Edge {
    // Rounded up: a longer displacement costs more.
    let square = 1.0 / (sigma * sigma) * (1.0 + 4.0 * f64::EPSILON);
    let fixed = if relation == NeighboringRelation::ReplaceOne { 4.0 * square } else { square };
    Edge::new(q, fixed, 4.0 * square, tail)
}

/// The pair of Poisson sampling with displacement 2.
fn displaced_by_two(sigma: f64, q: f64, direction: Direction) -> MixturePair {
    let displaced = vec![Component { weight: q, shift: 2.0 }];
    match direction {
        Direction::Add => MixturePair::new(sigma, Vec::new(), displaced),
        Direction::Remove | Direction::Replace => MixturePair::new(sigma, displaced, Vec::new()),
    }
}

/// P-mass beyond the last cell, which counts as failure.
const TAIL: f64 = 1e-24;

/// The law of the module's proof, and the P-mass that is left out.
fn worst_law(sigma: f64, q: f64, direction: Direction, relation: NeighboringRelation) -> (DiscretePair, f64) {
    let removed = |displacement| PositiveLosses::new(sigma, q, displacement, 0.0);
    let (above, below) = match (relation, direction) {
        (NeighboringRelation::ZeroOut, Direction::Add) => {
            (removed(1.0), PositiveLosses::new(sigma, q, 2.0, 1.0))
        }
        (NeighboringRelation::ZeroOut, _) => (PositiveLosses::new(sigma, q, 2.0, 1.0), removed(1.0)),
        _ => {
            let both = removed(2.0);
            (both.clone(), both)
        }
    };
    let more = 1.0 + RELATIVE;
    let rest = 1.0 - above.p_mass - below.q_mass;
    let mut outcomes = vec![Outcome { loss: 0.0, mass: rest.max(0.0) + 4.0 * f64::EPSILON }];
    outcomes.extend(above.points.iter().map(|(loss, mass)| Outcome { loss: *loss, mass: mass * more }));
    outcomes.extend(
        below.points.iter().map(|(loss, mass)| Outcome { loss: -loss, mass: mass * libm::exp(-loss) * more }),
    );
    let top = below.points[below.points.len() - 1].0;
    outcomes.push(Outcome { loss: -top, mass: below.q_beyond * more });
    (DiscretePair::new(outcomes), above.p_beyond * more)
}

/// The positive losses of P = (1−q)N(0) + qN(moved) against Q = (1−q)N(0) + qN(moved_q).
#[derive(Clone)]
struct PositiveLosses {
    /// Losses and their P-masses.
    points: Vec<(f64, f64)>,
    /// Probabilities of all positive losses.
    p_mass: f64,
    q_mass: f64,
    /// Probabilities beyond the last point.
    p_beyond: f64,
    q_beyond: f64,
}

impl PositiveLosses {
    /// 0 ≤ `moved_q` < `moved`.
    fn new(sigma: f64, q: f64, moved: f64, moved_q: f64) -> Self {
        let to_the_right =
            |shift: f64| if shift > 0.0 { vec![Component { weight: q, shift: -shift }] } else { Vec::new() };
        let pair =
            MixturePair::new(sigma, vec![Component { weight: q, shift: moved }], to_the_right(moved_q));
        let quadrature = Quadrature::new(&pair);
        // The loss is 0 in the middle between the displacements, and grows from there.
        let (first, last) = (0.5 * (moved + moved_q), moved + sigma * normal::isf(TAIL));
        let cells = f64::ceil((last - first) / (0.01 * sigma.min(sigma * sigma))).clamp(200.0, 6000.0);
        let edge = |index: f64| if index < cells { first + (last - first) * index / cells } else { last };
        let mut points = vec![(0.0, 0.0)];
        let mut index = 0.0;
        while index < cells {
            let (from, to) = (edge(index), edge(index + 1.0));
            let (low, high) = (points[points.len() - 1].0, pair.loss(to));
            index += 1.0;
            let width = high - low;
            let mut cell = quadrature.cell(from, to, low, width);
            if !pair.q_is_plain() {
                // The loss is a difference of two logarithms.
                cell.slack += 16.0 * f64::EPSILON * cell.mass * (pair.log_p(to) + pair.log_q(to));
            }
            let before = points.len() - 1;
            if width > 0.0 {
                points[before].1 += (cell.deficit + cell.slack) / libm::expm1(width);
                points.push((high, (cell.excess + cell.slack) / -libm::expm1(-width)));
            } else {
                points[before].1 += cell.mass + cell.slack;
            }
        }
        let q_above = |x: f64| {
            if moved_q > 0.0 {
                (1.0 - q) * normal::sf(x / sigma) + q * normal::sf((x - moved_q) / sigma)
            } else {
                normal::sf(x / sigma)
            }
        };
        Self {
            points,
            p_mass: pair.p_above(first),
            q_mass: q_above(first),
            p_beyond: pair.p_above(last),
            q_beyond: q_above(last),
        }
    }
}

/// A mass and how far rounding may have moved it.
#[derive(Clone, Copy)]
struct Mass {
    mass: f64,
    error: f64,
}

/// The cells of the line under x = e against x = 0, or the other way round, when all other units contribute −e; from below.
/// Relative to the sum of a batch of the others, the displacements are 2 and 1, with probability `q`.
///
/// # Proof note
/// Observing only the cell is post-processing, and so is leaving out what lies beyond the cells. Each P-mass is rounded down
/// and each Q-mass up by the error of the normal law, which lowers every hockey-stick divergence, of compositions too.
fn zeroed_out(sigma: f64, q: f64, direction: Direction) -> DiscretePair {
    let far = sigma * normal::isf(TAIL);
    let (first, last) = (-far, 2.0 + far);
    let cells = f64::ceil((last - first) / (0.02 * sigma.min(sigma * sigma))).clamp(400.0, 6000.0);
    let between = |from: f64, to: f64, shift: f64| {
        let (from, to) = ((from - shift) / sigma, (to - shift) / sigma);
        let (more, less) = if from > 0.0 { (from, to) } else { (-to, -from) };
        let (more, less) = (normal::sf(more), normal::sf(less));
        Mass { mass: more - less, error: 1e-12 * more }
    };
    let mut outcomes = Vec::new();
    let mut index = 0.0;
    while index < cells {
        let edge = |index: f64| first + (last - first) * index / cells;
        let (from, to) = (edge(index), edge(index + 1.0));
        index += 1.0;
        let [rest, one, two] = [0.0, 1.0, 2.0].map(|shift| between(from, to, shift));
        let mixed = |moved: Mass, sign: f64| {
            (1.0 - q) * (rest.mass + sign * rest.error) + q * (moved.mass + sign * moved.error)
        };
        let (p, other) = if direction == Direction::Add { (one, two) } else { (two, one) };
        let (mass, against) = (mixed(p, -1.0), mixed(other, 1.0));
        if mass > 0.0 && against > 0.0 {
            let loss = libm::log(mass / against);
            let loss = loss - 1e-14 * (1.0 + libm::fabs(loss));
            outcomes.push(Outcome { loss, mass: mass * (1.0 - 1e-14) });
        }
    }
    DiscretePair::new(outcomes)
}
