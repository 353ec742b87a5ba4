//! The unigram trainer: expectation–maximisation over all cuts, pruning the pieces that are missed least.
//!
//! Deterministic: sums are taken in a fixed order, ties are broken by the piece itself.
//!
//! # References
//! Kudo 2018, "Subword regularization", <https://arxiv.org/abs/1804.10959>; SentencePiece's trainer for the shape of
//! the schedule (0.75 a round, two EM steps each, digamma in the M-step).

use std::collections::BTreeMap;

use super::TrainError;
use super::lattice::{Lattices, MAX_CHARS, Scratch};
use super::seeds::seeds;
use crate::encode::{DoubleArray, Unigram, byte_token};
use crate::tokenizer::{BLANK, EOS, PAD, SpecialTokens, Tokenizer, UNK};

/// How to train.
#[derive(Clone, Debug, PartialEq)]
pub struct UnigramConfig {
    /// Tokens wanted, special tokens and bytes included.
    pub vocab_size: usize,
    /// Whether characters outside the vocabulary are written as bytes; without it they are `<unk>`.
    pub byte_fallback: bool,
    /// Candidates to start from.
    pub seed_size: usize,
    /// Share of pieces that survive a round.
    pub shrinking_factor: f64,
}

impl Default for UnigramConfig {
    fn default() -> Self {
        Self { vocab_size: 8000, byte_fallback: true, seed_size: 1_000_000, shrinking_factor: 0.75 }
    }
}

/// A trained tokenizer.
pub struct Trained {
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// Tokens wanted.
    pub requested: usize,
}

impl Trained {
    /// What the user should know: fewer pieces exist than were wanted.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let reached = self.tokenizer.vocab_size();
        (reached < self.requested).then(|| {
            format!(
                "the released words hold only {reached} pieces, fewer than vocab_size = {}; the vocabulary shrank to that",
                self.requested
            )
        })
    }
}

/// Trains a unigram tokenizer on words with their counts. Words start with `▁` where a blank precedes them.
///
/// Only the words given, the printable ASCII characters and the bytes decide the vocabulary.
///
/// # Errors
/// [`TrainError`] without words, with a count that is not finite and positive, or with too small a `vocab_size`.
pub fn unigram(words: &[(String, f64)], config: &UnigramConfig) -> Result<Trained, TrainError> {
    let words = merge(words)?;
    let required = required_characters(&words);
    let fixed = 3 + if config.byte_fallback { 256 } else { 0 };
    let needed = fixed + required.len();
    if config.vocab_size < needed {
        return Err(TrainError::TooSmall { given: config.vocab_size, needed });
    }
    let room = config.vocab_size - needed;
    let mut model = Model::new(&words, config.seed_size.max(room));
    let target = room + room / 10 + model.characters;
    loop {
        model.em_step(&words);
        model.em_step(&words);
        if model.pieces.len() <= target {
            break;
        }
        let next = (model.pieces.len() as f64 * config.shrinking_factor) as usize;
        model.prune(&words, next.max(target));
    }
    let pieces = finish(model, &required, room, config.byte_fallback);
    let special = (0..).zip([PAD, EOS, UNK].map(str::to_owned)).collect();
    let unigram = Unigram::new(pieces, Some(2), config.byte_fallback).ok_or(TrainError::NoWords)?;
    let tokenizer = Tokenizer::new(unigram, SpecialTokens::new(special));
    Ok(Trained { tokenizer, requested: config.vocab_size })
}

/// Checks and sorts the words, adds up repeated ones, and scales so that the least count is at least 1: the trainer
/// drops pieces expected less than half a time.
fn merge(words: &[(String, f64)]) -> Result<Vec<(String, f64)>, TrainError> {
    let mut merged: BTreeMap<&str, f64> = BTreeMap::new();
    for (index, (word, count)) in words.iter().enumerate() {
        if !(count.is_finite() && *count > 0.0) {
            return Err(TrainError::BadCount { index, count: *count });
        }
        if !word.is_empty() && word.chars().count() <= MAX_CHARS {
            *merged.entry(word).or_default() += count;
        }
    }
    let least = merged.values().copied().fold(f64::INFINITY, f64::min);
    let scale = if least < 1.0 { 1.0 / least } else { 1.0 };
    if merged.is_empty() {
        return Err(TrainError::NoWords);
    }
    Ok(merged.into_iter().map(|(word, count)| (word.to_owned(), count * scale)).collect())
}

