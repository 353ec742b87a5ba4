//! What shuffled batches are known to cost at least.
//!
//! # Proof note
//! Lower bounds need only one pair of neighbours.
//! * Where all others contribute nothing, an epoch is one of balls in bins: the unit falls into a uniform batch. With
//!   replace-one let all others contribute −e, the unit e and its replacement −e: the same at half the noise.
//! * Zero-out, all others contribute −e and the unit e (Chua et al. 2024, "How private are DP-SGD implementations?",
//!   <https://arxiv.org/abs/2403.17673>): one batch is displaced by 2 rather than 1. Looking at the largest output only
//!   costs the attacker information; its distribution functions are Φ((m−2)/σ)·Φ(m/σ)^{b−1} and
//!   Φ((m−1)/σ)·Φ(m/σ)^{b−1}. Cells of m, each of which is an outcome, contain every threshold test of that paper
//!   between cells, and compose over epochs (Chua et al. 2024b, <https://arxiv.org/abs/2411.04205>).
//!
//! Of the two tables for zero-out the one with the larger moment is taken; either is valid.

use crate::numeric::normal;

use super::tabulated::{Outcome, Tabulated};

/// Cells of the largest output for each σ.
const CELLS: f64 = 40.0;

/// What differences of tails may be off by, relative to themselves.
const SLACK: f64 = 1e-10;

/// The law of the largest of `batches` outputs, one displaced by 2 against one displaced by 1, and the other way round.
pub(super) fn largest(sigma: f64, batches: u64, added: bool) -> Tabulated {
    let others = batches as f64 - 1.0;
    let log_cdf = |x: f64| normal::log_sf(-x / sigma);
    let tail = |m: f64, shift: f64| -libm::expm1(log_cdf(m - shift) + others * log_cdf(m));
    // Only the upper tail separates the two; the rest is one outcome.
    let width = sigma / CELLS;
    let from = normal::isf((0.5 / batches as f64).max(1e-300)) * sigma - 4.0 * sigma;
    let cells = libm::ceil((2.0 - from.min(0.0) + 12.0 * sigma + libm::fabs(from)) / width).min(4e4);
    let mut outcomes = Vec::new();
    let mut add = |with: f64, without: f64| {
        let (p, q) = if added { (without, with) } else { (with, without) };
        if p > 1e-290 && q > 1e-290 {
            outcomes.push(Outcome { loss: libm::log(p / q) - 3.0 * SLACK, mass: p * (1.0 - SLACK) });
        }
    };
    let (mut with, mut without) = (tail(from, 2.0), tail(from, 1.0));
    add(1.0 - with, 1.0 - without);
    let mut index = 1.0;
    while index <= cells {
        let next = from + index * width;
        let (beyond, beyond_without) = (tail(next, 2.0), tail(next, 1.0));
        // A difference that is mostly rounding is left out.
        if with - beyond > 1e-4 * with && without - beyond_without > 1e-4 * without {
            add(with - beyond, without - beyond_without);
        }
        (with, without) = (beyond, beyond_without);
        index += 1.0;
    }
    add(with, without);
    Tabulated::new(outcomes)
}
