//! Conditions on the number of truncated batches: the engine of last resort for truncated Poisson
//! sampling.
//!
//! # Proof note
//! Whether a batch was truncated is a public coin (see `dominating_pair::truncated`). Given how
//! often each coin fell, the composition has no coins. By joint convexity of the hockey-stick
//! divergence, δ is at most the mean of the δ of these compositions. The counts are independent and
//! binomial; the probability of those left out is added to δ.

use super::{Engine, Problem, Target, bounds};
use crate::dominating_pair::{DominatingPair, Law, TruncationMixture};
use crate::numeric::binomial;
use crate::{AccountantError, Bounds, Result};

pub(super) struct TruncationCounts;

/// Largest number of compositions to which the counts may lead.
const MAX_TERMS: usize = 400;

/// Part of δ that is set aside for the omitted counts.
const LEFT_OUT: f64 = 1e-6;

impl Engine for TruncationCounts {
    fn bounds(&self, problem: &Problem<'_>, _tightness: f64) -> Result<Bounds> {
        const TOO_MANY: AccountantError =
            AccountantError::NotConverged { what: "too many batches may be truncated" };
        let terms = Terms::new(problem.pair, LEFT_OUT * problem.first_delta()).ok_or(TOO_MANY)?;
        match problem.target {
            Target::Delta { epsilon } => Bounds::new(0.0, terms.delta(epsilon)?),
            Target::Epsilon { delta } => {
                Bounds::new(0.0, terms.epsilon(delta, problem.first_epsilon().max(0.0))?)
            }
        }
    }
}

/// A composition for each likely result of the coins.
struct Terms {
    terms: Vec<Term>,
    /// Probability of the counts left out.
    rest: f64,
}

struct Term {
    probability: f64,
    pair: DominatingPair,
}

impl Terms {
    /// Omits counts whose probability is about `tail` at most. Returns `None` if the coins have too
    /// many likely results.
    fn new(pair: &DominatingPair, tail: f64) -> Option<Self> {
        let (rest, steps) = pair.split_truncated();
        let mut out = Self { terms: vec![Term { probability: 1.0, pair: rest }], rest: 0.0 };
        for (step, count) in &steps {
            let counts = Counts::new(step.probability, *count, tail / steps.len() as f64)?;
            if counts.likely.len() * out.terms.len() > MAX_TERMS {
                return None;
            }
            out.terms = out.terms.iter().flat_map(|term| term.with(step, *count, &counts.likely)).collect();
            out.rest += counts.rest;
        }
        Some(out)
    }

    /// An upper bound on δ.
    fn delta(&self, epsilon: f64) -> Result<f64> {
        let mut sum = self.rest;
        for term in &self.terms {
            sum += term.probability * bounds(&term.pair, Target::Delta { epsilon }, 0.0)?.upper;
        }
        Ok((sum * (1.0 + 1e-12)).min(1.0))
    }

    /// An upper bound on ε, at most `most`.
    fn epsilon(&self, delta: f64, most: f64) -> Result<f64> {
        let excess = |epsilon: f64| -> Result<f64> { Ok(libm::log(self.delta(epsilon)?) - libm::log(delta)) };
        let (mut low, mut high) = ((0.0, excess(0.0)?), (most, excess(most)?));
        if low.1 <= 0.0 {
            return Ok(0.0);
        }
        for round in 0..40 {
            if high.0 - low.0 <= 1e-5 * high.0 || high.1 > 0.0 {
                break;
            }
            // log δ against ε is nearly straight: aim just beyond the crossing, and halve every third time.
            let crossing = low.0 + low.1 * (high.0 - low.0) / (low.1 - high.1) * (1.0 + 3e-6);
            let usable = round % 3 != 2 && crossing > low.0 && crossing < high.0;
            let middle = if usable { crossing } else { 0.5 * (low.0 + high.0) };
            let tried = (middle, excess(middle)?);
            if tried.1 <= 0.0 {
                high = tried;
            } else {
                low = tried;
            }
        }
        Ok(high.0)
    }
}

impl Term {
    /// Returns this composition with each likely count of truncated steps out of `count`.
    fn with(&self, step: &TruncationMixture, count: u64, likely: &[(u64, f64)]) -> Vec<Self> {
        let extended = likely.iter().map(|&(truncated, probability)| {
            let mut pair = self.pair.clone();
            pair.push(Law::Mixture(step.whole.clone()), count - truncated);
            pair.push(Law::Mixture(step.truncated.clone()), truncated);
            Self { probability: self.probability * probability, pair }
        });
        extended.collect()
    }
}

/// An upper bound on the law of the number of heads.
struct Counts {
    /// Counts and their probabilities.
    likely: Vec<(u64, f64)>,
    /// Probability of all other counts.
    rest: f64,
}

impl Counts {
    /// Creates the law of `count` coins, each with probability `p`.
    fn new(p: f64, count: u64, tail: f64) -> Option<Self> {
        let n = count as f64;
        // With p off by a factor 1 ± r, a probability is off by at most e^{r·(k + n·p/(1−p))}.
        let above = |k: f64| {
            let slack = 2.0 * binomial::RELATIVE * (1.0 + k + n * p / (1.0 - p));
            binomial::mass(k, n, p) * libm::exp(slack)
        };
        let mode = f64::floor((n + 1.0) * p).min(n);
        let mut counts = Self { likely: Vec::new(), rest: 0.0 };
        let mut k = mode;
        while k >= 0.0 {
            let falls = k / (n - k + 1.0) * (1.0 - p) / p;
            if k < mode && counts.ends(above(k), falls, tail) {
                break;
            }
            counts.add(k, above(k))?;
            k -= 1.0;
        }
        k = mode + 1.0;
        while k <= n {
            let falls = (n - k) / (k + 1.0) * p / (1.0 - p);
            if counts.ends(above(k), falls, tail) {
                break;
            }
            counts.add(k, above(k))?;
            k += 1.0;
        }
        Some(counts)
    }

    /// Adds `probability` and all beyond to the rest if that is little. They fall at least geometrically by `ratio`.
    fn ends(&mut self, probability: f64, ratio: f64, tail: f64) -> bool {
        let ends = ratio < 1.0 && probability / (1.0 - ratio) < 0.5 * tail;
        if ends {
            self.rest += probability / (1.0 - ratio);
        }
        ends
    }

    fn add(&mut self, k: f64, probability: f64) -> Option<()> {
        self.likely.push((k as u64, probability));
        (self.likely.len() <= MAX_TERMS).then_some(())
    }
}
