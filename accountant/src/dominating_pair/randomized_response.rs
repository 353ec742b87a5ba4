//! Randomized response among k values.
//!
//! # Proof note
//! With probability λ a report is uniform. Let the unit's value change from i to j. The report i has probability 1 − λ + λ/k under P and λ/k
//! under Q, the report j the other way round, and all others λ/k under both. That is the mechanism itself, so that both bounds are those of
//! this pair. The units of a group report independently: one use each.

use super::{Builder, DiscretePair, Law, Mechanism, Outcome};
use crate::{AccountantError, NeighboringRelation, Result};

const EVENT: &str = "randomized_response";

/// A report.
pub(super) struct RandomizedResponse {
    pub(super) noise_parameter: f64,
    pub(super) buckets: u64,
}

impl Mechanism for RandomizedResponse {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let Self { noise_parameter, buckets } = self;
        let request = builder.view.request;
        if request.relation == NeighboringRelation::AddOrRemoveOne {
            let question = "add_or_remove_one, under which the number of reports is not public";
            return Err(AccountantError::Unsupported { event: EVENT, question });
        }
        if !(1e-100..=1.0).contains(&noise_parameter) {
            return Err(AccountantError::out_of_range("noise_parameter", noise_parameter, "1e-100 to 1"));
        }
        if !(2..=LARGEST).contains(&buckets) {
            return Err(AccountantError::out_of_range("buckets", buckets as f64, "2 to 1e12"));
        }
        let sign = if request.is_lower() { -1.0 } else { 1.0 };
        // The rounding of the logarithm and of the masses.
        let slack = 1.0 + sign * 1e-14;
        let uniform = noise_parameter / buckets as f64;
        let loss = libm::log1p((1.0 - noise_parameter) / uniform);
        if loss > 0.0 {
            let outcomes = vec![
                Outcome { loss: loss * slack, mass: (1.0 - noise_parameter + uniform) * slack },
                Outcome { loss: -loss * (2.0 - slack), mass: uniform * slack },
                Outcome { loss: 0.0, mass: uniform * (buckets - 2) as f64 * slack },
            ];
            let times = count.saturating_mul(u64::from(request.group_size));
            builder.pair.push(Law::Discrete(DiscretePair::new(outcomes)), times);
        }
        Ok(())
    }
}

/// The most values whose number a float holds with room for products.
const LARGEST: u64 = 1_000_000_000_000;
