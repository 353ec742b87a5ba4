//! Releasing words under differential privacy.
//!
//! A release turns the items of private units into a list of items with noisy counts. Everything after it, training
//! the vocabulary included, is post-processing.

mod config;
mod contribution;
mod error;
mod fixed_point;
mod method;
mod noisy_counts;
mod paper;
mod rounds;
mod selection;
mod threshold;

pub use config::{Method, ReleaseConfig};
pub use error::ReleaseError;
pub use paper::{Paper, PaperHistogram};
pub(crate) use threshold::threshold_in_sensitivities;

use accountant::DpEvent;
use mechanisms::{PrivacyRng, RandomnessSource, ReleaseMethod, Words};

use crate::corpus::Source;
use crate::count::{CountOptions, UnitItems};
use crate::unit::{Piece, UnitError};

/// Items that may be shown to anyone, and what showing them cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Released {
    /// Items with their noisy counts, all above 0, by falling count. The counts are those of the method; for DP-SIPS a
    /// unit's whole contribution has norm 1. The order reveals nothing about the order of the data.
    pub words: Vec<(String, f64)>,
    /// The event, which says what the release spent.
    pub event: DpEvent,
    /// The source of the noise, which says whether it was secret.
    pub randomness: RandomnessSource,
}

/// Releases the items that enough units share, with noisy counts.
///
/// In each round every unit gives weights of L2 norm at most 1 to its items that are not yet released, as the [`Method`]
/// says. Items whose noisy total passes a threshold are released and leave. The last share of the budget pays for counts of
/// the released items and of the public ones (`crate::count::is_public_item`).
///
/// # Guarantee
/// [`Released::event`], which equals [`ReleaseConfig::event`]. One unit more or less moves each round's histogram by an L2
/// norm of at most 1 in integer arithmetic, and the noise is an exact discrete Gaussian.
///
/// ```
/// use dp_tokenizer::corpus::{Source, open};
/// use dp_tokenizer::release::{ReleaseConfig, release};
/// use dp_tokenizer::unit::{PrivacyUnit, pieces};
/// use mechanisms::{ReleaseMethod, Words};
/// let notes = open(&Source::Embedded { records: 2000, seed: 7 }).map_err(|e| e.to_string())?;
/// let units = pieces(notes, PrivacyUnit::Record).map_err(|e| e.to_string())?;
/// let config = ReleaseConfig::new(ReleaseMethod::Sips, 1.0, 1e-7).map_err(|e| e.to_string())?;
/// let released = release(units, Words::ByClass, &config, &mechanisms::TestRng::from_seed(1)).map_err(|e| e.to_string())?;
/// assert!(released.words.iter().any(|w| w.0 == "▁daily"));
/// assert_eq!(released.event, ReleaseMethod::Sips.event(1.0, 1e-7));
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// [`ReleaseError::Units`] where the units cannot be read; as [`check_units`]. The configuration excludes the other errors.
pub fn release(
    units: impl IntoIterator<Item = Result<Piece, UnitError>>,
    words: Words,
    config: &ReleaseConfig,
    rng: &dyn PrivacyRng,
) -> Result<Released, ReleaseError> {
    release_items(&UnitItems::from_pieces(units, words)?, config, rng)
}

/// Releases items as [`release`] does, after [`UnitItems::read`] has counted them by unit.
///
/// # Errors
/// As [`release`].
pub fn release_items(
    items: &UnitItems,
    config: &ReleaseConfig,
    rng: &dyn PrivacyRng,
) -> Result<Released, ReleaseError> {
    check_units(items, config)?;
    let selection = rounds::run(items, config, rng)?;
    let mut words = match config.count_noise_multiplier() {
        Some(noise_multiplier) => noisy_counts::count(items, &selection, noise_multiplier, rng)?,
        None => selection.words(items)?,
    };
    // The numbering follows the order of the data; the list must not.
    words.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(Released { words, event: config.event(), randomness: rng.source() })
}

