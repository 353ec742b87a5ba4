//! The discrete Gaussian on a whole-numbered query (Canonne, Kamath & Steinke 2020, <https://arxiv.org/abs/2004.00010>).
//!
//! # Proof note
//! At the whole number x the loss of a displacement s is exactly (2x − s)·s/(2σ²). The law is sub-Gaussian with
//! parameter σ (Canonne et al.): the mass farther than r from its centre is at most 2·e^{−r²/2σ²}. It counts as
//! failure in the upper pair and is left out of the lower one. Where there are too many whole numbers, neighbours are
//! grouped. *Upper*: each is split onto the lowest and the highest loss of its group with P-mass and Q-mass preserved.
//! *Lower*: the group is merged.

use super::{Builder, DiscretePair, Law, Mechanism, Outcome};
use crate::{AccountantError, Result};

/// Distance from the centre up to which outcomes are listed, in σ.
const REACH: f64 = 10.6;

/// Largest number of a pair's outcomes, approximately.
const MOST: f64 = 16_384.0;

/// The discrete Gaussian mechanism, used once.
pub(super) struct DiscreteGaussian {
    pub(super) standard_deviation: f64,
    pub(super) sensitivity: u64,
}

impl Mechanism for DiscreteGaussian {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let displacement = builder.view.displacement() * self.sensitivity as f64;
        let from_below = builder.view.request.is_lower();
        let (law, lost) = grouped(self.standard_deviation, displacement, from_below)?;
        builder.pair.push(Law::Discrete(law), count);
        builder.pair.push_failure(lost, count);
        Ok(())
    }
}

/// The pair of a displacement and noise `sigma`, with the P-mass it leaves out.
fn grouped(sigma: f64, displacement: f64, from_below: bool) -> Result<(DiscretePair, f64)> {
    let refused = |name, value, allowed| Err(AccountantError::out_of_range(name, value, allowed));
    if !(0.02..=1e5).contains(&sigma) {
        return refused("standard_deviation", sigma, "0.02 to 1e5");
    }
    if !(1.0..=1e9).contains(&displacement) {
        return refused("sensitivity", displacement, "1 to 1e9, the group and the relation included");
    }
    let reach = f64::ceil(REACH * sigma).max(2.0);
    let weight = |distance: f64| libm::exp(-0.5 * (distance / sigma) * (distance / sigma));
    let mut total = 0.0;
    let mut distance = reach;
    while distance > 0.0 {
        total += 2.0 * weight(distance);
        distance -= 1.0;
    }
    total += 1.0;
    let loss = |distance: f64| displacement * (2.0 * distance + displacement) / (2.0 * sigma * sigma);
    let group = f64::ceil((2.0 * reach + 1.0) / MOST);
    let slack = 1.0 + if from_below { -1e-12 } else { 1e-12 };
    let mut outcomes = Vec::new();
    let mut first = -reach;
    while first <= reach {
        let last = (first + group - 1.0).min(reach);
        let (mut low, mut high, mut lack) = (0.0, 0.0, 0.0);
        let (base, span) = (loss(first), loss(last) - loss(first));
        let mut at = first;
        while at <= last {
            let mass = weight(at) / total * slack;
            let over = loss(at) - base;
            let part = if span > 0.0 { libm::expm1(-over) / libm::expm1(-span) } else { 0.0 };
            low += mass * (1.0 - part);
            high += mass * part;
            lack += mass * libm::expm1(-over);
            at += 1.0;
        }
        if from_below {
            let mass = low + high;
            outcomes.push(Outcome { loss: base - libm::log1p(lack / mass) - 1e-13, mass });
        } else {
            outcomes.push(Outcome { loss: base, mass: low });
            outcomes.push(Outcome { loss: base + span, mass: high });
        }
        first = last + 1.0;
    }
    let beyond = 2.0 * libm::exp(-0.5 * (reach / sigma) * (reach / sigma));
    Ok((DiscretePair::new(outcomes), if from_below { 0.0 } else { beyond }))
}