/// Characters that must be tokens: printable ASCII and `▁`, which are public, and those of the words.
fn required_characters(words: &[(String, f64)]) -> Vec<char> {
    let mut all: std::collections::BTreeSet<char> = ('!'..='~').collect();
    all.insert(BLANK);
    all.extend(words.iter().flat_map(|w| w.0.chars()));
    all.into_iter().collect()
}

/// The pieces under training. The first `characters` are single characters, which are never dropped.
struct Model {
    pieces: Vec<String>,
    /// Log probabilities.
    scores: Vec<f64>,
    characters: usize,
    /// Cuts of the words.
    words: Lattices,
    /// Cuts of the pieces that are not single characters.
    inner: Lattices,
    scratch: Scratch,
}

impl Model {
    fn new(words: &[(String, f64)], seed_size: usize) -> Self {
        let mut characters: BTreeMap<char, f64> = BTreeMap::new();
        for (word, count) in words {
            word.chars().for_each(|c| *characters.entry(c).or_default() += count);
        }
        let mut seeds = seeds(words);
        let value = |s: &super::seeds::Seed| s.count * s.chars as f64;
        seeds.sort_unstable_by(|a, b| value(b).total_cmp(&value(a)).then_with(|| a.piece.cmp(&b.piece)));
        seeds.truncate(seed_size);
        let mut pieces: Vec<String> = characters.keys().map(char::to_string).collect();
        let mut weights: Vec<f64> = characters.values().copied().collect();
        weights.extend(seeds.iter().map(value));
        pieces.extend(seeds.into_iter().map(|s| s.piece));
        let total = libm::log(weights.iter().sum());
        let scores = weights.iter().map(|&w| libm::log(w) - total).collect();
        let trie = DoubleArray::new(&pieces);
        let texts: Vec<&str> = words.iter().map(|w| w.0.as_str()).collect();
        Self {
            words: Lattices::new(&texts, &trie),
            inner: Lattices::new(&pieces[characters.len()..], &trie),
            characters: characters.len(),
            pieces,
            scores,
            scratch: Scratch::default(),
        }
    }

    /// One step of expectation–maximisation; pieces expected less than half a time are dropped.
    fn em_step(&mut self, words: &[(String, f64)]) {
        let probability = self.scaled_probabilities();
        let mut counts = vec![0.0; self.pieces.len()];
        for (index, (_, count)) in words.iter().enumerate() {
            self.words.add_expected(index, *count, &probability, &mut counts, &mut self.scratch);
        }
        let keep: Vec<bool> = (0..counts.len()).map(|i| i < self.characters || counts[i] >= 0.5).collect();
        let total = digamma(counts.iter().zip(&keep).filter(|(_, k)| **k).map(|(c, _)| c).sum());
        for (score, &count) in self.scores.iter_mut().zip(&counts) {
            // A character that no cut uses keeps a score far below the others.
            *score = digamma(count.max(0.1)) - total;
        }
        self.keep(&keep);
    }

    /// Probabilities with a factor a character that brings whole words near 1, so that products stay in range.
    fn scaled_probabilities(&self) -> Vec<f64> {
        let chars: Vec<f64> = self.pieces.iter().map(|p| p.chars().count() as f64).collect();
        let (mut bits, mut length) = (0.0, 0.0);
        for (&score, &n) in self.scores.iter().zip(&chars) {
            let p = libm::exp(score);
            bits -= p * score;
            length += p * n;
        }
        let factor = bits / length;
        self.scores.iter().zip(chars).map(|(&s, n)| libm::exp(s + n * factor)).collect()
    }

