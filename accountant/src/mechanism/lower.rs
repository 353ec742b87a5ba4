//! Events lowered to what the engines compose: mixture pairs, one Gaussian, and a chance of plain failure.

use super::coin::{Coin, Truncation};
use super::pair::{Component, Pair};
use super::selection::Selection;
use super::tabulated::Tabulated;
use super::{allocation, fixed, integers, laplace, shuffled};
use crate::{AccountantError, DpEvent, NeighboringRelation, Trials, normal};

/// One direction of a composed event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lowered {
    /// Pairs and how often each takes place.
    pub(crate) pairs: Vec<(Pair, u64)>,
    /// Pairs on finitely many outcomes and how often each takes place.
    pub(crate) tables: Vec<(Tabulated, u64)>,
    /// Selections among trials, known by their Rényi divergences only, and how often each takes place.
    pub(crate) selections: Vec<(Selection, u64)>,
    /// Steps that are one of two pairs by a public coin.
    pub(crate) coins: Vec<Coin>,
    /// Σ μ² of the plain Gaussian mechanisms, which compose to a single one.
    pub(crate) mu_squared: f64,
    /// Probability of a failure that tells the data sets apart for certain.
    pub(crate) failure: f64,
}

impl Lowered {
    /// Uses of all pairs together.
    pub(crate) fn uses(&self) -> f64 {
        let pairs: f64 = self.pairs.iter().map(|(_, count)| *count as f64).sum();
        pairs + self.tables.iter().map(|(_, count)| *count as f64).sum::<f64>()
    }

    /// Whether nothing private is used, plain failures aside.
    pub(crate) fn is_free(&self) -> bool {
        self.uses() == 0.0 && self.selections.is_empty() && self.coins.is_empty() && self.mu_squared == 0.0
    }

    /// The same with each use cut where P leaves out at most `tail`.
    pub(crate) fn cut_at_tail(&self, tail: f64) -> Self {
        let pairs = self.pairs.iter().map(|(pair, count)| (pair.cut_at_tail(tail), *count)).collect();
        Self { pairs, ..self.clone() }
    }

    pub(super) fn push_table(&mut self, table: Tabulated, count: u64) {
        if count == 0 || table.outcomes().is_empty() {
            return;
        }
        // A sum too large for a count stays two.
        let fits = |known: &&mut (Tabulated, u64)| known.0 == table && known.1.checked_add(count).is_some();
        if let Some(known) = self.tables.iter_mut().find(fits) {
            known.1 += count;
        } else {
            self.tables.push((table, count));
        }
    }

    pub(super) fn push(&mut self, pair: Pair, count: u64) {
        if count == 0 {
            return;
        }
        let fits = |known: &&mut (Pair, u64)| known.0 == pair && known.1.checked_add(count).is_some();
        if let Some(known) = self.pairs.iter_mut().find(fits) {
            known.1 += count;
        } else {
            self.pairs.push((pair, count));
        }
    }
}

/// What is asked of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Question {
    /// Which data sets are neighbours.
    pub(crate) relation: NeighboringRelation,
    /// How many units they differ by.
    pub(crate) group: u32,
    /// Where an event's cost is only known to lie between two others: the cheaper one, for lower bounds.
    pub(crate) optimistic: bool,
}

impl Question {
    /// For one unit, from above.
    pub(crate) fn new(relation: NeighboringRelation) -> Self {
        Self { relation, group: 1, optimistic: false }
    }
}

/// Both directions of `event`, or the one that stands for both where they are mirror images.
pub(crate) fn lower(event: &DpEvent, question: Question) -> Result<Vec<Lowered>, AccountantError> {
    if !(1..=LARGEST_GROUP).contains(&question.group) {
        return Err(AccountantError::OutOfRange {
            name: "group size",
            value: f64::from(question.group),
            allowed: "1 to 256 units",
        });
    }
    let directions: &[Side] = match question.relation {
        NeighboringRelation::AddOrRemoveOne | NeighboringRelation::ZeroOut => &[Side::Remove, Side::Add],
        NeighboringRelation::ReplaceOne => &[Side::Replace],
    };
    let mut memory = allocation::Memory::default();
    directions
        .iter()
        .map(|&side| {
            let mut visit = Visit {
                memory: &mut memory,
                side,
                question,
                out: Lowered::default(),
                thresholds: Vec::new(),
                threshold_mu_squared: 0.0,
            };
            visit.descend(event, 1, 0)?;
            visit.fail_at_thresholds();
            Ok(visit.out)
        })
        .collect()
}

