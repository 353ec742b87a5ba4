//! Batches of a fixed size, drawn without replacement.
//!
//! # Proof note
//! B of N units are drawn, q = B/N. A data set with the unit x is coupled to one in which x stands aside: a batch S of
//! B others is drawn, and with probability q a uniform member y of S gives its place to x. Given S and y, the sum is
//! displaced from that of S by x − y with probability q and by nothing otherwise.
//! * Add or remove: without the unit the batch is S. ‖x − y‖ ≤ 2, so that the pair is that of Poisson sampling at q
//!   with displacement 2. It is attained, where all others contribute −e and x contributes e. Both bounds are exact.
//!   A data set of more than N units has a smaller q, at which the pair costs less.
//! * Zero-out: x − y against −y, displacements of at most 2 and 1. From below: others that contribute nothing.
//! * Replace-one: x − y against x′ − y, displacements of at most 2 on either side. From below: others that
//!   contribute −e, x = e, x′ = −e, which is the pair of add or remove.
//!
//! By joint convexity the worst S and y bound the rest, and opposite displacements of a mixture's parts on a line
//! dominate all others (the same pairs as for cut Poisson batches).

use crate::{AccountantError, NeighboringRelation};

use super::Pair;
use super::lower::{LARGEST_POPULATION, Lowered, Question, Side, positive};
use super::pair::Component;

const EVENT: &str = "fixed_size_sampled_gaussian";

/// Adds `count` steps that draw `sample` of `population` units.
pub(super) fn push(
    out: &mut Lowered,
    (side, question): (Side, Question),
    (sample, population): (u64, u64),
    noise_multiplier: f64,
    count: u64,
) -> Result<(), AccountantError> {
    if question.group > 1 {
        return Err(AccountantError::Unsupported { event: EVENT, question: "groups of several units" });
    }
    let sigma = positive("noise_multiplier", noise_multiplier)?;
    let refused =
        |name, value: u64, allowed| AccountantError::OutOfRange { name, value: value as f64, allowed };
    if !(1..=LARGEST_POPULATION).contains(&population) {
        return Err(refused("population", population, "1 to 1e12 units"));
    }
    let added = question.relation == NeighboringRelation::AddOrRemoveOne;
    if added && !(1..population).contains(&sample) {
        return Err(refused("sample_size", sample, "1 to population − 1 where the unit may be absent"));
    }
    if !(1..=population).contains(&sample) {
        return Err(refused("sample_size", sample, "1 to population"));
    }
    if sample == population {
        let moves = if question.relation == NeighboringRelation::ReplaceOne { 2.0 } else { 1.0 };
        out.mu_squared += moves * moves / (sigma * sigma) * count as f64;
        return Ok(());
    }
    // Rounded up: a larger chance costs more. The exact quotient may lie just above the float.
    let ulps = if question.optimistic { -4.0 } else { 4.0 };
    let q = sample as f64 / population as f64 * (1.0 + ulps * f64::EPSILON);
    if !(q > 0.0 && q < 1.0) {
        return Err(refused("sample_size", sample, "a sampling probability that a float tells from 1"));
    }
    let moved = |shift| vec![Component { weight: q, shift }];
    let removed = |side, shift| match side {
        Side::Add => Pair::new(sigma, Vec::new(), moved(shift)),
        Side::Remove | Side::Replace => Pair::new(sigma, moved(shift), Vec::new()),
    };
    let pair = match (question.relation, side) {
        (NeighboringRelation::AddOrRemoveOne, side) => removed(side, 2.0),
        (NeighboringRelation::ZeroOut, side) if question.optimistic => removed(side, 1.0),
        (NeighboringRelation::ReplaceOne, side) if question.optimistic => removed(side, 2.0),
        (NeighboringRelation::ZeroOut, Side::Add) => Pair::new(sigma, moved(1.0), moved(2.0)),
        (NeighboringRelation::ZeroOut, _) => Pair::new(sigma, moved(2.0), moved(1.0)),
        (NeighboringRelation::ReplaceOne, _) => Pair::new(sigma, moved(2.0), moved(2.0)),
    };
    out.push(pair, count);
    Ok(())
}
