//! Truncated Poisson sampling by FFT: a step is one discrete pair, whose outcomes include those of the public coin.
//!
//! # Proof note
//! Whether a batch was truncated is a public coin (see `dominating_pair::truncated`), so that the law of a step's loss is the mixture of
//! the laws with and without truncation. `pld_adaptive::single_step` splits it onto points from above and merges it into points from below.

use super::pld_adaptive::Outcomes;
use super::{Engine, PLD_FFT, Problem, Target};
use crate::dominating_pair::Law;
use crate::{AccountantError, Bounds, Result};

pub(super) struct TruncationOutcomes;

impl Engine for TruncationOutcomes {
    fn bounds(&self, problem: &Problem<'_>, _tightness: f64) -> Result<Bounds> {
        let delta = match problem.target {
            Target::Epsilon { delta } => delta,
            // Chernoff's δ may be far too high.
            Target::Delta { .. } => problem.first_delta() * 1e-3,
        };
        let (rest, truncated) = problem.pair.split_truncated();
        let (mut upper, mut lower, mut failure) = (rest.clone(), rest, 0.0);
        for (step, count) in truncated {
            let outcomes =
                Outcomes::of(step, delta, problem.pair.uses()).ok_or(AccountantError::NotConverged {
                    what: "the losses of a truncated step have no grid",
                })?;
            failure += outcomes.failure * count as f64;
            upper.push(Law::Discrete(outcomes.upper), count);
            lower.push(Law::Discrete(outcomes.lower), count);
        }
        failure *= 1.0 + 1e-12;
        let ask = |pair, target| PLD_FFT.bounds(&Problem::new(pair, target, problem.floor));
        match problem.target {
            Target::Epsilon { delta } => {
                let upper =
                    ask(&upper, Target::Epsilon { delta: (delta - failure) * (1.0 - f64::EPSILON) })?.upper;
                let lower = ask(&lower, problem.target)?.lower;
                Bounds::new(lower.min(upper), upper)
            }
            Target::Delta { .. } => {
                let upper = ((ask(&upper, problem.target)?.upper + failure) * (1.0 + f64::EPSILON)).min(1.0);
                let lower = ask(&lower, problem.target)?.lower;
                Bounds::new(lower.min(upper), upper)
            }
        }
    }
}