/// Whether some part of `event` has a cost that is only known to lie between two others.
pub(crate) fn is_two_sided(event: &DpEvent) -> bool {
    match event {
        DpEvent::ShuffledGaussian { .. }
        | DpEvent::TruncatedPoissonSampledGaussian { .. }
        | DpEvent::FixedSizeSampledGaussian { .. }
        | DpEvent::BallsInBinsGaussian { .. }
        | DpEvent::Laplace { .. }
        | DpEvent::DiscreteGaussian { .. }
        | DpEvent::PrivateSelection { .. } => true,
        DpEvent::Composed { events } => events.iter().any(is_two_sided),
        DpEvent::SelfComposed { event, .. } => is_two_sided(event),
        _ => false,
    }
}

/// Which data set the attacker's hypothesis P comes from.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Side {
    /// P has the unit, Q has not.
    Remove,
    /// Q has the unit, P has not.
    Add,
    /// Both have a unit, in opposite directions.
    Replace,
}

/// Nesting beyond this is refused, so that a hostile file cannot exhaust the stack.
const DEEPEST: usize = 64;

const LARGEST_GROUP: u32 = 256;

/// Beyond this the binomial's whole numbers and their sums would lose digits.
pub(super) const LARGEST_POPULATION: u64 = 1_000_000_000_000;

/// A batch that is nearly always cut is no Poisson batch, and the chance of one that is not would lose its digits.
const MOST_FULL: f64 = 0.99;

struct Visit<'a> {
    memory: &'a mut allocation::Memory,
    side: Side,
    question: Question,
    out: Lowered,
    /// What each threshold lets pass of one unit alone, and how often it is used.
    thresholds: Vec<(f64, u64)>,
    /// Σ 1/σ² of the weights that thresholds look at.
    threshold_mu_squared: f64,
}

