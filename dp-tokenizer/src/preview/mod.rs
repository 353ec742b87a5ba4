//! A preview of the private vocabulary of a text, for its owner, before any budget is spent.
//!
//! A preview reads raw text and shows raw counts. It is **not private**: nothing of it may leave the machine, and no event
//! describes it. It runs the real release, with fresh noise.

mod counts;
mod records;

use std::io::BufRead;

use accountant::{DpEvent, normal};
use mechanisms::{MechanismError, OsRng, PrivacyRng, PrivacyUnit, ReleaseMethod, Words};
use serde::{Deserialize, Serialize};

use crate::corpus::{CorpusError, Record, Records};
use crate::items::{word_of_label, words_of_pair};
use crate::release::{
    self, Method, Paper, PaperHistogram, ReleaseConfig, ReleaseError, first_threshold,
    threshold_in_sensitivities,
};
use crate::train::{TrainError, UnigramConfig, unigram};
use crate::unit::{UnitError, pieces};
use counts::Counts;
use records::Lines;
use tokenizer::{FormatError, Tokenizer};

/// The number of words on which the vocabulary without noise is trained.
const PLAIN_WORDS: usize = 30_000;
/// The number of words in each list.
const LISTED: usize = 40;
/// The most items of a unit that count, as in [`ReleaseConfig::new`].
const CAP: u32 = 4096;

/// The settings of a preview: the division into units, and the release of words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The JSON field with the text of a record. `None` makes every line a record.
    pub text_field: Option<String>,
    /// The JSON field with the user.
    pub user_field: Option<String>,
    /// The privacy unit.
    pub unit: PrivacyUnit,
    /// The definition of a word.
    pub words: Words,
    /// The method that releases words.
    pub method: Method,
    /// Noise multiplier of the whole release, seen as one Gaussian mechanism.
    pub noise_multiplier: f64,
    /// Probability that any word which only one unit holds is released.
    pub threshold_delta: f64,
    /// Number of tokens.
    pub vocab_size: usize,
    /// A sentence to show in tokens. `None` takes the beginning of the text.
    pub sentence: Option<String>,
}

/// The result of a preview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preview {
    /// Units in the text.
    pub units: u64,
    /// Distinct words.
    pub distinct_words: u64,
    /// Words, repetitions included.
    pub total_words: u64,
    /// Distinct words that are released.
    pub released_words: u64,
    /// Share of the text's words that are released.
    pub coverage: f64,
    /// Most frequent words that are not released, with the number of units that hold them.
    pub lost: Vec<(String, u64)>,
    /// Words released, by falling noisy count.
    pub kept: Vec<String>,
    /// Words by the number of units that hold them, in bins a factor of two wide.
    pub survival: Vec<Bin>,
    /// Bytes of text per token of the private vocabulary.
    pub bytes_per_token: f64,
    /// Bytes of text per token of the vocabulary without noise.
    pub plain_bytes_per_token: f64,
    /// Tokens of the private vocabulary.
    pub vocab_size: u64,
    /// The sentence in tokens of the vocabulary without noise.
    pub before: Vec<String>,
    /// The sentence in tokens of the private vocabulary.
    pub after: Vec<String>,
    /// Lines in which invalid UTF-8 was replaced.
    pub replaced_lines: u64,
}

/// Words of similar frequency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Number of units that hold such a word: the geometric middle of the bin.
    pub units: f64,
    /// Distinct words in the bin.
    pub words: u64,
    /// The number of these words that were released.
    pub released: u64,
    /// Probability that a word is released which `units` units hold, each with the median number of words. An underestimate
    /// for later rounds, where released words have made room. `None` for methods whose weights depend on one another.
    pub probability: Option<f64>,
}

