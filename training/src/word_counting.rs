//! Counts the words of private text, unit by unit, for the release of a vocabulary. On several ranks, each rank counts its own share.

use std::path::Path;

use dp_tokenizer::corpus::{LineFiles, Source};
use dp_tokenizer::count::{CountOptions, CountedShare, GatheredShares, UnitItems};
use mechanisms::{PrivacyUnit, Words};
use plan::CertifiedPlan;

use crate::RunError;
use crate::data::vocabulary_source;
use crate::disclosure::Private;
use crate::progress::reading;
use crate::ranks::Ranks;
use crate::store::RunStore;

/// Message of the progress bar.
const COUNTING: &str = "counting the words of the training text";

/// Returns whether the run's vocabulary is still to be released.
///
/// # Errors
/// [`RunError::Storage`].
pub(crate) fn is_due(plan: &CertifiedPlan, store: &RunStore<'_>) -> Result<bool, RunError> {
    Ok(plan.tokenizer_release().is_some() && store.tokenizer()?.is_none())
}

/// Counts the items of each unit on several threads. Counts beyond the memory of `options` go to a
/// temporary file.
///
/// # Errors
/// [`RunError::Refused`] if the text cannot be read.
pub(crate) fn count(
    source: &Source,
    unit: PrivacyUnit,
    words: Words,
    options: &CountOptions,
) -> Result<Private<UnitItems>, RunError> {
    let _shown = reading(COUNTING, source, 1);
    UnitItems::read(source, unit, words, options).map(Private::new).map_err(|error| unreadable(&error))
}

/// Counts as [`count`] does, each rank in its own share of the text, and returns all counts on the first rank. Returns `None` if the ranks
/// do not divide the text: the first one then counts all of it. All ranks call this together.
///
/// # Errors
/// [`RunError::Refused`] on all ranks if the text can no longer be read, or the counts not stored.
pub(crate) fn count_in_shares(
    plan: &CertifiedPlan,
    base: &Path,
    ranks: &Ranks,
) -> Result<Option<Private<UnitItems>>, RunError> {
    let source = vocabulary_source(plan.plan(), base);
    let files = LineFiles::of(&source).filter(|_| ranks.are_several());
    let (Some(files), Some(planned)) = (files, plan.tokenizer_release()) else { return Ok(None) };
    let unit = plan.plan().privacy().unit;
    let sizes = ranks.of_first(ranks.agree(files.sizes().map_err(|error| unreadable(&error)))?)?;
    let whole = CountOptions::default();
    let options = CountOptions { memory: whole.memory / ranks.on_this_host(), ..whole };
    let (rank, count) = (ranks.rank() as u64, ranks.count() as u64);
    let shown = reading(COUNTING, &source, count);
    let read = CountedShare::read(&files, &sizes, rank, count, unit, planned.words, &options);
    let own = ranks.agree(read.map_err(|error| unreadable(&error)))?;
    drop(shown);
    let heads = ranks.exchange(&own.head());
    let mut all = GatheredShares::new(ranks.count(), &options);
    let lengths = ranks.numbers(own.length());
    let sent = ranks.collect_bytes(&lengths, own.bytes(), |rank, bytes| all.push(rank, bytes));
    ranks.agree(sent.map_err(|error| unreadable(&error)))?;
    drop(own);
    let items = ranks.is_first().then(|| all.into_items(&heads, unit)).transpose();
    Ok(ranks.agree(items.map_err(|error| unreadable(&error)))?.map(Private::new))
}

pub(crate) fn unreadable(error: &dyn std::fmt::Display) -> RunError {
    RunError::Refused(format!("data.source: {error}"))
}