impl Visit<'_> {
    fn descend(&mut self, event: &DpEvent, count: u64, depth: usize) -> Result<(), AccountantError> {
        if depth > DEEPEST {
            return Err(too_deep(depth));
        }
        match event {
            DpEvent::Gaussian { noise_multiplier } => self.gaussian(*noise_multiplier, count as f64),
            DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier } => {
                self.poisson(*sampling_probability, *noise_multiplier, count)
            }
            DpEvent::TruncatedPoissonSampledGaussian {
                sampling_probability,
                noise_multiplier,
                units,
                largest_batch,
            } => {
                let sampled = (*sampling_probability, *noise_multiplier);
                self.truncated(sampled, *units, *largest_batch, count)
            }
            DpEvent::FixedSizeSampledGaussian { sample_size, population, noise_multiplier } => {
                let at = (self.side, self.question);
                fixed::push(&mut self.out, at, (*sample_size, *population), *noise_multiplier, count)
            }
            DpEvent::BallsInBinsGaussian { noise_multiplier, batches, epochs } => {
                let at = (self.side, self.question);
                let count = times(count, *epochs)?;
                allocation::push((&mut self.out, &mut *self.memory), at, *noise_multiplier, *batches, count)
            }
            DpEvent::ShuffledGaussian { noise_multiplier, batches, epochs } => {
                self.shuffled(*noise_multiplier, *batches, times(count, *epochs)?)
            }
            DpEvent::Laplace { noise_multiplier } => {
                let scale = positive("noise_multiplier", *noise_multiplier)?;
                let table = laplace::table(self.moves() / scale, self.question.optimistic)?;
                self.out.push_table(table, count);
                Ok(())
            }
            DpEvent::DiscreteGaussian { standard_deviation, sensitivity } => {
                let moved = self.moves() * *sensitivity as f64;
                let (table, lost) = integers::table(*standard_deviation, moved, self.question.optimistic)?;
                self.out.push_table(table, count);
                self.out.failure += lost * count as f64;
                Ok(())
            }
            DpEvent::PrivateSelection { event, trials } => self.selection(event, *trials, count, depth),
            DpEvent::ThresholdedHistogram { noise_multiplier, threshold_delta } => {
                self.threshold(*threshold_delta, *noise_multiplier, count)?;
                self.gaussian(*noise_multiplier, count as f64)
            }
            DpEvent::Composed { events } => {
                for event in events {
                    self.descend(event, count, depth + 1)?;
                }
                Ok(())
            }
            DpEvent::SelfComposed { event, count: more } => {
                self.descend(event, times(count, *more)?, depth + 1)
            }
        }
    }

    /// How far the group moves a query, in sensitivities of one unit.
    fn moves(&self) -> f64 {
        // An exchanged unit is taken out and another put in.
        let exchanged = if self.side == Side::Replace { 2.0 } else { 1.0 };
        exchanged * self.displacement(self.question.group)
    }

    /// From above full participation, once an epoch; from below `shuffled` has the proof.
    fn shuffled(&mut self, noise_multiplier: f64, batches: u64, count: u64) -> Result<(), AccountantError> {
        let bins = positive("batches", batches as f64)?;
        if !self.question.optimistic {
            return self.gaussian(noise_multiplier, count as f64);
        }
        let sigma = positive("noise_multiplier", noise_multiplier)?;
        let replaced = self.question.relation == NeighboringRelation::ReplaceOne;
        // Others that contribute against an exchanged unit are worth half the noise.
        let used = if replaced { 0.5 * sigma } else { sigma };
        if self.question.group > 1 || batches == 1 || !allocation::holds(used, batches) {
            // The sum of an epoch's outputs has σ²·batches of noise, whatever batch a unit fell into.
            return self.gaussian(noise_multiplier, count as f64 / bins);
        }
        let one = Question { relation: NeighboringRelation::ZeroOut, ..self.question };
        let mut alone = Lowered::default();
        allocation::push((&mut alone, &mut *self.memory), (self.side, one), used, batches, 1)?;
        let largest = shuffled::largest(sigma, batches, self.side == Side::Add);
        let zeroed = self.question.relation == NeighboringRelation::ZeroOut;
        for (table, _) in alone.tables {
            let better = zeroed && largest.log_moment(1.0) > table.log_moment(1.0);
            self.out.push_table(if better { largest.clone() } else { table }, count);
        }
        Ok(())
    }

    /// `selection` has the proof.
    fn selection(
        &mut self,
        event: &DpEvent,
        trials: Trials,
        count: u64,
        depth: usize,
    ) -> Result<(), AccountantError> {
        if holds_selection(event, depth)? {
            return Err(AccountantError::Unsupported {
                event: "private_selection",
                question: "selections within selections",
            });
        }
        if let Trials::Fixed { count: fixed } = trials {
            let all = if self.question.optimistic { fixed.min(1) } else { fixed };
            return self.descend(event, times(count, all)?, depth + 1);
        }
        let above = Question { optimistic: false, ..self.question };
        let selection = Selection::new(lower(event, above)?, trials)?;
        if !self.question.optimistic {
            if count > 0 {
                self.out.selections.push((selection, count));
            }
            return Ok(());
        }
        match trials {
            // Without a trial nothing is released.
            Trials::Poisson { .. } => Ok(()),
            _ => self.descend(event, count, depth + 1),
        }
    }

    /// How far `units` of the group that take part move a sum, in sensitivities of one unit.
    fn displacement(&self, units: u32) -> f64 {
        f64::from(units)
    }

    fn gaussian(&mut self, noise_multiplier: f64, count: f64) -> Result<(), AccountantError> {
        let sigma = positive("noise_multiplier", noise_multiplier)?;
        let mu = self.moves() / sigma;
        self.out.mu_squared += mu * mu * count;
        Ok(())
    }

    fn threshold(
        &mut self,
        threshold_delta: f64,
        noise_multiplier: f64,
        count: u64,
    ) -> Result<(), AccountantError> {
        if !(0.0..1.0).contains(&threshold_delta) {
            return Err(AccountantError::OutOfRange {
                name: "threshold_delta",
                value: threshold_delta,
                allowed: "0 <= threshold_delta < 1",
            });
        }
        let sigma = positive("noise_multiplier", noise_multiplier)?;
        self.thresholds.push((threshold_delta, count));
        self.threshold_mu_squared += count as f64 / (sigma * sigma);
        Ok(())
    }

    /// Adds the probability with which thresholds fail.
    ///
    /// # Proof note
    /// For a group of k units let S be the items that nobody else holds. Were their weights zero throughout, one of those
    /// that a given unit holds would pass a threshold with probability `threshold_delta` at the most: less weight, less
    /// chance. So one of S would with k times that. What the group adds on S moves each round's weights by k in L2 norm at
    /// the most (triangle inequality), so that all rounds together are a Gaussian mechanism of μ = k √(Σ 1/σ²), adaptive
    /// or not (Dong, Roth & Su 2022, composition), and make an event of probability p one of Φ(Φ⁻¹(p) + μ) at the most.
    /// The sum goes over all rounds, since a threshold may look at the noisy weights of those before.
    fn fail_at_thresholds(&mut self) {
        let group = self.question.group;
        if group > 1 && self.question.optimistic {
            // Known from above only.
            return;
        }
        let units = f64::from(group);
        let mu = units * self.threshold_mu_squared.sqrt();
        for &(threshold_delta, count) in &self.thresholds {
            let failure = if group == 1 {
                threshold_delta
            } else {
                // The normal law is accurate to 1e-13, its inverse to 1e-13 of a standard deviation.
                normal::sf(normal::isf((units * threshold_delta).min(1.0)) - mu) * (1.0 + 1e-10)
            };
            // 1 − (1−f)(1−d)^count, and the union bound count·d is never below it.
            self.out.failure += failure * count as f64;
        }
    }

    fn poisson(
        &mut self,
        probability: f64,
        noise_multiplier: f64,
        count: u64,
    ) -> Result<(), AccountantError> {
        if !(0.0..=1.0).contains(&probability) {
            return Err(AccountantError::OutOfRange {
                name: "sampling_probability",
                value: probability,
                allowed: "0 <= sampling_probability <= 1",
            });
        }
        let sigma = positive("noise_multiplier", noise_multiplier)?;
        if probability == 1.0 {
            return self.gaussian(noise_multiplier, count as f64);
        }
        if probability == 0.0 || count == 0 {
            return Ok(());
        }
        self.out.push(self.sampled_pair(probability, sigma), count);
        Ok(())
    }

    fn sampled_pair(&self, probability: f64, sigma: f64) -> Pair {
        let moved = binomial(self.question.group, probability);
        match self.side {
            Side::Remove => Pair::new(sigma, moved, Vec::new()),
            Side::Add => Pair::new(sigma, Vec::new(), moved),
            Side::Replace => Pair::new(sigma, moved.clone(), moved),
        }
    }

    /// `coin` has the proof.
    fn truncated(
        &mut self,
        (probability, noise_multiplier): (f64, f64),
        units: u64,
        largest: u64,
        count: u64,
    ) -> Result<(), AccountantError> {
        const EVENT: &str = "truncated_poisson_sampled_gaussian";
        if self.question.relation == NeighboringRelation::AddOrRemoveOne {
            let question = "add_or_remove_one, under which the number of units is not public";
            return Err(AccountantError::Unsupported { event: EVENT, question });
        }
        if self.question.group > 1 {
            return Err(AccountantError::Unsupported { event: EVENT, question: "groups of several units" });
        }
        let allowed =
            |name, value: u64, allowed| AccountantError::OutOfRange { name, value: value as f64, allowed };
        if !(1..=LARGEST_POPULATION).contains(&units) {
            return Err(allowed("units", units, "1 to 1e12 units"));
        }
        if largest == 0 {
            return Err(allowed("largest_batch", largest, "at least 1"));
        }
        let sampled = probability > 0.0 && probability < 1.0;
        if largest >= units || !sampled && probability != 1.0 {
            return self.poisson(probability, noise_multiplier, count);
        }
        if !sampled {
            return Err(AccountantError::OutOfRange {
                name: "sampling_probability",
                value: probability,
                allowed: "below 1 where batches are cut to a largest size",
            });
        }
        let sigma = positive("noise_multiplier", noise_multiplier)?;
        let chances = Truncation::new(units, probability, largest);
        if self.question.optimistic {
            return self.poisson(chances.kept, noise_multiplier, count);
        }
        if chances.full.is_nan() || chances.full >= MOST_FULL {
            return Err(AccountantError::OutOfRange {
                name: "largest_batch",
                value: largest as f64,
                allowed: "so large that batches are filled less than 99 times out of 100",
            });
        }
        if count > 0 {
            self.coin(Coin {
                probability: chances.full.max(f64::MIN_POSITIVE),
                whole: self.sampled_pair(probability, sigma),
                cut: chances.cut_pair(sigma),
                count,
            });
        }
        Ok(())
    }

    fn coin(&mut self, coin: Coin) {
        let same = |known: &&mut Coin| {
            known.probability == coin.probability && known.whole == coin.whole && known.cut == coin.cut
        };
        if let Some(known) = self.out.coins.iter_mut().find(same) {
            known.count = known.count.saturating_add(coin.count);
        } else {
            self.out.coins.push(coin);
        }
    }
}

