//! Events lowered to what the engines compose: mixture pairs, one Gaussian, and a chance of plain failure.

use super::pair::{Component, Pair};
use crate::{AccountantError, DpEvent, NeighboringRelation};

/// One direction of a composed event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lowered {
    /// Pairs and how often each takes place.
    pub(crate) pairs: Vec<(Pair, u64)>,
    /// Σ μ² of the plain Gaussian mechanisms, which compose to a single one.
    pub(crate) mu_squared: f64,
    /// Probability of a failure that tells the data sets apart for certain.
    pub(crate) failure: f64,
}

impl Lowered {
    fn push(&mut self, pair: Pair, count: u64) {
        if let Some(known) = self.pairs.iter_mut().find(|(known, _)| *known == pair) {
            known.1 = known.1.saturating_add(count);
        } else {
            self.pairs.push((pair, count));
        }
    }
}

/// Both directions of `event`, or the one that stands for both where they are mirror images.
pub(crate) fn lower(event: &DpEvent, relation: NeighboringRelation) -> Result<Vec<Lowered>, AccountantError> {
    let directions: &[Side] = match relation {
        NeighboringRelation::AddOrRemoveOne | NeighboringRelation::ZeroOut => &[Side::Remove, Side::Add],
        NeighboringRelation::ReplaceOne => &[Side::Replace],
    };
    directions
        .iter()
        .map(|&side| {
            let mut lowered = Lowered::default();
            descend(event, side, 1, 0, &mut lowered)?;
            Ok(lowered)
        })
        .collect()
}

/// Which data set the attacker's hypothesis P comes from.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    /// P has the unit, Q has not.
    Remove,
    /// Q has the unit, P has not.
    Add,
    /// Both have a unit, in opposite directions.
    Replace,
}

/// Nesting beyond this is refused, so that a hostile file cannot exhaust the stack.
const DEEPEST: usize = 64;

fn descend(
    event: &DpEvent,
    side: Side,
    count: u64,
    depth: usize,
    out: &mut Lowered,
) -> Result<(), AccountantError> {
    if depth > DEEPEST {
        return Err(AccountantError::OutOfRange {
            name: "nesting of events",
            value: depth as f64,
            allowed: "at most 64 levels",
        });
    }
    match event {
        DpEvent::Gaussian { noise_multiplier } => gaussian(*noise_multiplier, side, count, out),
        DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier } => {
            poisson(*sampling_probability, *noise_multiplier, side, count, out)
        }
        DpEvent::ThresholdedHistogram { noise_multiplier, threshold_delta } => {
            if !(*threshold_delta >= 0.0 && *threshold_delta < 1.0) {
                return Err(AccountantError::OutOfRange {
                    name: "threshold_delta",
                    value: *threshold_delta,
                    allowed: "0 <= threshold_delta < 1",
                });
            }
            // 1 − (1−f)(1−d)^count, and the union bound count·d is never below it.
            out.failure += *threshold_delta * count as f64;
            gaussian(*noise_multiplier, side, count, out)
        }
        DpEvent::Composed { events } => {
            for event in events {
                descend(event, side, count, depth + 1, out)?;
            }
            Ok(())
        }
        DpEvent::SelfComposed { event, count: times } => {
            let Some(product) = count.checked_mul(*times) else {
                return Err(AccountantError::OutOfRange {
                    name: "count",
                    value: count as f64 * *times as f64,
                    allowed: "fewer than 2^64 repetitions in all",
                });
            };
            descend(event, side, product, depth + 1, out)
        }
    }
}

fn positive(name: &'static str, value: f64) -> Result<f64, AccountantError> {
    if value > 0.0 && value < f64::INFINITY {
        Ok(value)
    } else {
        Err(AccountantError::OutOfRange { name, value, allowed: "a finite number above 0" })
    }
}

fn gaussian(noise_multiplier: f64, side: Side, count: u64, out: &mut Lowered) -> Result<(), AccountantError> {
    let sigma = positive("noise_multiplier", noise_multiplier)?;
    let displacement = if side == Side::Replace { 2.0 } else { 1.0 };
    let mu = displacement / sigma;
    out.mu_squared += mu * mu * count as f64;
    Ok(())
}

fn poisson(
    probability: f64,
    noise_multiplier: f64,
    side: Side,
    count: u64,
    out: &mut Lowered,
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
        return gaussian(noise_multiplier, side, count, out);
    }
    if probability == 0.0 || count == 0 {
        return Ok(());
    }
    let moved = vec![Component { weight: probability, shift: 1.0 }];
    out.push(
        match side {
            Side::Remove => Pair::new(sigma, moved, Vec::new()),
            Side::Add => Pair::new(sigma, Vec::new(), moved),
            Side::Replace => Pair::new(sigma, moved.clone(), moved),
        },
        count,
    );
    Ok(())
}
