//! Walks an event and collects the factors of its dominating pair.

use super::allocation::{BallsInBins, EpochCache};
use super::concentrated::Concentrated;
use super::cyclic_poisson::CyclicPoisson;
use super::discrete_gaussian::DiscreteGaussian;
use super::epsilon_delta::EpsilonDelta;
use super::fixed_size::{FixedSize, Orders, Smoothing};
use super::gaussian::Gaussian;
use super::laplace::{Laplace, SampledLaplace};
use super::poisson::Poisson;
use super::randomized_response::RandomizedResponse;
use super::shuffled::Shuffled;
use super::thresholds::Thresholds;
use super::truncated::TruncatedPoisson;
use super::{
    Builder, Direction, DominatingPair, LARGEST_GROUP, Law, Mechanism, PairRequest, Selection, View,
};
use crate::{AccountantError, DpEvent, NeighboringRelation, Result, Trials};

/// Depth from which nested events are refused, so that a hostile file cannot exhaust the stack.
const DEEPEST: usize = 64;

/// Returns the pairs of `event` in both directions, or a single pair if they are mirror images.
pub(crate) fn dominating_pairs(event: &DpEvent, request: PairRequest) -> Result<Vec<DominatingPair>> {
    if !(1..=LARGEST_GROUP).contains(&request.group_size) {
        let given = f64::from(request.group_size);
        return Err(AccountantError::out_of_range("group size", given, "1 to 256 units"));
    }
    let directions: &[Direction] = match request.relation {
        NeighboringRelation::AddOrRemoveOne | NeighboringRelation::ZeroOut => {
            &[Direction::Remove, Direction::Add]
        }
        NeighboringRelation::ReplaceOne => &[Direction::Replace],
    };
    let (mut epochs, mut orders) = (EpochCache::default(), Orders::default());
    directions
        .iter()
        .map(|&direction| {
            let mut builder = Builder {
                view: View { request, direction },
                epochs: &mut epochs,
                orders: &mut orders,
                pair: DominatingPair::default(),
                thresholds: Thresholds::default(),
                smoothing: Smoothing::default(),
            };
            builder.add(event, 1, 0)?;
            builder.thresholds.add_failures(&mut builder.pair, request);
            if let Some((law, lost)) = builder.smoothing.law(direction) {
                builder.pair.push(Law::Discrete(law), 1);
                builder.pair.push_failure(lost, 1);
            }
            Ok(builder.pair)
        })
        .collect()
}

/// Whether some part of `event` has one pair for upper bounds and another for lower ones.
pub(crate) fn has_separate_bounds(event: &DpEvent) -> bool {
    match event {
        DpEvent::ShuffledGaussian { .. }
        | DpEvent::TruncatedPoissonSampledGaussian { .. }
        | DpEvent::FixedSizeSampledGaussian { .. }
        | DpEvent::BallsInBinsGaussian { .. }
        | DpEvent::Laplace { .. }
        | DpEvent::PoissonSampledLaplace { .. }
        | DpEvent::RandomizedResponse { .. }
        | DpEvent::EpsilonDelta { .. }
        | DpEvent::DiscreteGaussian { .. }
        | DpEvent::ZeroConcentrated { .. }
        | DpEvent::PrivateSelection { .. } => true,
        DpEvent::Composed { events } => events.iter().any(has_separate_bounds),
        DpEvent::SelfComposed { event, .. } => has_separate_bounds(event),
        DpEvent::Gaussian { .. }
        | DpEvent::PoissonSampledGaussian { .. }
        | DpEvent::PoissonSampledExamplesGaussian { .. }
        | DpEvent::CyclicPoissonSampledGaussian { .. }
        | DpEvent::ThresholdedHistogram { .. } => false,
    }
}

/// Whether some part of `event` has two pairs for the requested bound.
pub(crate) fn has_alternative(event: &DpEvent, request: PairRequest) -> bool {
    match event {
        DpEvent::FixedSizeSampledGaussian { .. } => request.relation != NeighboringRelation::AddOrRemoveOne,
        DpEvent::BallsInBinsGaussian { .. } => {
            request.relation == NeighboringRelation::ReplaceOne && request.is_lower()
        }
        DpEvent::Composed { events } => events.iter().any(|event| has_alternative(event, request)),
        DpEvent::SelfComposed { event, .. } => has_alternative(event, request),
        _ => false,
    }
}

