//! Mechanisms of which (ε, δ) alone are known.
//!
//! # Proof note
//! Every (ε, δ)-DP mechanism is dominated by a pair of four outcomes: with probability δ one that tells the data sets apart, and
//! otherwise randomized response of losses ε and −ε (Kairouz, Oh & Viswanath 2015, <https://arxiv.org/abs/1311.0776>).
//! For data sets that differ in k units, k times ε and δ·(1 + e^ε + … + e^{(k−1)ε}) take their place, and an exchanged unit is
//! taken out and another put in: k = 2. So is one that is zeroed out, as nothing tells what the mechanism makes of an empty unit. Failures are added up (union bound). *Lower*: the mechanism may release nothing.

use super::{Builder, DiscretePair, Law, Mechanism, Outcome};
use crate::{AccountantError, NeighboringRelation, Result};

/// Largest ε of a group. Beyond it, a float does not hold e^ε.
const LARGEST: f64 = 500.0;

/// A mechanism that is (ε, δ)-DP, used once.
pub(super) struct EpsilonDelta {
    pub(super) epsilon: f64,
    pub(super) delta: f64,
}

impl Mechanism for EpsilonDelta {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let Self { epsilon, delta } = self;
        let request = builder.view.request;
        let moved = match request.relation {
            NeighboringRelation::ZeroOut => 2.0 * f64::from(request.group_size),
            _ => builder.view.displacement(),
        };
        let all = moved * epsilon;
        if !(epsilon >= 0.0 && all <= LARGEST) {
            return Err(AccountantError::out_of_range(
                "epsilon",
                epsilon,
                "0 to 500, times the units that differ",
            ));
        }
        if !(0.0..1.0).contains(&delta) {
            return Err(AccountantError::out_of_range("delta of the event", delta, "0 <= delta < 1"));
        }
        if builder.view.request.is_lower() {
            return Ok(());
        }
        let (mut failure, mut member) = (0.0, 0.0);
        while member < moved {
            failure += delta * libm::exp(member * epsilon);
            member += 1.0;
        }
        let failure = (failure * ROUNDED_UP).min(1.0);
        builder.pair.push_failure(failure, count);
        // At least what is left, by the same error.
        let kept = (1.0 - failure).max(0.0) + (ROUNDED_UP - 1.0);
        if all > 0.0 {
            let outcome = |loss: f64| Outcome { loss, mass: kept / (1.0 + libm::exp(-loss)) };
            builder.pair.push(Law::Discrete(DiscretePair::new(vec![outcome(all), outcome(-all)])), count);
        }
        Ok(())
    }
}

/// The error of the exponentials and sums.
const ROUNDED_UP: f64 = 1.0 + 1e-13;
