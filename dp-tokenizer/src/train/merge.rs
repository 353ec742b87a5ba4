//! Prepares words for the unigram trainer: normalized, each once, and cut where encoding cuts text before the model.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::seeds::MAX_WORD_CHARS;
use super::{TrainError, UnigramConfig};
use tokenizer::BLANK;
use tokenizer::pretokenize::Metaspace;

/// Checks, normalizes and sorts the words, adds up equal ones, and splits them at symbols and rare characters.
pub(super) fn merge(
    words: &[(String, f64)],
    config: &UnigramConfig,
) -> Result<Vec<(String, f64)>, TrainError> {
    let mut merged: BTreeMap<Cow<'_, str>, f64> = BTreeMap::new();
    for (index, (word, count)) in words.iter().enumerate() {
        if !(count.is_finite() && *count > 0.0) {
            return Err(TrainError::BadCount { index, count: *count });
        }
        match &config.normalizer {
            None => *merged.entry(Cow::Borrowed(word)).or_default() += count,
            Some(normalizer) => {
                let normal = normalizer.normalize(&word.replace(BLANK, " ")).replace(' ', "\u{2581}");
                let blanks = Metaspace { split: config.split_by_whitespace, ..Metaspace::default() };
                for part in blanks.words(&normal) {
                    *merged.entry(Cow::Owned(part.to_owned())).or_default() += count;
                }
            }
        }
    }
    let mut rare = rare_characters(&merged, config.character_coverage);
    rare.retain(|c| !config.required_characters.contains(*c));
    if !rare.is_empty() {
        merged = cut_all(merged, |word| word.split(|c| rare.contains(&c)).collect());
    }
    let reserved = config.symbols.iter().map(String::as_str).chain(config.roles.names());
    // Encoding splits texts at symbols too, before the model.
    for symbol in reserved.filter(|symbol| !symbol.is_empty()) {
        merged = cut_all(merged, |word| word.split(symbol).collect());
    }
    merged.retain(|word, _| !word.is_empty() && word.chars().count() <= MAX_WORD_CHARS);
    if merged.is_empty() {
        return Err(TrainError::NoWords);
    }
    Ok(merged.into_iter().map(|(word, count)| (word.into_owned(), count)).collect())
}

/// Scales so that the least count is at least 1, because the trainer drops pieces with an expected count below one half.
pub(super) fn scale(words: &mut [(String, f64)]) {
    let least = words.iter().map(|word| word.1).fold(f64::INFINITY, f64::min);
    if least < 1.0 {
        words.iter_mut().for_each(|word| word.1 *= 1.0 / least);
    }
}

/// Returns the parts of the words, each with the sum of the counts of its words.
fn cut_all<'a>(
    words: BTreeMap<Cow<'a, str>, f64>,
    parts: impl Fn(&str) -> Vec<&str>,
) -> BTreeMap<Cow<'a, str>, f64> {
    let mut cut: BTreeMap<Cow<'a, str>, f64> = BTreeMap::new();
    for (word, count) in words {
        let is_whole = parts(&word).len() == 1;
        if is_whole {
            *cut.entry(word).or_default() += count;
            continue;
        }
        for part in parts(&word) {
            *cut.entry(Cow::Owned(part.to_owned())).or_default() += count;
        }
    }
    cut
}

/// Returns the rare characters beyond those that cover this share of all, without printable ASCII.
fn rare_characters(words: &BTreeMap<Cow<'_, str>, f64>, coverage: f64) -> BTreeSet<char> {
    let mut counts: BTreeMap<char, f64> = BTreeMap::new();
    if coverage < 1.0 {
        for (word, count) in words {
            word.chars().for_each(|c| *counts.entry(c).or_default() += count);
        }
    }
    let total: f64 = counts.values().sum();
    let mut ranked: Vec<(char, f64)> = counts.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut covered = 0.0;
    ranked.retain(|&(c, count)| {
        let rare = covered >= coverage * total;
        covered += count;
        rare && !c.is_ascii_graphic() && c != BLANK
    });
    ranked.into_iter().map(|(c, _)| c).collect()
}