/// The reason why a preview fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PreviewError {
    /// The text contains zero bytes.
    #[error(
        "this is no text: it contains zero bytes; give plain text or JSON Lines, and unpack archives first"
    )]
    Binary,
    /// The text cannot be read or divided into units.
    #[error(transparent)]
    Units(#[from] UnitError),
    /// A setting of the release is out of range.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// The released words are not enough for a vocabulary.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The system provides no randomness.
    #[error(transparent)]
    Randomness(#[from] MechanismError),
    /// The trained vocabulary cannot be written.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Reads the text, releases its words once with fresh noise, and compares.
///
/// Memory: about eight bytes for each distinct word of each unit, and the distinct words themselves.
///
/// ```
/// use dp_tokenizer::preview::{Settings, preview};
/// use mechanisms::{PrivacyUnit, ReleaseMethod, Words};
/// let text = "the fever rises\n".repeat(500) + "a secret\n";
/// let settings = Settings {
///     text_field: None,
///     user_field: None,
///     unit: PrivacyUnit::Record,
///     words: Words::ByClass,
///     method: ReleaseMethod::Sips.into(),
///     noise_multiplier: 1.0,
///     threshold_delta: 1e-6,
///     vocab_size: 400,
///     sentence: Some("the fever".into()),
/// };
/// let seen = preview(text.as_bytes(), &settings)?;
/// assert_eq!((seen.units, seen.distinct_words), (501, 5));
/// assert!(seen.kept.iter().any(|word| word == "▁fever"));
/// assert_eq!(seen.lost, [("▁secret".to_owned(), 1)]);
/// # Ok::<(), dp_tokenizer::preview::PreviewError>(())
/// ```
///
/// # Errors
/// [`PreviewError`] if the text is empty, binary or in another format, a setting is out of range, or no word is released.
pub fn preview(reader: impl BufRead, settings: &Settings) -> Result<Preview, PreviewError> {
    preview_with(reader, settings, &OsRng::new()?)
}

/// Does what [`preview()`] does for records that [`crate::survey::open`] found. The fields of `settings` are not used.
///
/// # Errors
/// As [`preview()`].
pub fn preview_records(mut records: Records, settings: &Settings) -> Result<Preview, PreviewError> {
    let preview = preview_of(&mut records, settings, &OsRng::new()?)?;
    Ok(Preview { replaced_lines: records.replaced_lines(), ..preview })
}

fn preview_with(
    reader: impl BufRead,
    settings: &Settings,
    rng: &dyn PrivacyRng,
) -> Result<Preview, PreviewError> {
    let lines = Lines::new(reader, settings.text_field.clone(), settings.user_field.clone());
    let seen = lines.seen();
    match preview_of(lines, settings, rng) {
        Err(_) if seen.binary() => Err(PreviewError::Binary),
        preview => Ok(Preview { replaced_lines: seen.replaced_lines(), ..preview? }),
    }
}

/// Returns the preview of records, of which no lines were replaced.
fn preview_of(
    records: impl Iterator<Item = Result<Record, CorpusError>>,
    settings: &Settings,
    rng: &dyn PrivacyRng,
) -> Result<Preview, PreviewError> {
    let config = config(settings)?;
    let mut counts = Counts::new(settings.words);
    let tapped = pieces(records, settings.unit)?.map(|piece| piece.inspect(|piece| counts.take(piece)));
    let released = release::release(tapped, settings.words, &config, rng)?;
    if counts.units() == 0 {
        return Err(UnitError::from(CorpusError::Empty { source_name: "the text".to_owned() }).into());
    }
    let train = |words: &[(String, f64)]| {
        let vocab_size = settings.vocab_size;
        let config = UnigramConfig { vocab_size, seed_size: 200_000, ..Default::default() };
        // Tokens are learnt from words, not from pairs of words or words with their labels.
        let is_word = |item: &str| match settings.words {
            Words::Pairs => words_of_pair(item).is_none(),
            Words::PairsByLabel => word_of_label(item).is_none() && words_of_pair(item).is_none(),
            _ => true,
        };
        let words: Vec<_> = words.iter().filter(|(item, _)| is_word(item)).cloned().collect();
        unigram(&words, &config).map(|trained| trained.tokenizer)
    };
    let private = train(&released.words)?;
    let plain = train(&counts.most_frequent(PLAIN_WORDS))?;
    let sentence = settings.sentence.clone().unwrap_or_else(|| counts.first_sentence());
    let known = counts.compare(&released.words);
    Ok(Preview {
        units: counts.units(),
        distinct_words: counts.distinct(),
        total_words: counts.total(),
        released_words: known.released,
        coverage: known.coverage,
        lost: known.lost.into_iter().take(LISTED).collect(),
        kept: released.words.iter().take(LISTED).map(|word| word.0.clone()).collect(),
        survival: counts.bins(|units| probability(settings, &config, units, counts.typical_items()))?,
        bytes_per_token: bytes_per_token(&private, counts.sample()),
        plain_bytes_per_token: bytes_per_token(&plain, counts.sample()),
        vocab_size: private.vocab_size() as u64,
        before: in_tokens(&plain, &sentence),
        after: in_tokens(&private, &sentence),
        replaced_lines: 0,
    })
}

fn config(settings: &Settings) -> Result<ReleaseConfig, ReleaseError> {
    let Settings { unit, noise_multiplier, threshold_delta, .. } = *settings;
    match settings.method {
        Method::Planned(method) => ReleaseConfig::planned(method, unit, noise_multiplier, threshold_delta),
        Method::Paper(_) => ReleaseConfig::new(settings.method, noise_multiplier, threshold_delta),
    }
}

/// Returns the probability that some round releases a word which `units` units hold, each among `items` items.
fn probability(
    settings: &Settings,
    config: &ReleaseConfig,
    units: f64,
    items: u32,
) -> Result<Option<f64>, ReleaseError> {
    let DpEvent::Composed { events } = config.event() else { return Ok(None) };
    let mut hidden = 1.0;
    for event in events {
        let DpEvent::ThresholdedHistogram { noise_multiplier, threshold_delta } = event else { continue };
        let (weight, sigma, threshold) = match settings.method {
            Method::Planned(ReleaseMethod::Sips) => {
                let threshold = threshold_in_sensitivities(noise_multiplier, threshold_delta, CAP)?;
                (1.0 / f64::sqrt(f64::from(items.clamp(1, CAP))), noise_multiplier, threshold)
            }
            Method::Planned(_) => return Ok(None),
            Method::Paper(PaperHistogram { paper, words }) => {
                let norm = match paper {
                    Paper::Hoory2021 => f64::sqrt(f64::from(words)),
                    Paper::Ponomareva2022 => f64::from(words),
                };
                (1.0, noise_multiplier * norm, first_threshold(config)?)
            }
        };
        hidden *= normal::sf((units * weight - threshold) / sigma);
    }
    Ok(Some(1.0 - hidden))
}

fn bytes_per_token(tokenizer: &Tokenizer, sample: &str) -> f64 {
    let mut encoder = tokenizer.encoder();
    let tokens: usize = sample.lines().map(|line| encoder.encode(line).len()).sum();
    sample.len() as f64 / tokens.max(1) as f64
}

fn in_tokens(tokenizer: &Tokenizer, sentence: &str) -> Vec<String> {
    let ids = tokenizer.encode(sentence);
    ids.into_iter().map(|id| tokenizer.token(id).unwrap_or_default().to_owned()).collect()
}

#[cfg(test)]
mod tests;
