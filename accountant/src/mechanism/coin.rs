//! Steps that are one of two pairs by a public coin: Poisson batches cut to a largest size.
//!
//! # Proof note
//! K is the number of sampled units among the other N − 1, all of which neighbours share: N is public, and the
//! relation exchanges one unit or empties it. Let the attacker also see whether K ≥ cap, which only helps him and
//! has the same probability p on both sides.
//! * K < cap: nobody is left out. The unit takes part with probability q: the pair of Poisson sampling.
//! * K ≥ cap: without the unit the batch is a uniform subset S of cap others, whatever K is. With it (kept with
//!   probability q·cap/(K+1) given K, hence q′ = cap/N·P(Bin(N, q) > cap)/p given K ≥ cap) it takes the place of a
//!   uniform member y of S. Given S and y the sum is displaced by x − y, of norm at most 2, with probability q′ and
//!   by nothing otherwise, on both sides. By joint convexity the worst S and y bound the rest: the replace-one
//!   pair of displacement 2 at q′, which also covers an emptied unit.
//!
//! From below: where all other units contribute nothing the release *is* the Poisson-sampled Gaussian at the
//! unit's overall chance of being kept, q·(1 − p) + q′·p, step by step.
//! Under add/remove N is not public, K differs between neighbours, and there is no such coin: refused.

use crate::AccountantError;
use crate::numeric::binomial;

use super::Pair;
use super::lower::Lowered;
use super::pair::Component;

/// Steps of which each uses `cut` with `probability` and `whole` otherwise, visibly.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Coin {
    pub(crate) probability: f64,
    pub(crate) whole: Pair,
    pub(crate) cut: Pair,
    pub(crate) count: u64,
}

/// Chances in a Poisson batch that is cut to a largest size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Truncation {
    /// That the others fill the batch.
    pub(crate) full: f64,
    /// That the unit is kept where they do, rounded up.
    pub(crate) kept_when_full: f64,
    /// That the unit is kept, rounded down.
    pub(crate) kept: f64,
}

impl Truncation {
    /// For `units` of which each is sampled with 0 < `q` < 1 and at most `largest` < `units` are kept.
    pub(crate) fn new(units: u64, q: f64, largest: u64) -> Self {
        let (n, cap) = (units as f64, largest as f64);
        let full = binomial::at_least(cap, n - 1.0, q);
        let both = cap / n * binomial::at_least(cap + 1.0, n, q);
        // Ten times what the binomial may be off by.
        let slack = 10.0 * binomial::RELATIVE;
        Self {
            full,
            kept_when_full: if full > 0.0 { (both / full * (1.0 + slack)).min(1.0) } else { 0.0 },
            kept: (q * (1.0 - full) + both) * (1.0 - slack),
        }
    }

    /// The pair of steps in which the others fill the batch.
    pub(crate) fn cut_pair(&self, sigma: f64) -> Pair {
        let moved = vec![Component { weight: self.kept_when_full, shift: 2.0 }];
        Pair::new(sigma, moved.clone(), moved)
    }
}

/// The most compositions that a mixture is written out to.
const MOST_TERMS: usize = 400;

/// A composition with coins, written out: one composition, with its weight, for each number of times a coin fell.
pub(crate) struct Mixture {
    terms: Vec<(f64, Lowered)>,
    /// Weight that is not written out.
    rest: f64,
}

impl Mixture {
    /// Leaves out at most about `tail`; none where the coins fall in too many different ways.
    pub(crate) fn new(side: &Lowered, tail: f64) -> Option<Self> {
        let plain = Lowered { coins: Vec::new(), ..side.clone() };
        let mut out = Self { terms: vec![(1.0, plain)], rest: 0.0 };
        for coin in &side.coins {
            let (falls, rest) = falls(coin, tail / side.coins.len() as f64)?;
            if falls.len() * out.terms.len() > MOST_TERMS {
                return None;
            }
            let mut terms = Vec::with_capacity(falls.len() * out.terms.len());
            for (weight, term) in &out.terms {
                for (cut, probability) in &falls {
                    let mut term = term.clone();
                    term.push(coin.whole.clone(), coin.count - cut);
                    term.push(coin.cut.clone(), *cut);
                    terms.push((weight * probability, term));
                }
            }
            out.terms = terms;
            out.rest += rest;
        }
        Some(out)
    }

    /// An upper bound on δ, given one for each composition: the attacker sees how the coins fell.
    pub(crate) fn delta(
        &self,
        upper: impl Fn(&Lowered) -> Result<f64, AccountantError>,
    ) -> Result<f64, AccountantError> {
        let mut sum = self.rest;
        for (weight, term) in &self.terms {
            sum += weight * upper(term)?;
        }
        Ok((sum * (1.0 + 1e-12)).min(1.0))
    }
}

/// How often `coin` falls on the cut pair, each with a probability from above, and a bound on the rest.
fn falls(coin: &Coin, tail: f64) -> Option<(Vec<(u64, f64)>, f64)> {
    let (n, p) = (coin.count as f64, coin.probability);
    // With p off by a factor 1 ± r, a weight is off by e^{r·(k + n·p/(1−p))} at most.
    let above = |k: f64| {
        let slack = 2.0 * binomial::RELATIVE * (1.0 + k + n * p / (1.0 - p));
        binomial::mass(k, n, p) * libm::exp(slack)
    };
    let mode = libm::floor((n + 1.0) * p).min(n);
    let mut found = Vec::new();
    let mut rest = 0.0;
    let mut k = mode;
    while k >= 0.0 {
        let weight = above(k);
        // Terms fall at least geometrically from here on.
        let ratio = k / (n - k + 1.0) * (1.0 - p) / p;
        if k < mode && ratio < 1.0 && weight / (1.0 - ratio) < 0.5 * tail {
            rest += weight / (1.0 - ratio);
            break;
        }
        found.push((k as u64, weight));
        k -= 1.0;
        if found.len() > MOST_TERMS {
            return None;
        }
    }
    k = mode + 1.0;
    while k <= n {
        let weight = above(k);
        let ratio = (n - k) / (k + 1.0) * p / (1.0 - p);
        if ratio < 1.0 && weight / (1.0 - ratio) < 0.5 * tail {
            rest += weight / (1.0 - ratio);
            break;
        }
        found.push((k as u64, weight));
        k += 1.0;
        if found.len() > MOST_TERMS {
            return None;
        }
    }
    Some((found, rest))
}
