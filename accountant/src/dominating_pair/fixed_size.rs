//! Batches of a fixed size, drawn without replacement.
//!
//! # Proof note
//! B of N units are drawn; q = B/N. Couple a data set that contains the unit x with one that does not: draw a batch S of B
//! other units, and with probability q let x replace a uniform member y of S. Given S and y, the sum is displaced from
//! that of S by x − y with probability q, and otherwise not at all.
//! * Add or remove: without x the batch is S. Since ‖x − y‖ ≤ 2, the pair is that of Poisson sampling at q with displacement
//!   2. It is attained when all other units contribute −e and x contributes e, so both bounds are exact. A data set of more
//!   than N units has a smaller q, at which the pair costs less.
//! * Replace-one and zero-out: the displacements are u = x − y and u′ = x′ − y (x′ = 0 under zero-out), with the same
//!   probability, and ‖u‖, ‖u′‖ and ‖u − u′‖ are at most 2. Write H_a for the hockey-stick divergence at e^ε = a. For a = 1 + q(b − 1)
//!   ≥ 1 and β = a/b, advanced joint convexity (Balle, Barthe & Gaboardi 2018, Theorem 2, <https://arxiv.org/abs/1807.01647>) gives
//!   H_a((1−q)N(0)+qN(u) ‖ (1−q)N(0)+qN(u′)) ≤ q·((1−β)·H_b(N(u) ‖ N(0)) + β·H_b(N(u) ‖ N(u′))) ≤ q·H_b(N(2) ‖ N(0)),
//!   which is what the add-or-remove pair has at a. The same holds with P and Q exchanged. Take the positive losses of that
//!   pair, their mirror image as negative losses, and the remaining mass at 0: this law dominates at every ε (after Zhu, Dong
//!   & Wang 2022, <https://arxiv.org/abs/2106.08567>).
//! * From below: let all other units contribute −e and x contribute e. Replace-one with x′ = −e has the add-or-remove pair.
//!   Zero-out has displacements 2 and 1 with probability q (`zeroed_out`). No single data set attains the upper law (Lebeda et
//!   al. 2024, <https://arxiv.org/abs/2405.20769>), so the two bounds do not quite meet.
//!
//! By joint convexity the worst S and y bound all others. The mirrored law is cut into cells of x; each cell is split onto its
//! two ends with its P-mass and Q-mass preserved, which only helps the attacker.

use crate::numeric::normal;
use crate::{AccountantError, NeighboringRelation, Result};

use super::quadrature::{Quadrature, RELATIVE};
use super::{Builder, Component, Direction, DiscretePair, Law, Mechanism, MixturePair, Outcome, positive};

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
            (NeighboringRelation::ZeroOut | NeighboringRelation::ReplaceOne, false) => {
                let (law, lost) = mirrored(sigma, q);
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

/// The positive losses of the pair of displacement 2 and their mirror image, and the P-mass that is left out.
fn mirrored(sigma: f64, q: f64) -> (DiscretePair, f64) {
    let pair = MixturePair::new(sigma, vec![Component { weight: q, shift: 2.0 }], Vec::new());
    let quadrature = Quadrature::new(&pair);
    // The loss is 0 in the middle between 0 and the displacement.
    let (first, last) = (1.0, 2.0 + sigma * normal::isf(TAIL));
    let cells = libm::ceil((last - first) / (0.01 * sigma.min(sigma * sigma))).clamp(200.0, 6000.0);
    let edge = |index: f64| if index < cells { first + (last - first) * index / cells } else { last };
    let mut points = vec![(0.0, 0.0)];
    let mut index = 0.0;
    while index < cells {
        let (from, to) = (edge(index), edge(index + 1.0));
        let (low, high) = (points[points.len() - 1].0, pair.loss(to));
        index += 1.0;
        let width = high - low;
        let cell = quadrature.cell(from, to, low, width);
        let before = points.len() - 1;
        if width > 0.0 {
            points[before].1 += (cell.deficit + cell.slack) / libm::expm1(width);
            points.push((high, (cell.excess + cell.slack) / -libm::expm1(-width)));
        } else {
            points[before].1 += cell.mass + cell.slack;
        }
    }
    let more = 1.0 + RELATIVE;
    let rest = 1.0 - pair.p_above(first) - normal::sf(first / sigma);
    let mut outcomes = vec![Outcome { loss: 0.0, mass: rest.max(0.0) + 4.0 * f64::EPSILON }];
    outcomes.extend(points.iter().map(|(loss, mass)| Outcome { loss: *loss, mass: mass * more }));
    outcomes.extend(
        points.iter().map(|(loss, mass)| Outcome { loss: -loss, mass: mass * libm::exp(-loss) * more }),
    );
    let top = points[points.len() - 1].0;
    outcomes.push(Outcome { loss: -top, mass: normal::sf(last / sigma) * more });
    (DiscretePair::new(outcomes), pair.p_above(last) * more)
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
    let cells = libm::ceil((last - first) / (0.02 * sigma.min(sigma * sigma))).clamp(400.0, 6000.0);
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
