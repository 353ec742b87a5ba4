//! Dominating pairs: the worst case of an event, as two distributions on a line.
//!
//! A pair (P, Q) dominates a mechanism if, for every ε and all neighbouring data sets, the hockey-stick divergence
//! δ(ε) of the pair is at least that of the mechanism's outputs (Zhu, Dong & Wang 2022, Definition 7,
//! <https://arxiv.org/abs/2106.08567>). The pair of a composition is the product of the pairs of its parts (their
//! Theorem 10). `NOTATION.md` defines the symbols.

mod allocation;
pub(crate) mod chernoff;
mod concentrated;
mod cyclic_poisson;
mod discrete;
mod discrete_gaussian;
mod epsilon_delta;
mod fixed_size;
mod from_event;
mod gaussian;
mod laplace;
mod mixture;
pub(crate) mod moment;
mod poisson;
pub(crate) mod quadrature;
mod randomized_response;
mod selection;
mod shuffled;
mod thresholds;
mod truncated;

pub(crate) use discrete::{DiscretePair, Outcome};
pub(crate) use from_event::{dominating_pairs, has_alternative, has_separate_bounds};
pub(crate) use mixture::{Component, MixturePair};
pub(crate) use selection::Selection;
pub(crate) use truncated::TruncationMixture;

use crate::{AccountantError, Delta, NeighboringRelation, Result};
use allocation::EpochCache;
use fixed_size::{Orders, Smoothing};
use thresholds::Thresholds;

/// The dominating pair of a composition in one direction: a product of independent factors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DominatingPair {
    /// Laws of one kind are grouped, in the order of [`Law::rank`], whatever the order of the
    /// events.
    factors: Vec<Factor>,
    /// Σ μ² of the plain Gaussian mechanisms, which compose to a single one.
    mu_squared: f64,
    /// Probability of an outcome that tells the data sets apart for certain.
    failure: f64,
}

/// A pair and how often it is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Factor {
    pub(crate) law: Law,
    pub(crate) count: u64,
}

/// The dominating pair of a single use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Law {
    /// Gaussian mixtures on a line.
    Mixture(MixturePair),
    /// Finitely many outcomes.
    Discrete(DiscretePair),
    /// The best of several trials, of which only the Rényi divergences are known.
    Selection(Selection),
    /// A mechanism whose Rényi divergence of order α is at most α times this.
    Concentrated(f64),
    /// One of two mixtures, chosen by a public coin.
    Truncated(TruncationMixture),
}

impl Law {
    fn rank(&self) -> u8 {
        match self {
            Self::Mixture(_) => 0,
            Self::Discrete(_) => 1,
            Self::Selection(_) | Self::Concentrated(_) => 2,
            Self::Truncated(_) => 3,
        }
    }
}

