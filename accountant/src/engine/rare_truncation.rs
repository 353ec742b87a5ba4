//! Truncated Poisson sampling where truncation is far less likely than δ: the composition without truncated batches.
//!
//! # Proof note
//! Whether a batch was truncated is a public coin (see `dominating_pair::truncated`), so δ is the mean of the δ of what follows over the
//! outcomes of the coins. No batch is truncated with probability at least 1 − f, f = Σ Tᵢ·pᵢ. Hence (1 − f)·δ′ ≤ δ ≤ δ′ + f, where δ′ is
//! that of the composition without truncated batches.

use super::{Engine, Problem, Target, bounds};
use crate::dominating_pair::Law;
use crate::{AccountantError, Bounds, Result};

/// The part of δ that truncation may amount to. ε changes by less than a thousandth then.
const PART: f64 = 1e-3;

/// Relative error of the probabilities of truncation, from above.
const PROBABILITY_ERROR: f64 = 1e-6;

pub(super) struct RareTruncation;

impl Engine for RareTruncation {
    fn bounds(&self, problem: &Problem<'_>, _tightness: f64) -> Result<Bounds> {
        const LIKELY: AccountantError = AccountantError::NotConverged { what: "batches may be truncated" };
        let (mut untruncated, truncated) = problem.pair.split_truncated();
        let mut failure = 0.0;
        for (step, count) in truncated {
            failure += count as f64 * step.probability * (1.0 + PROBABILITY_ERROR);
            untruncated.push(Law::Mixture(step.whole.clone()), count);
        }
        match problem.target {
            Target::Epsilon { delta } if failure <= PART * delta => {
                let at = |delta| bounds(&untruncated, Target::Epsilon { delta }, problem.floor);
                let upper = at((delta - failure) * (1.0 - f64::EPSILON))?.upper;
                let lower = at((delta / (1.0 - failure) * (1.0 + 4.0 * f64::EPSILON)).min(1.0))?.lower;
                Bounds::new(lower.min(upper), upper)
            }
            Target::Delta { epsilon } => {
                let found = bounds(&untruncated, Target::Delta { epsilon }, 0.0)?;
                let rare = failure <= PART * found.lower;
                let upper = ((found.upper + failure) * (1.0 + f64::EPSILON)).min(1.0);
                if rare {
                    Bounds::new(found.lower * (1.0 - failure - f64::EPSILON), upper)
                } else {
                    Err(LIKELY)
                }
            }
            Target::Epsilon { .. } => Err(LIKELY),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::super::{Problem, RARE_TRUNCATION, closed_form_delta};
    use super::*;
    use crate::dominating_pair::{DominatingPair, PairRequest, dominating_pairs};
    use crate::{DpEvent, NeighboringRelation};

    /// Oracle: one step's δ is (1 − p)·δ of a whole batch + p·δ of a cut one, each in closed form.
    #[test]
    fn one_step_lies_between_the_bounds_and_either_bound_without_its_term_is_wrong() {
        let step = DpEvent::TruncatedPoissonSampledGaussian {
            sampling_probability: 0.01,
            noise_multiplier: 1.0,
            units: 10_000,
            largest_batch: 158,
        };
        for pair in dominating_pairs(&step, PairRequest::new(NeighboringRelation::ZeroOut)).unwrap() {
            let (_, truncated) = pair.split_truncated();
            let (coin, _) = truncated[0];
            let of = |mixture: &crate::dominating_pair::MixturePair, epsilon| {
                let mut one = DominatingPair::default();
                one.push(Law::Mixture(mixture.clone()), 1);
                closed_form_delta(&one, epsilon)
            };
            // The loss in the direction of addition is at most −log(1 − q).
            let epsilon = 0.001;
            let (whole, cut) = (of(&coin.whole, epsilon), of(&coin.truncated, epsilon));
            let exact = (1.0 - coin.probability) * whole + coin.probability * cut;
            let ask = |target| RARE_TRUNCATION.bounds(&Problem::new(&pair, target, 0.0)).unwrap();
            let found = ask(Target::Delta { epsilon });
            assert!(found.lower <= exact && found.upper >= exact, "{found:?} {exact}");
            // The two terms are above rounding: without them the bounds would not hold.
            assert!(whole < exact * (1.0 - 1e-9) && whole * (1.0 - coin.probability) < exact);
            let back = ask(Target::Epsilon { delta: exact });
            assert!(back.lower <= epsilon && back.upper >= epsilon, "{back:?}");
            assert!(back.upper - back.lower < 1e-2 * epsilon, "{back:?}");
        }
    }
}