impl Builder<'_> {
    /// Adds `count` uses of `event`.
    fn add(&mut self, event: &DpEvent, count: u64, depth: usize) -> Result<()> {
        if depth > DEEPEST {
            return Err(too_deep(depth));
        }
        match *event {
            DpEvent::Gaussian { noise_multiplier } => Gaussian { noise_multiplier }.add_to(self, count),
            DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier } => {
                Poisson::of_units(sampling_probability, noise_multiplier).add_to(self, count)
            }
            DpEvent::PoissonSampledExamplesGaussian {
                sampling_probability,
                noise_multiplier,
                examples_per_unit,
            } => Poisson { sampling_probability, noise_multiplier, examples_per_unit }.add_to(self, count),
            DpEvent::CyclicPoissonSampledGaussian { sampling_probability, noise_multiplier } => {
                CyclicPoisson { sampling_probability, noise_multiplier }.add_to(self, count)
            }
            DpEvent::TruncatedPoissonSampledGaussian {
                sampling_probability,
                noise_multiplier,
                units,
                largest_batch,
            } => {
                let step = TruncatedPoisson { sampling_probability, noise_multiplier, units, largest_batch };
                step.add_to(self, count)
            }
            DpEvent::FixedSizeSampledGaussian { sample_size, population, noise_multiplier } => {
                FixedSize { sample_size, population, noise_multiplier }.add_to(self, count)
            }
            DpEvent::BallsInBinsGaussian { noise_multiplier, batches: bins, epochs } => {
                BallsInBins { noise_multiplier, bins }.add_to(self, times(count, epochs)?)
            }
            DpEvent::ShuffledGaussian { noise_multiplier, batches, epochs } => {
                Shuffled { noise_multiplier, batches }.add_to(self, times(count, epochs)?)
            }
            DpEvent::Laplace { noise_multiplier } => Laplace { noise_multiplier }.add_to(self, count),
            DpEvent::PoissonSampledLaplace { sampling_probability, noise_multiplier } => {
                SampledLaplace { sampling_probability, noise_multiplier }.add_to(self, count)
            }
            DpEvent::RandomizedResponse { noise_parameter, buckets } => {
                RandomizedResponse { noise_parameter, buckets }.add_to(self, count)
            }
            DpEvent::EpsilonDelta { epsilon, delta } => EpsilonDelta { epsilon, delta }.add_to(self, count),
            DpEvent::DiscreteGaussian { standard_deviation, sensitivity } => {
                DiscreteGaussian { standard_deviation, sensitivity }.add_to(self, count)
            }
            DpEvent::ZeroConcentrated { rho } => Concentrated { rho }.add_to(self, count),
            DpEvent::PrivateSelection { ref event, trials } => self.selection(event, trials, count, depth),
            DpEvent::ThresholdedHistogram { noise_multiplier, threshold_delta } => {
                self.thresholds.push(threshold_delta, noise_multiplier, count)?;
                Gaussian { noise_multiplier }.add_to(self, count)
            }
            DpEvent::Composed { ref events } => {
                events.iter().try_for_each(|event| self.add(event, count, depth + 1))
            }
            DpEvent::SelfComposed { ref event, count: more } => {
                self.add(event, times(count, more)?, depth + 1)
            }
        }
    }

    /// Adds `count` uses of a selection. The module `selection` has the proof.
    fn selection(&mut self, event: &DpEvent, trials: Trials, count: u64, depth: usize) -> Result<()> {
        if contains_selection(event, depth)? {
            return Err(AccountantError::Unsupported {
                event: "private_selection",
                question: "selections within selections",
            });
        }
        let from_below = self.view.request.is_lower();
        if let Trials::Fixed { count: fixed } = trials {
            let all = if from_below { fixed.min(1) } else { fixed };
            return self.add(event, times(count, all)?, depth + 1);
        }
        let request = PairRequest::new(self.view.request.relation);
        let request = PairRequest { group_size: self.view.request.group_size, ..request };
        let selection = Selection::new(dominating_pairs(event, request)?, trials)?;
        match trials {
            _ if !from_below => {
                self.pair.push(Law::Selection(selection), count);
                Ok(())
            }
            // Without a trial, nothing is released.
            Trials::Poisson { .. } => Ok(()),
            _ => self.add(event, count, depth + 1),
        }
    }
}