/// The laws of which a pair is composed. They decide which engines apply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Composition<'a> {
    /// P = Q.
    Trivial,
    /// Gaussian mechanisms only, which compose to one of this μ.
    Gaussian { mu: f64 },
    /// A single use of a mixture.
    OneMixture(&'a MixturePair),
    /// A single use of a discrete pair.
    OneDiscrete(&'a DiscretePair),
    /// Several uses of mixtures, and perhaps a Gaussian.
    Mixtures,
    /// The laws of `Mixtures`, and at least one discrete pair.
    WithDiscrete,
    /// The laws of `WithDiscrete`, and at least one of which moments alone are known.
    WithMoments,
    /// The laws of `WithMoments`, and at least one step that is truncated by a public coin.
    WithTruncation,
}

impl DominatingPair {
    pub(crate) fn composition(&self) -> Composition<'_> {
        match (self.factors.as_slice(), self.mu_squared == 0.0) {
            ([], true) => return Composition::Trivial,
            ([], false) => return Composition::Gaussian { mu: self.mu() },
            ([Factor { law: Law::Mixture(pair), count: 1 }], true) => return Composition::OneMixture(pair),
            ([Factor { law: Law::Discrete(pair), count: 1 }], true) => return Composition::OneDiscrete(pair),
            _ => {}
        }
        match self.factors.iter().map(|factor| factor.law.rank()).max() {
            Some(0) | None => Composition::Mixtures,
            Some(1) => Composition::WithDiscrete,
            Some(2) => Composition::WithMoments,
            Some(_) => Composition::WithTruncation,
        }
    }

    pub(crate) fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// The Gaussian mixtures and how often each is used.
    pub(crate) fn mixtures(&self) -> impl Iterator<Item = (&MixturePair, u64)> {
        self.factors.iter().filter_map(|factor| match &factor.law {
            Law::Mixture(pair) => Some((pair, factor.count)),
            _ => None,
        })
    }

    pub(crate) fn mu_squared(&self) -> f64 {
        self.mu_squared
    }

    /// μ of the Gaussian part.
    pub(crate) fn mu(&self) -> f64 {
        f64::sqrt(self.mu_squared)
    }

    /// Returns ρ of zero-concentrated differential privacy, if the Rényi divergence of every law grows in proportion to the order.
    pub(crate) fn concentration(&self) -> Option<f64> {
        self.factors.iter().try_fold(0.5 * self.mu_squared, |sum, factor| match factor.law {
            Law::Concentrated(rho) => Some(sum + factor.count as f64 * rho),
            _ => None,
        })
    }

    pub(crate) fn failure(&self) -> f64 {
        self.failure
    }

    /// Returns the part of `delta` that the pair's own failures leave.
    pub(crate) fn delta_left(&self, delta: Delta) -> Result<f64> {
        let left = delta.get() - self.failure;
        if left > 0.0 {
            Ok(left)
        } else {
            Err(AccountantError::out_of_range(
                "delta",
                delta.get(),
                "above the event's own failure probability",
            ))
        }
    }

    /// Uses of all factors together.
    pub(crate) fn uses(&self) -> f64 {
        self.factors.iter().map(|factor| factor.count as f64).sum()
    }

    /// The least upper bound of the privacy loss of all mixtures together, +∞ where there is none.
    pub(crate) fn highest_mixture_loss(&self) -> f64 {
        self.mixtures().map(|(pair, count)| count as f64 * pair.highest_loss()).sum()
    }

    /// The pair with each use of a mixture cut where P leaves out at most `tail`.
    pub(crate) fn cut_at_tail(&self, tail: f64) -> Self {
        let cut = |factor: &Factor| match &factor.law {
            Law::Mixture(pair) => Factor { law: Law::Mixture(pair.cut_at_tail(tail)), count: factor.count },
            _ => factor.clone(),
        };
        Self { factors: self.factors.iter().map(cut).collect(), ..*self }
    }

    /// Returns a pair of few mixtures that costs about as much, or `None` if it has few already: runs of neighbouring phases, each as its
    /// middle one. It serves to choose where the whole pair is evaluated, and bounds nothing.
    pub(crate) fn sketch(&self) -> Option<Self> {
        let all_mixtures = self.factors.iter().all(|factor| matches!(factor.law, Law::Mixture(_)));
        if self.factors.len() <= MANY_PHASES || !all_mixtures {
            return None;
        }
        let middle = |run: &[Factor]| Factor {
            law: run[run.len() / 2].law.clone(),
            count: run.iter().fold(0, |sum, factor| sum.saturating_add(factor.count)),
        };
        let runs = self.factors.chunks(self.factors.len().div_ceil(MANY_PHASES / 2));
        Some(Self { factors: runs.map(middle).collect(), ..*self })
    }

    /// Returns a pair of few mixtures that costs no less, or with `costliest` unset no more: each of a run of neighbouring phases becomes
    /// the run's extreme. None if the pair has few phases, or others than of equal displacements.
    pub(crate) fn simplified(&self, costliest: bool) -> Option<Self> {
        if self.factors.len() <= FAR_TOO_MANY_PHASES || self.sketch().is_none() {
            return None;
        }
        let mut simple = Self { factors: Vec::new(), ..*self };
        for run in self.factors.chunks(self.factors.len().div_ceil(RUNS)) {
            let pairs: Vec<&MixturePair> = run
                .iter()
                .filter_map(|factor| if let Law::Mixture(pair) = &factor.law { Some(pair) } else { None })
                .collect();
            let count = run.iter().try_fold(0_u64, |sum, factor| sum.checked_add(factor.count))?;
            simple.push(Law::Mixture(MixturePair::extreme(&pairs, costliest)?), count);
        }
        Some(simple)
    }

    /// Returns the pair without its truncated steps, and these steps.
    pub(crate) fn split_truncated(&self) -> (Self, Vec<(&TruncationMixture, u64)>) {
        let mut truncated = Vec::new();
        let mut rest = Self { factors: Vec::new(), ..*self };
        for factor in &self.factors {
            match &factor.law {
                Law::Truncated(mixture) => truncated.push((mixture, factor.count)),
                _ => rest.factors.push(factor.clone()),
            }
        }
        (rest, truncated)
    }

    /// Adds `count` uses of `law`.
    pub(crate) fn push(&mut self, law: Law, count: u64) {
        let empty = matches!(&law, Law::Discrete(pair) if pair.outcomes().is_empty());
        if count == 0 || empty {
            return;
        }
        // If the sum of two counts overflows, they stay separate factors.
        let fits = |known: &&mut Factor| known.law == law && known.count.checked_add(count).is_some();
        if let Some(known) = self.factors.iter_mut().find(fits) {
            known.count += count;
            return;
        }
        let place = self.factors.partition_point(|known| known.law.rank() <= law.rank());
        self.factors.insert(place, Factor { law, count });
    }

    /// Adds Gaussian mechanisms whose μ² sum to `mu_squared`.
    fn push_mu_squared(&mut self, mu_squared: f64) {
        self.mu_squared += mu_squared;
    }

    fn push_failure(&mut self, probability: f64, count: u64) {
        self.failure += probability * count as f64;
    }
}

