//! Releasing words under differential privacy.
//!
//! A release turns the items of private units into a list of items with noisy counts. Everything after it, training
//! the vocabulary included, is post-processing.

mod config;
mod counting;
mod histogram;
mod sips;
mod threshold;

pub use config::{ReleaseConfig, ReleaseError};
pub use threshold::threshold_in_sensitivities;

use accountant::DpEvent;
use mechanisms::{PrivacyRng, RandomnessSource};

use crate::count::UnitItems;
use crate::unit::{Piece, UnitError};

/// Items that may be shown to anyone, and what showing them cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Released {
    /// Items with their noisy counts (in units of one privacy unit's whole contribution), all above 0, by falling
    /// count. The order says nothing about the order of the data.
    pub words: Vec<(String, f64)>,
    /// What the release spent.
    pub event: DpEvent,
    /// Whether the noise was secret.
    pub randomness: RandomnessSource,
}

/// Releases the items that enough units share, with noisy counts.
///
/// DP-SIPS: in each round every unit spreads a weight of L2 norm 1 evenly over its items not yet released; items whose
/// noisy total passes a threshold are released and leave. A last share of the budget counts the released items and the
/// public ones ([`crate::count::is_public_item`]).
///
/// # Guarantee
/// [`Released::event`], which equals [`ReleaseConfig::event`]. A unit's contribution to each round has L2 norm at most
/// 1 in exact integer arithmetic, and the noise is an exact discrete Gaussian.
///
/// # References
/// Swanberg, Desfontaines, Haney 2023, "DP-SIPS", <https://arxiv.org/abs/2301.01998>
///
/// ```
/// use dp_tokenizer::corpus::{Source, open};
/// use dp_tokenizer::release::{ReleaseConfig, release};
/// use dp_tokenizer::unit::{PrivacyUnit, pieces};
/// let notes = open(&Source::Embedded { records: 2000, seed: 7 }).map_err(|e| e.to_string())?;
/// let units = pieces(notes, PrivacyUnit::Record).map_err(|e| e.to_string())?;
/// let config = ReleaseConfig::new(1.0, 1e-7).map_err(|e| e.to_string())?;
/// let released = release(units, &config, &mechanisms::TestRng::from_seed(1)).map_err(|e| e.to_string())?;
/// assert!(released.words.iter().any(|w| w.0 == "▁daily"));
/// assert_eq!(released.event, accountant::vocabulary_release_event(1.0, 1e-7, &[0.0625, 0.1875, 0.5], 0.25));
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// [`ReleaseError::Units`] where the units cannot be read; the others are settled when the configuration is made.
pub fn release(
    units: impl IntoIterator<Item = Result<Piece, UnitError>>,
    config: &ReleaseConfig,
    rng: &impl PrivacyRng,
) -> Result<Released, ReleaseError> {
    let items = UnitItems::collect(units)?;
    let found = sips::rounds(&items, config, rng)?;
    let mut words = match config.count_noise_multiplier() {
        Some(noise_multiplier) => counting::count(&items, &found, noise_multiplier, rng)?,
        None => found.words(&items),
    };
    // The numbering follows the data's order; the list must not.
    words.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(Released { words, event: config.event(), randomness: rng.source() })
}

/// Counts of all items without noise, for text that is public.
///
/// # Errors
/// [`ReleaseError::Units`] where the text cannot be read.
pub fn public_counts(
    pieces: impl IntoIterator<Item = Result<Piece, UnitError>>,
) -> Result<Vec<(String, f64)>, ReleaseError> {
    let items = UnitItems::collect(pieces)?;
    let mut counts = vec![0_u64; items.distinct()];
    for &(number, count) in items.units().iter().flatten() {
        counts[number as usize] += u64::from(count);
    }
    let named = items.names().into_iter().zip(counts);
    let mut words: Vec<(String, f64)> = named.map(|(name, count)| (name.to_owned(), count as f64)).collect();
    words.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(words)
}
