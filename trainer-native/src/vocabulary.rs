//! The tokenizer of a run: released privately, read from a public file, or bytes; then the same to the end.

use std::collections::BTreeMap;
use std::path::Path;

use dp_tokenizer::Tokenizer;
use dp_tokenizer::count::items;
use dp_tokenizer::release::{ReleaseConfig, release};
use dp_tokenizer::train::{TrainError, UnigramConfig, unigram};
use mechanisms::PrivacyRng;
use plan::CertifiedPlan;

use crate::RunError;
use crate::data::Units;
use crate::durable;
use crate::objective::{Objective, special_tokens};
use crate::progress::note;
use crate::store::{RunStore, files};

/// What stands for a blank in the vocabulary's words.
const BLANK: &str = "\u{2581}";

/// The tokenizer of the run: the saved one if there is one, else a new one, saved.
///
/// A private release is charged on the ledger before the text is looked at.
pub(crate) fn obtain(
    plan: &CertifiedPlan,
    base: &Path,
    units: &Units,
    store: &mut RunStore<'_>,
    rng: &impl PrivacyRng,
) -> Result<Tokenizer, RunError> {
    let path = store.path().join(files::TOKENIZER);
    if let Some(json) = store.tokenizer()? {
        return parse(&json, &path);
    }
    if !store.has_unrecorded_tokenizer() {
        let json = make(plan, base, units, store, rng)?;
        store.save_tokenizer(&json)?;
    }
    let tokenizer = read_file(&path)?;
    store.record_tokenizer()?;
    Ok(tokenizer)
}

/// Refuses a public tokenizer that cannot be used, before anything is written.
pub(crate) fn check_public(plan: &CertifiedPlan, base: &Path) -> Result<(), RunError> {
    if let plan::Tokenizer::Public(public) = plan.plan().tokenizer() {
        Objective::new(plan.plan(), &read_file(&base.join(&public.path))?)?;
    }
    Ok(())
}

/// Reads the tokenizer of a run folder.
pub(crate) fn read(folder: &Path) -> Result<Tokenizer, RunError> {
    read_file(&folder.join(files::TOKENIZER))
}

/// Reads a `tokenizer.json`.
pub(crate) fn read_file(path: &Path) -> Result<Tokenizer, RunError> {
    parse(&durable::read(path)?, path)
}

fn parse(bytes: &[u8], path: &Path) -> Result<Tokenizer, RunError> {
    let refused = |error: &dyn std::fmt::Display| RunError::Refused(format!("{}: {error}", path.display()));
    let text = std::str::from_utf8(bytes).map_err(|error| refused(&error))?;
    Tokenizer::from_json(text).map_err(|error| refused(&error))
}

fn make(
    plan: &CertifiedPlan,
    base: &Path,
    units: &Units,
    store: &mut RunStore<'_>,
    rng: &impl PrivacyRng,
) -> Result<String, RunError> {
    // What the objective needs stands after what is learnt, and within the plan's limit.
    let special = special_tokens(plan.plan().training().objective, plan.plan().model().context as usize);
    match plan.plan().tokenizer() {
        plan::Tokenizer::Public(public) => Ok(read_file(&base.join(&public.path))?.to_json()),
        plan::Tokenizer::Bytes => Ok(bytes_only()?.with_special_tokens(&special).to_json()),
        plan::Tokenizer::Train(settings) => {
            let words = match plan.tokenizer_release() {
                Some(planned) => release_words(planned, units, store, rng)?,
                None => count_public_words(units),
            };
            let config = UnigramConfig {
                vocab_size: (settings.vocab_size as usize).saturating_sub(special.len()),
                byte_fallback: settings.byte_fallback,
                ..UnigramConfig::default()
            };
            let trained = unigram(&words, &config)
                .map_err(|error| RunError::Refused(format!("tokenizer.train: {error}")))?;
            if let Some(warning) = trained.warning() {
                note(&format!("tokenizer.train: {warning}"));
            }
            Ok(trained.tokenizer.with_special_tokens(&special).to_json())
        }
    }
}

/// Releases the words of private units: charged first, then computed.
fn release_words(
    planned: &plan::TokenizerRelease,
    units: &Units,
    store: &mut RunStore<'_>,
    rng: &impl PrivacyRng,
) -> Result<Vec<(String, f64)>, RunError> {
    let failed = |error: &dyn std::fmt::Display| RunError::Failed(format!("vocabulary release: {error}"));
    let config = ReleaseConfig::new(planned.method, planned.noise_multiplier, planned.threshold_delta)
        .map_err(|error| failed(&error))?;
    if config.event() != planned.event {
        return Err(failed(&"its event is not the one the plan certifies"));
    }
    store.charge_release(config.event(), rng.source())?;
    let pieces = units.texts.for_mechanism().iter().map(|part| Ok(part.piece.clone()));
    let released = release(pieces, &config, rng).map_err(|error| failed(&error))?;
    if released.words.is_empty() {
        return Err(RunError::Refused(
            "tokenizer.train: no word passed the release's threshold; give more units or a larger privacy.tokenizer_share,              or use \"bytes\" or a public tokenizer"
                .to_owned(),
        ));
    }
    Ok(released.words)
}

/// Counts the words of text that the plan declares public.
fn count_public_words(units: &Units) -> Vec<(String, f64)> {
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    for part in units.texts.for_mechanism() {
        items(&part.piece.text, |item| *counts.entry(item.to_owned()).or_default() += 1.0);
    }
    counts.into_iter().collect()
}

/// One token a printable ASCII character or byte, beside the special tokens and the blank.
fn bytes_only() -> Result<Tokenizer, RunError> {
    let words = [(BLANK.to_owned(), 1.0)];
    let smallest = |vocab_size| unigram(&words, &UnigramConfig { vocab_size, ..UnigramConfig::default() });
    let trained = match smallest(1) {
        Err(TrainError::TooSmall { needed, .. }) => smallest(needed),
        other => other,
    };
    trained.map(|trained| trained.tokenizer).map_err(|error| RunError::Failed(error.to_string()))
}
