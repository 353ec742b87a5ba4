//! The discrete Gaussian on a whole-numbered query (Canonne, Kamath & Steinke 2020), as a table.
//!
//! # Proof note
//! At the whole number x the loss of a displacement s is (2x − s)·s/(2σ²), exactly. The law is sub-Gaussian with
//! parameter σ (Canonne et al.): what lies farther than r from its centre is at most 2·e^{−r²/2σ²}, and
//! is counted as failure above, left out below. Where there are too many whole numbers, neighbours are taken together:
//! *above* each is split onto the lowest and the highest loss among them so that P-mass and Q-mass stay, *below* they
//! are merged.

use crate::AccountantError;

use super::tabulated::{Outcome, Tabulated};

/// How far from the centre outcomes are listed, in σ.
const REACH: f64 = 10.6;

/// Outcomes of a table, about.
const MOST: f64 = 16_384.0;

/// The pair of a displacement by `moved` and noise `sigma`, with the P-mass it leaves out.
pub(super) fn table(sigma: f64, moved: f64, below: bool) -> Result<(Tabulated, f64), AccountantError> {
    let refused = |name, value, allowed| Err(AccountantError::OutOfRange { name, value, allowed });
    if !(0.02..=1e5).contains(&sigma) {
        return refused("standard_deviation", sigma, "0.02 to 1e5");
    }
    if !(1.0..=1e9).contains(&moved) {
        return refused("sensitivity", moved, "1 to 1e9, the group and the relation included");
    }
    let reach = libm::ceil(REACH * sigma).max(2.0);
    let weight = |distance: f64| libm::exp(-0.5 * (distance / sigma) * (distance / sigma));
    let mut total = 0.0;
    let mut distance = reach;
    while distance > 0.0 {
        total += 2.0 * weight(distance);
        distance -= 1.0;
    }
    total += 1.0;
    let loss = |distance: f64| moved * (2.0 * distance + moved) / (2.0 * sigma * sigma);
    let together = libm::ceil((2.0 * reach + 1.0) / MOST);
    let slack = 1.0 + if below { -1e-12 } else { 1e-12 };
    let mut outcomes = Vec::new();
    let mut first = -reach;
    while first <= reach {
        let last = (first + together - 1.0).min(reach);
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
        if below {
            let mass = low + high;
            outcomes.push(Outcome { loss: base - libm::log1p(lack / mass) - 1e-13, mass });
        } else {
            outcomes.push(Outcome { loss: base, mass: low });
            outcomes.push(Outcome { loss: base + span, mass: high });
        }
        first = last + 1.0;
    }
    let beyond = 2.0 * libm::exp(-0.5 * (reach / sigma) * (reach / sigma));
    Ok((Tabulated::new(outcomes), if below { 0.0 } else { beyond }))
}