/// Whether `event` contains a selection. Refuses events that are nested too deeply.
fn contains_selection(event: &DpEvent, depth: usize) -> Result<bool> {
    if depth > DEEPEST {
        return Err(too_deep(depth));
    }
    match event {
        DpEvent::PrivateSelection { .. } => Ok(true),
        DpEvent::SelfComposed { event, .. } => contains_selection(event, depth + 1),
        DpEvent::Composed { events } => {
            events.iter().try_fold(false, |found, event| Ok(found || contains_selection(event, depth + 1)?))
        }
        _ => Ok(false),
    }
}

fn too_deep(depth: usize) -> AccountantError {
    AccountantError::out_of_range("nesting of events", depth as f64, "at most 64 levels")
}

fn times(count: u64, more: u64) -> Result<u64> {
    let product = count as f64 * more as f64;
    let overflow = AccountantError::out_of_range("count", product, "fewer than 2^64 repetitions in all");
    count.checked_mul(more).ok_or(overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If one pair served both bounds, the lower bound of such an event would not be one.
    #[test]
    fn events_whose_pair_from_below_is_another_one_are_known() {
        let (noise_multiplier, batches) = (1.5, 4);
        let gaussian = DpEvent::Gaussian { noise_multiplier };
        let laplace = DpEvent::Laplace { noise_multiplier };
        let boxed = |event: &DpEvent| Box::new(event.clone());
        let events = [
            gaussian.clone(),
            DpEvent::PoissonSampledGaussian { sampling_probability: 0.1, noise_multiplier },
            DpEvent::PoissonSampledExamplesGaussian {
                sampling_probability: 0.1,
                noise_multiplier,
                examples_per_unit: 3,
            },
            DpEvent::ThresholdedHistogram { noise_multiplier, threshold_delta: 1e-9 },
            DpEvent::SelfComposed { event: boxed(&gaussian), count: 3 },
            DpEvent::Composed { events: vec![gaussian.clone()] },
            DpEvent::TruncatedPoissonSampledGaussian {
                sampling_probability: 0.1,
                noise_multiplier,
                units: 40,
                largest_batch: 6,
            },
            DpEvent::ShuffledGaussian { noise_multiplier, batches, epochs: 1 },
            DpEvent::FixedSizeSampledGaussian { sample_size: 4, population: 40, noise_multiplier },
            DpEvent::BallsInBinsGaussian { noise_multiplier, batches, epochs: 1 },
            laplace.clone(),
            DpEvent::DiscreteGaussian { standard_deviation: 2.0, sensitivity: 1 },
            DpEvent::ZeroConcentrated { rho: 0.1 },
            DpEvent::PoissonSampledLaplace { sampling_probability: 0.1, noise_multiplier },
            DpEvent::RandomizedResponse { noise_parameter: 0.3, buckets: 4 },
            DpEvent::EpsilonDelta { epsilon: 0.2, delta: 1e-9 },
            DpEvent::PrivateSelection { event: boxed(&gaussian), trials: Trials::Poisson { mean: 3.0 } },
            DpEvent::SelfComposed { event: boxed(&laplace), count: 3 },
            DpEvent::Composed { events: vec![gaussian, laplace] },
        ];
        let relations = [
            NeighboringRelation::AddOrRemoveOne,
            NeighboringRelation::ReplaceOne,
            NeighboringRelation::ZeroOut,
        ];
        for (place, event) in events.iter().enumerate() {
            let differs = |relation: &NeighboringRelation| {
                let request = PairRequest::new(*relation);
                let from_above = dominating_pairs(event, request).ok()?;
                Some(from_above != dominating_pairs(event, request.for_lower_bound()).ok()?)
            };
            let found: Vec<bool> = relations.iter().filter_map(differs).collect();
            assert_eq!(found.contains(&true), place >= 6, "{event:?}: {found:?}");
            assert_eq!(has_separate_bounds(event), place >= 6, "{event:?}");
        }
    }

    #[test]
    fn counts_whose_sum_is_too_large_are_both_kept() {
        let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.1, noise_multiplier: 2.0 };
        let all = DpEvent::SelfComposed { event: Box::new(step), count: u64::MAX };
        let twice = DpEvent::Composed { events: vec![all.clone(), all] };
        let request = PairRequest::new(NeighboringRelation::AddOrRemoveOne);
        let pairs = dominating_pairs(&twice, request).unwrap();
        assert!(pairs.iter().all(|pair| pair.uses() >= 2.0 * u64::MAX as f64));
    }
}