/// Refuses units that the proof of the method does not cover. After it, nothing about the units stops [`release_items`], so that a
/// release can be charged.
///
/// # Errors
/// [`ReleaseError::TooManyUnits`] beyond the method's largest number of units; [`ReleaseError::NotInOrder`] for users whom the method
/// cannot put in order.
pub fn check_units(items: &UnitItems, config: &ReleaseConfig) -> Result<(), ReleaseError> {
    let Method::Planned(method) = config.method() else { return Ok(()) };
    match most_units(method) {
        Some(most) if items.count > most => Err(ReleaseError::TooManyUnits { most }),
        _ if needs_order(method) && items.shares_address => Err(ReleaseError::NotInOrder),
        _ => Ok(()),
    }
}

/// Whether a method treats units one after the other, in an order that does not depend on which of them take part.
fn needs_order(method: ReleaseMethod) -> bool {
    match method {
        ReleaseMethod::Policy => true,
        ReleaseMethod::Sips
        | ReleaseMethod::Pooled
        | ReleaseMethod::Mad2r
        | ReleaseMethod::Hoory2021
        | ReleaseMethod::Ponomareva2022 => false,
    }
}

/// Returns the number of units up to which the proof of a method holds, where it has such a limit.
#[must_use]
pub fn most_units(method: ReleaseMethod) -> Option<u64> {
    match method {
        ReleaseMethod::Policy | ReleaseMethod::Mad2r => Some(fixed_point::MAX_UNITS),
        ReleaseMethod::Sips
        | ReleaseMethod::Pooled
        | ReleaseMethod::Hoory2021
        | ReleaseMethod::Ponomareva2022 => None,
    }
}

/// Returns the least noisy count that the first round releases, in the counts of the method. For DP-SIPS it is in
/// contributions of norm 1.
///
/// # Errors
/// [`ReleaseError::Mechanism`] if the noise is too large to draw.
pub fn first_threshold(config: &ReleaseConfig) -> Result<f64, ReleaseError> {
    method::of(config).first_threshold(config)
}

/// Returns the counts of all items of a public corpus without noise, on several threads. The result is held in memory,
/// whatever the options say.
///
/// ```
/// use dp_tokenizer::{corpus::Source, count::{CountOptions, Words}, release::public_corpus_counts};
/// let notes = Source::Embedded { records: 100, seed: 7 };
/// let counts = public_corpus_counts(&notes, Words::ByClass, &CountOptions::default()).map_err(|e| e.to_string())?;
/// assert!(counts[0].1 >= counts[1].1);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// [`ReleaseError::Units`] where the text cannot be read.
pub fn public_corpus_counts(
    source: &Source,
    words: Words,
    options: &CountOptions,
) -> Result<Vec<(String, f64)>, ReleaseError> {
    public_item_counts(&UnitItems::read_public(source, words, options)?)
}

