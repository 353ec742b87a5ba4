//! Bounds that need no composition: closed forms, and two bounds that follow from them.

mod one_use;

use super::{Engine, Problem, Target};
use crate::dominating_pair::{Composition, DiscretePair};
use crate::normal;
use crate::{AccountantError, Bounds, Result};

/// Closed forms of a Gaussian mechanism, and of a single use of another pair.
pub(super) struct ClosedForm;

/// Relative error of the Gaussian's closed form, of ε and of δ.
const GAUSSIAN_EPSILON: f64 = 1e-13;
const GAUSSIAN_DELTA: f64 = 1e-12;

impl Engine for ClosedForm {
    fn bounds(&self, problem: &Problem<'_>, _tightness: f64) -> Result<Bounds> {
        match problem.pair.composition() {
            Composition::Trivial => Bounds::new(0.0, 0.0),
            Composition::Gaussian { mu } => {
                let error = match problem.target {
                    Target::Epsilon { .. } => GAUSSIAN_EPSILON,
                    Target::Delta { .. } => GAUSSIAN_DELTA,
                };
                read(|epsilon| normal::log_gaussian_delta(mu, epsilon), problem.target, error)
            }
            Composition::OneMixture(pair) => {
                read(|epsilon| one_use::log_delta(pair, epsilon), problem.target, one_use::RELATIVE)
            }
            Composition::OneDiscrete(pair) => {
                read(|epsilon| pair.log_delta(epsilon), problem.target, DiscretePair::RELATIVE)
            }
            _ => Err(AccountantError::NotConverged { what: "a composition has no closed form" }),
        }
    }
}

/// Reads ε or δ off a curve that is known to a relative error.
fn read(log_delta: impl Fn(f64) -> f64, target: Target, error: f64) -> Result<Bounds> {
    match target {
        Target::Epsilon { delta } => epsilon(log_delta, delta, error),
        Target::Delta { epsilon } => {
            let value = libm::exp(log_delta(epsilon));
            Bounds::new((value * (1.0 - error)).min(1.0), (value * (1.0 + error)).min(1.0))
        }
    }
}

/// Bisection, with δ and ε widened by the error.
fn epsilon(log_delta: impl Fn(f64) -> f64, delta: f64, error: f64) -> Result<Bounds> {
    let target = libm::log(delta);
    if log_delta(0.0) <= target - error {
        return Bounds::new(0.0, 0.0);
    }
    let mut high = 1.0;
    while log_delta(high) > target - error {
        high *= 2.0;
        if high > 1e15 {
            return Err(AccountantError::NotConverged { what: "epsilon is beyond 1e15" });
        }
    }
    let crossing = |target: f64, mut low: f64, mut high: f64| {
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if log_delta(middle) > target {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low, high)
    };
    let (_, upper) = crossing(target - error, 0.0, high);
    let (lower, _) = crossing(target + error, 0.0, upper);
    Bounds::new(lower * (1.0 - 1e-13), upper * (1.0 + 1e-13))
}

/// ε is 0 where the uses' total variation distances sum to at most δ.
pub(super) struct TotalVariation;

impl Engine for TotalVariation {
    fn bounds(&self, problem: &Problem<'_>, _tightness: f64) -> Result<Bounds> {
        let pair = problem.pair;
        let gaussian = if pair.mu_squared() > 0.0 {
            normal::log_gaussian_delta(pair.mu(), 0.0)
        } else {
            f64::NEG_INFINITY
        };
        let mixtures: f64 = pair
            .mixtures()
            .map(|(pair, count)| count as f64 * libm::exp(one_use::log_delta(pair, 0.0)))
            .sum();
        let distance = (mixtures + libm::exp(gaussian)) * (1.0 + 1e-10);
        match problem.target {
            Target::Epsilon { delta } if distance <= delta => Bounds::new(0.0, 0.0),
            _ => Err(AccountantError::NotConverged { what: "the total variation distance exceeds delta" }),
        }
    }
}

/// ε is at most the sum of the highest losses.
pub(super) struct HighestLoss;

impl Engine for HighestLoss {
    fn bounds(&self, problem: &Problem<'_>, _tightness: f64) -> Result<Bounds> {
        let highest = problem.pair.highest_mixture_loss();
        match problem.target {
            Target::Epsilon { .. } if problem.pair.mu_squared() == 0.0 && highest.is_finite() => {
                Bounds::new(0.0, highest * (1.0 + 1e-12))
            }
            _ => Err(AccountantError::NotConverged { what: "the privacy loss is unbounded" }),
        }
    }
}