    fn keep(&mut self, keep: &[bool]) {
        let mut next = 0;
        let renumber: Vec<Option<u32>> = keep
            .iter()
            .map(|&k| {
                k.then(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect();
        self.words.retain(&renumber);
        self.inner.retain_strings(&keep[self.characters..]);
        self.inner.retain(&renumber);
        let mut flags = keep.iter();
        self.pieces.retain(|_| flags.next() == Some(&true));
        let mut flags = keep.iter();
        self.scores.retain(|_| flags.next() == Some(&true));
    }

    /// Keeps about `target` pieces: those whose loss would cost the likelihood most.
    fn prune(&mut self, words: &[(String, f64)], target: usize) {
        let (used, covered) = self.usage(words);
        let total: f64 = used.iter().sum();
        let all_words: f64 = words.iter().map(|w| w.1).sum();
        let mut keep = vec![false; self.pieces.len()];
        keep[..self.characters].fill(true);
        let mut candidates = Vec::new();
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        for inner in 0..self.inner.len() {
            let piece = self.characters + inner;
            self.inner.best_path(inner, &self.scores, false, &mut whole, &mut self.scratch);
            // Its own cut into smaller pieces is better than the piece, or no word uses it.
            if whole.len() > 1 || used[piece] <= 0.0 {
                continue;
            }
            if !self.inner.best_path(inner, &self.scores, true, &mut parts, &mut self.scratch) {
                keep[piece] = true;
                continue;
            }
            let moved = used[piece];
            let without = total + moved * (parts.len() as f64 - 1.0);
            let before = libm::log(moved) - libm::log(total);
            let after: f64 =
                parts.iter().map(|&p| libm::log(used[p as usize] + moved) - libm::log(without)).sum();
            candidates.push((covered[piece] / all_words * (before - after), piece));
        }
        candidates.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let kept = keep.iter().filter(|k| **k).count();
        for &(_, piece) in candidates.iter().take(target.saturating_sub(kept)) {
            keep[piece] = true;
        }
        self.keep(&keep);
    }

    /// How often the best cuts use each piece, and the total count of words that use it.
    fn usage(&mut self, words: &[(String, f64)]) -> (Vec<f64>, Vec<f64>) {
        let mut used = vec![0.0; self.pieces.len()];
        let mut covered = vec![0.0; self.pieces.len()];
        let mut path = Vec::new();
        for (index, (_, count)) in words.iter().enumerate() {
            self.words.best_path(index, &self.scores, false, &mut path, &mut self.scratch);
            path.iter().for_each(|&p| used[p as usize] += count);
            path.sort_unstable();
            path.dedup();
            path.iter().for_each(|&p| covered[p as usize] += count);
        }
        (used, covered)
    }
}

/// The final list: special tokens, bytes, then pieces by score.
fn finish(model: Model, required: &[char], room: usize, byte_fallback: bool) -> Vec<(String, f64)> {
    let lowest = model.scores.iter().copied().fold(f64::INFINITY, f64::min);
    let known: BTreeMap<&str, f64> =
        model.pieces.iter().map(String::as_str).zip(model.scores.iter().copied()).collect();
    let mut chosen: Vec<(String, f64)> = required
        .iter()
        .map(|c| c.to_string())
        .map(|c| {
            let score = known.get(c.as_str()).copied().unwrap_or(lowest);
            (c, score)
        })
        .collect();
    let mut longer: Vec<usize> = (model.characters..model.pieces.len()).collect();
    longer.sort_unstable_by(|&a, &b| {
        model.scores[b].total_cmp(&model.scores[a]).then_with(|| model.pieces[a].cmp(&model.pieces[b]))
    });
    chosen.extend(longer.into_iter().take(room).map(|i| (model.pieces[i].clone(), model.scores[i])));
    chosen.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));

    let mut out: Vec<(String, f64)> = [PAD, EOS, UNK].into_iter().map(|t| (t.to_owned(), 0.0)).collect();
    if byte_fallback {
        // Below the six characters of its name, so that the text "<0x41>" is never read as the byte.
        let score = 6.0 * lowest - 1.0;
        out.extend((0..=255).map(|b| (byte_token(b), score)));
    }
    out.extend(chosen);
    // Few decimals: every JSON reader gets the same float.
    out.iter_mut().for_each(|piece| piece.1 = libm::round(piece.1 * 1e6) / 1e6);
    out
}

/// The derivative of ln Γ, for arguments above 0.
///
/// # References
/// Abramowitz and Stegun 6.3.5 and 6.3.18.
fn digamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 7.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let w = 1.0 / (x * x);
    let series = w * (1.0 / 12.0 - w * (1.0 / 120.0 - w * (1.0 / 252.0 - w * (1.0 / 240.0 - w / 132.0))));
    shift + libm::log(x) - 0.5 / x - series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digamma_has_its_known_values() {
        // Oracle: −γ; −γ − 2 ln 2; mpmath.digamma(100) = 4.600161852738087.
        for (x, want) in
            [(1.0, -0.577_215_664_901_532_9), (0.5, -1.963_510_026_021_423_5), (100.0, 4.600_161_852_738_087)]
        {
            assert!((digamma(x) - want).abs() < 1e-10, "{x}: {}", digamma(x));
        }
    }

