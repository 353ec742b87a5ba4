//! A privacy statement in words.

use crate::{AccountantError, Delta, DpEvent, NeighboringRelation, VERSION, epsilon, tradeoff};

/// Returns a privacy statement for `event` at `delta`, for readers who do not know what ε is.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, statement};
/// let event = DpEvent::Gaussian { noise_multiplier: 1.0 };
/// let text = statement(&event, Delta::new(1e-5)?, AddOrRemoveOne, "record")?;
/// assert!(text.contains("ε ≤ 4.3772 at δ = 1e-5"));
/// assert!(text.contains("at most 69.2 times out of 100 on average"));
/// // e^4.3772 / (1 + e^4.3772).
/// assert!(text.contains("98.8 %"));
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// As [`epsilon`].
pub fn statement(
    event: &DpEvent,
    delta: Delta,
    relation: NeighboringRelation,
    unit: &str,
) -> Result<String, AccountantError> {
    let spent = epsilon(event, delta, relation)?;
    let odds = tradeoff::odds(event, relation)?;
    let change = match relation {
        NeighboringRelation::AddOrRemoveOne => "is added or removed",
        NeighboringRelation::ReplaceOne => "is exchanged for any other",
        NeighboringRelation::ZeroOut => "is replaced by an empty one",
    };
    Ok(format!(
        "The release is differentially private with ε ≤ {:.4} at δ = {:e} (certified; the true value is at least \
         {:.4}), where neighbouring data sets are those in which one {unit} {change}. In other words: an attacker \
         who knows everything but whether one {unit} was there, and starts from fifty to fifty, is right at most \
         {:.1} times out of 100 on average over all outcomes; after a single outcome, the attacker can be up to {:.1} % sure, and outcomes that allow more have an excess \
         probability of at most δ. Computed by accountant {VERSION}. The statement covers what was released through \
         the listed mechanisms, run as described, and nothing else: not what other sources say about the same \
         {unit}, and not a group of several.",
        round_up(spent.upper, 1e4),
        delta.get(),
        f64::floor(spent.lower * 1e4) / 1e4,
        round_up(odds.upper * 100.0, 10.0),
        round_up(tradeoff::confidence(spent.upper) * 100.0, 10.0),
    ))
}

/// Describes the strength of a guarantee at ε, with the range of ε (Ponomareva et al. 2023, section
/// 5.2, <https://arxiv.org/abs/2303.00654>).
///
/// ```
/// assert_eq!(accountant::strength(3.0), "reasonable (ε from 1 to 10)");
/// ```
#[must_use]
pub fn strength(epsilon: f64) -> &'static str {
    if epsilon <= 1.0 {
        "strong (ε up to 1)"
    } else if epsilon <= 10.0 {
        "reasonable (ε from 1 to 10)"
    } else {
        "weak or none (ε above 10)"
    }
}

/// Returns `value` with as many decimals as `scale` has zeros, never below it.
fn round_up(value: f64, scale: f64) -> f64 {
    f64::ceil(value * scale) / scale
}