/// Whether `event` holds a selection; refuses what is nested too deeply.
fn holds_selection(event: &DpEvent, depth: usize) -> Result<bool, AccountantError> {
    if depth > DEEPEST {
        return Err(too_deep(depth));
    }
    match event {
        DpEvent::PrivateSelection { .. } => Ok(true),
        DpEvent::SelfComposed { event, .. } => holds_selection(event, depth + 1),
        DpEvent::Composed { events } => {
            events.iter().try_fold(false, |found, event| Ok(found || holds_selection(event, depth + 1)?))
        }
        _ => Ok(false),
    }
}

fn too_deep(depth: usize) -> AccountantError {
    AccountantError::OutOfRange {
        name: "nesting of events",
        value: depth as f64,
        allowed: "at most 64 levels",
    }
}

/// How many of `units` take part, when each does with `probability`: all but the possibility of none.
fn binomial(units: u32, probability: f64) -> Vec<Component> {
    let odds = probability / (1.0 - probability);
    let mut weight = libm::exp(f64::from(units) * libm::log1p(-probability));
    let mut parts = Vec::new();
    for taking_part in 1..=units {
        weight *= odds * f64::from(units - taking_part + 1) / f64::from(taking_part);
        if units == 1 {
            weight = probability;
        }
        if weight > 0.0 {
            parts.push(Component { weight, shift: f64::from(taking_part) });
        }
    }
    parts
}

fn times(count: u64, more: u64) -> Result<u64, AccountantError> {
    count.checked_mul(more).ok_or(AccountantError::OutOfRange {
        name: "count",
        value: count as f64 * more as f64,
        allowed: "fewer than 2^64 repetitions in all",
    })
}

pub(super) fn positive(name: &'static str, value: f64) -> Result<f64, AccountantError> {
    if value > 0.0 && value < f64::INFINITY {
        Ok(value)
    } else {
        Err(AccountantError::OutOfRange { name, value, allowed: "a finite number above 0" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_whose_sum_is_too_large_are_both_kept() {
        let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.1, noise_multiplier: 2.0 };
        let all = DpEvent::SelfComposed { event: Box::new(step), count: u64::MAX };
        let twice = DpEvent::Composed { events: vec![all.clone(), all] };
        let sides = lower(&twice, Question::new(NeighboringRelation::AddOrRemoveOne)).unwrap();
        assert!(sides.iter().all(|side| side.uses() >= 2.0 * u64::MAX as f64));
    }
}