/// Number of different mixtures from which a search is made on a sketch of them.
pub(crate) const MANY_PHASES: usize = 40;

/// Number of different mixtures from which an engine that composes them one by one takes minutes, and the number of runs of them that it
/// sees instead.
const FAR_TOO_MANY_PHASES: usize = 100;
const RUNS: usize = 20;

/// The largest number of units of a group, or of examples of them.
const LARGEST_GROUP: u32 = 256;

/// A request for dominating pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PairRequest {
    /// The neighbouring relation.
    pub(crate) relation: NeighboringRelation,
    /// Number of units in which neighbouring data sets differ.
    pub(crate) group_size: u32,
    pub(crate) bound: Bound,
    /// Asks for the second pair of an event that has two for the same bound, and says which failure probability it may add in all. Either
    /// pair alone gives valid bounds.
    pub(crate) alternative: Option<f64>,
}

/// The side from which a pair bounds the event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// A pair that dominates the event.
    Upper,
    /// A pair that the event attains, or a cheaper one, for lower bounds.
    Lower,
}

impl PairRequest {
    /// The dominating pairs for one unit.
    pub(crate) fn new(relation: NeighboringRelation) -> Self {
        Self { relation, group_size: 1, bound: Bound::Upper, alternative: None }
    }

    /// Requests pairs for a lower bound.
    pub(crate) fn for_lower_bound(self) -> Self {
        Self { bound: Bound::Lower, ..self }
    }

    /// Requests the second pairs.
    pub(crate) fn alternative(self, failure: f64) -> Self {
        Self { alternative: Some(failure), ..self }
    }

    pub(crate) fn is_lower(&self) -> bool {
        self.bound == Bound::Lower
    }
}

/// The assignment of two neighbouring data sets to P and Q.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Direction {
    /// P has the unit, Q does not.
    Remove,
    /// Q has the unit, P does not.
    Add,
    /// Both have a unit, in opposite directions.
    Replace,
}

/// A mechanism whose dominating pair is known: the parameters of one use.
trait Mechanism {
    /// Adds the factors of `count` uses.
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()>;
}

/// Collects the factors of one direction.
struct Builder<'a> {
    view: View,
    pair: DominatingPair,
    /// Shared by both directions.
    epochs: &'a mut EpochCache,
    orders: &'a mut Orders,
    thresholds: Thresholds,
    smoothing: Smoothing,
}

/// A request in one direction.
#[derive(Clone, Copy, Debug)]
struct View {
    request: PairRequest,
    direction: Direction,
}

impl View {
    /// Returns how far the group moves a query, in sensitivities of one unit.
    fn displacement(&self) -> f64 {
        // An exchanged unit is taken out and another put in.
        let exchanged = if self.direction == Direction::Replace { 2.0 } else { 1.0 };
        exchanged * f64::from(self.request.group_size)
    }

    /// Refuses groups for events whose parameters do not determine a group's pair.
    fn single_unit(&self, event: &'static str) -> Result<()> {
        if self.request.group_size > 1 {
            Err(AccountantError::Unsupported { event, question: "groups of several units" })
        } else {
            Ok(())
        }
    }
}

fn positive(name: &'static str, value: f64) -> Result<f64> {
    if value > 0.0 && value < f64::INFINITY {
        Ok(value)
    } else {
        Err(AccountantError::out_of_range(name, value, "a finite number above 0"))
    }
}