    fn words(list: &[(&str, f64)]) -> Vec<(String, f64)> {
        list.iter().map(|&(w, c)| (w.to_owned(), c)).collect()
    }

    fn config(vocab_size: usize) -> UnigramConfig {
        UnigramConfig { vocab_size, ..UnigramConfig::default() }
    }

    #[test]
    fn frequent_words_become_tokens_and_rare_ones_are_cut() {
        let list = words(&[("▁patient", 500.0), ("▁the", 900.0), ("▁inpatient", 40.0), ("▁quixotry", 1.0)]);
        let trained = unigram(&list, &config(356)).unwrap();
        let tokenizer = trained.tokenizer;
        let pieces = |text| {
            tokenizer
                .encode(text)
                .into_iter()
                .map(|i| tokenizer.token(i).unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(pieces(" the patient"), ["▁the", "▁patient"]);
        assert!(pieces(" quixotry").len() > 1);
        assert_eq!(tokenizer.vocab_size(), 356);
        assert_eq!((tokenizer.pad_id(), tokenizer.eos_id(), tokenizer.unk_id()), (Some(0), Some(1), Some(2)));
    }

    #[test]
    fn the_order_and_splitting_of_the_input_do_not_matter() {
        let a = words(&[("▁ab", 3.0), ("▁abc", 5.0), ("▁b", 2.0)]);
        let b = words(&[("▁b", 2.0), ("▁abc", 4.0), ("▁ab", 3.0), ("▁abc", 1.0)]);
        let json = |w: &[(String, f64)]| unigram(w, &config(358)).unwrap().tokenizer.to_json();
        assert_eq!(json(&a), json(&b));
    }

    #[test]
    fn a_vocabulary_beyond_what_exists_shrinks_with_a_warning() {
        let trained = unigram(&words(&[("▁ab", 3.0)]), &config(5000)).unwrap();
        assert!(trained.tokenizer.vocab_size() < 400);
        assert!(trained.warning().unwrap().contains("vocab_size = 5000"));
    }

    #[test]
    fn impossible_input_is_refused() {
        assert_eq!(unigram(&[], &config(500)).err(), Some(TrainError::NoWords));
        let bad = unigram(&words(&[("▁a", f64::NAN)]), &config(500)).err();
        assert!(matches!(bad, Some(TrainError::BadCount { index: 0, .. })), "{bad:?}");
        let small = unigram(&words(&[("▁a", 1.0)]), &config(300)).err();
        assert_eq!(small, Some(TrainError::TooSmall { given: 300, needed: 354 }));
    }

    #[test]
    fn the_name_of_a_byte_token_in_text_is_read_as_text() {
        let tokenizer = unigram(&words(&[("▁ab", 3.0)]), &config(400)).unwrap().tokenizer;
        let text = "see <0x41> and <0xFF>";
        assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
    }
}