/// Returns counts as [`public_corpus_counts`] does, for items that are counted already, by whatever units.
///
/// # Errors
/// [`ReleaseError::Units`] where the counts cannot be read back.
pub fn public_item_counts(items: &UnitItems) -> Result<Vec<(String, f64)>, ReleaseError> {
    let mut counts = vec![0_u64; items.distinct()];
    items.each_unit(|_, held| held.iter().for_each(|&(n, c)| counts[n as usize] += u64::from(c)))?;
    let mut words = Vec::with_capacity(counts.len());
    items.each_name(|number, name| words.push((name.to_owned(), counts[number as usize] as f64)))?;
    words.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Files;
    use crate::unit::PrivacyUnit;
    use mechanisms::TestRng;

    #[test]
    fn released_weights_carry_the_noise_of_the_round_and_a_wrong_sigma_is_rejected() {
        // There are 300 units with one word each, which thus has weight 300 before noise. A quarter of μ² doubles the
        // noise: σ = 4.
        let config = ReleaseConfig::with_shares(2.0, 1e-6, &[0.25], 0.0).unwrap();
        let draws: Vec<f64> = (0..3000)
            .map(|seed| {
                let units = (0..300).map(|unit| Ok(Piece { unit, text: "fever".into() }));
                let released = release(units, Words::ByClass, &config, &TestRng::from_seed(seed)).unwrap();
                assert_eq!(released.words.len(), 1);
                released.words[0].1 - 300.0
            })
            .collect();
        let variance = draws.iter().map(|d| d * d).sum::<f64>() / draws.len() as f64;
        let tolerance = 4.9 * (2.0 / draws.len() as f64).sqrt(); // α = 1e-6
        assert!((variance / 16.0 - 1.0).abs() < tolerance, "{variance}");
        assert!((variance / 19.36 - 1.0).abs() > tolerance, "σ wrong by 10 % must be rejected");
    }

    /// A word that fails in the first round may pass in the second. With the same noise again, it never would.
    #[test]
    fn each_round_draws_noise_of_its_own() {
        let (draws, noise, delta) = (2000, 2.0, 1e-3);
        let two = ReleaseConfig::with_shares(noise, delta, &[0.5, 0.5], 0.0).unwrap();
        let one = ReleaseConfig::with_shares(noise, delta / 2.0, &[0.5], 0.0).unwrap();
        let threshold = first_threshold(&one).unwrap();
        assert_eq!(first_threshold(&two).unwrap(), threshold);
        let rate = |config: &ReleaseConfig| {
            let passed = (0..draws).filter(|&seed| {
                let units = (0..threshold as u64).map(|unit| Ok(Piece { unit, text: "fever".into() }));
                !release(units, Words::ByClass, config, &TestRng::from_seed(seed)).unwrap().words.is_empty()
            });
            passed.count() as f64 / f64::from(draws as u32)
        };
        let (first, either) = (rate(&one), rate(&two));
        // The tolerance is for α = 1e-6 and the difference of two rates, neither of which has more variance than 1/4.
        let tolerance = 4.9 * (0.5 / draws as f64).sqrt();
        assert!((either - (1.0 - (1.0 - first).powi(2))).abs() < 2.0 * tolerance, "{first} {either}");
        assert!(either > first + tolerance, "the same noise twice must be rejected: {first} {either}");
    }

    /// Oracle: the table of methods, from which plans are charged.
    #[test]
    fn a_method_spends_what_a_plan_charges_for_it() {
        for method in ReleaseMethod::GENERAL {
            let config = ReleaseConfig::new(method, 3.0, 1e-9).unwrap();
            assert_eq!(config.event(), method.event(3.0, 1e-9), "{method:?}");
        }
    }

    #[test]
    fn words_of_one_unit_alone_are_not_released() {
        let units = || {
            (0..2000).map(|unit| {
                let text = if unit == 7 { " fever secretcode".to_owned() } else { " fever cough".to_owned() };
                Ok(Piece { unit, text })
            })
        };
        let papers = [Paper::Hoory2021, Paper::Ponomareva2022];
        let papers = papers.map(|paper| Method::Paper(PaperHistogram { paper, words: 4 }));
        for method in ReleaseMethod::GENERAL.map(Method::Planned).into_iter().chain(papers) {
            let config = ReleaseConfig::new(method, 3.0, 1e-9).unwrap();
            let released = release(units(), Words::ByClass, &config, &TestRng::from_seed(1)).unwrap();
            let names: Vec<&str> = released.words.iter().map(|w| w.0.as_str()).collect();
            assert!(names.contains(&"▁fever") && names.contains(&"▁cough"), "{names:?}");
            assert!(!names.contains(&"▁secretcode"), "{names:?}");
            assert_eq!(released.event, config.event());
        }
    }

    #[test]
    fn items_of_one_unit_alone_pass_thresholds_of_rounds_that_follow_the_noise_no_more_often_than_delta() {
        // The test has δ = 0.2 over all rounds, and one unit with nine items of its own, whose weights follow the
        // noise. α = 1e-6.
        let (delta, draws) = (0.2, 4_000);
        let alone = "aa bb cc dd ee ff gg hh ii";
        let rate = |config: &ReleaseConfig| {
            let passed = (0..draws).filter(|&seed| {
                let unit = std::iter::once(Ok(Piece { unit: 0, text: alone.into() }));
                !release(unit, Words::ByClass, config, &TestRng::from_seed(seed)).unwrap().words.is_empty()
            });
            passed.count() as f64 / draws as f64
        };
        let tolerance = 4.9 * (delta * (1.0 - delta) / draws as f64).sqrt();
        for method in [ReleaseMethod::Pooled, ReleaseMethod::Mad2r] {
            let config = |delta| {
                let config = ReleaseConfig::with_shares(0.8, delta, method.round_shares(), 0.0).unwrap();
                config.by(method).max_items_per_unit(9)
            };
            let passed = rate(&config(delta));
            assert!(passed <= delta + tolerance, "{method:?}: {passed}");
            // The bounds give each item more weight than nine can share, so the test rejects only much lower thresholds.
            assert!(rate(&config(0.95)) > delta + tolerance, "{method:?}");
        }
    }

    #[test]
    fn units_that_the_proof_of_a_method_does_not_cover_are_refused() {
        let units = (0..20).map(|unit| Ok(Piece { unit, text: "fever".into() }));
        let mut items = UnitItems::from_pieces(units, Words::ByClass).unwrap();
        assert_eq!((items.count, items.shares_address), (20, false));
        for (count, shares_address) in [(1 << 24, false), ((1 << 24) + 1, false), (20, true)] {
            (items.count, items.shares_address) = (count, shares_address);
            for method in ReleaseMethod::GENERAL {
                let config = ReleaseConfig::new(method, 3.0, 1e-9).unwrap();
                let is_ordered = method == ReleaseMethod::Policy;
                let is_covered = match method {
                    ReleaseMethod::Policy | ReleaseMethod::Mad2r => count <= 1 << 24,
                    _ => true,
                };
                let expected = is_covered && !(is_ordered && shares_address);
                assert_eq!(check_units(&items, &config).is_ok(), expected, "{method:?} {count}");
                let released = release_items(&items, &config, &TestRng::from_seed(1));
                assert_eq!(released.is_ok(), expected, "{method:?} {count}");
            }
        }
    }

    /// Two users with one place in the order could each take the other's turn. These ids have one hash of 64 bits.
    #[test]
    fn users_whose_ids_have_one_hash_are_refused_where_order_matters() {
        let folder = tempfile::tempdir().unwrap();
        let config = |method| ReleaseConfig::new(method, 3.0, 1e-9).unwrap();
        for (other, is_accepted) in [("14eyqagt}~P!e9#A", false), ("14eyqagt}~P!e9#B", true)] {
            let path = folder.path().join("notes.jsonl");
            let record = |user| format!("{{\"text\": \"fever\", \"user\": \"{user}\"}}\n");
            std::fs::write(&path, record("user-001account1") + &record(other)).unwrap();
            let files = Files { user_field: Some("user".to_owned()), ..Files::of([path]) };
            let options = CountOptions::default();
            let source = Source::Files(files);
            let items = UnitItems::read(&source, PrivacyUnit::User, Words::ByClass, &options).unwrap();
            assert_eq!(items.count, 2);
            assert_eq!(check_units(&items, &config(ReleaseMethod::Policy)).is_ok(), is_accepted, "{other}");
            assert!(check_units(&items, &config(ReleaseMethod::Mad2r)).is_ok());
        }
    }

    #[test]
    fn out_of_range_settings_are_refused() {
        for (noise, delta, shares, count) in [
            (0.0, 1e-6, &[1.0][..], 0.0),
            (f64::NAN, 1e-6, &[1.0], 0.0),
            (1.0, 0.0, &[1.0], 0.0),
            (1.0, 1.0, &[1.0], 0.0),
            (1.0, 1e-6, &[], 0.5),
            (1.0, 1e-6, &[0.5, f64::NAN], 0.1),
            (1.0, 1e-6, &[0.8], 0.3),
            (1.0, 1e-6, &[0.5], -0.1),
        ] {
            assert!(
                ReleaseConfig::with_shares(noise, delta, shares, count).is_err(),
                "{noise} {delta} {shares:?}"
            );
        }
        for words in [0, 4097] {
            let hoory = PaperHistogram { paper: Paper::Hoory2021, words };
            assert!(ReleaseConfig::new(hoory, 1.0, 1e-6).is_err());
        }
    }
}
