//! The unigram trainer: expectation–maximisation over all cuts, pruning the pieces that are missed least.
//!
//! Deterministic: sums are taken in a fixed order, ties are broken by the piece itself.
//!
//! # References
//! Kudo 2018, "Subword regularization", <https://arxiv.org/abs/1804.10959>; SentencePiece's trainer for the shape of
//! the schedule (0.75 a round, two EM steps each, digamma in the M-step).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::TrainError;
use super::lattice::{Lattices, MAX_CHARS, Scratch};
use super::seeds::seeds;
use crate::encode::{DoubleArray, Unigram, byte_token};
use crate::normalize::Normalizer;
use crate::pretokenize::Metaspace;
use crate::tokenizer::{BLANK, EOS, PAD, SpecialTokens, Stage, Tokenizer, UNK};

/// Least count of a candidate of several characters.
const LEAST_SEED: f64 = 2.0;

/// How to train.
#[derive(Clone, Debug, PartialEq)]
pub struct UnigramConfig {
    /// Tokens wanted, special tokens and bytes included.
    pub vocab_size: usize,
    /// Whether characters outside the vocabulary are written as bytes; without it they are `<unk>`.
    pub byte_fallback: bool,
    /// Symbols of the user, each one token wherever it stands in a text; their ids follow the special tokens'.
    pub symbols: Vec<String>,
    /// How many of T5's sentinels `<extra_id_0>`, … end the vocabulary, the first one with the last id.
    pub sentinels: usize,
    /// Share of all characters that the alphabet is to cover. Words are cut at the rarest beyond it, which become bytes
    /// or `<unk>`. Printable ASCII is always covered.
    pub character_coverage: f64,
    /// What texts go through before they are cut, and the words before they are learnt from.
    pub normalizer: Option<Normalizer>,
    /// Candidates to start from.
    pub seed_size: usize,
    /// Share of pieces that survive a round.
    pub shrinking_factor: f64,
}

impl Default for UnigramConfig {
    fn default() -> Self {
        Self {
            vocab_size: 8000,
            byte_fallback: true,
            symbols: Vec::new(),
            sentinels: 0,
            character_coverage: 1.0,
            normalizer: None,
            seed_size: 1_000_000,
            shrinking_factor: 0.75,
        }
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
/// [`TrainError`] without words, with a count that is not finite and positive, with a symbol that is empty, listed twice
/// or some other token's name, or with too small a `vocab_size`.
pub fn unigram(words: &[(String, f64)], config: &UnigramConfig) -> Result<Trained, TrainError> {
    let words = merge(words, config)?;
    let sentinels: Vec<String> = (0..config.sentinels).rev().map(|n| format!("<extra_id_{n}>")).collect();
    let symbols = checked_symbols(config, &sentinels)?;
    let mut required = required_characters(&words);
    required.retain(|c| !symbols.contains(c.to_string().as_str()));
    let fixed = 3 + symbols.len() + if config.byte_fallback { 256 } else { 0 };
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
    let pieces = finish(model, &required, room, (config, &sentinels));
    let leading = [PAD, EOS, UNK].map(str::to_owned).into_iter().chain(config.symbols.iter().cloned());
    let last = (pieces.len() - sentinels.len()) as u32;
    let special = (0..).zip(leading).chain((last..).zip(sentinels)).collect();
    let unigram = Unigram::new(pieces, Some(2), config.byte_fallback).ok_or(TrainError::NoWords)?;
    let mut tokenizer = Tokenizer::new(unigram, SpecialTokens::new(special));
    if let Some(normalizer) = &config.normalizer {
        tokenizer.normalizer = Stage::Normalizer(normalizer.clone());
    }
    Ok(Trained { tokenizer, requested: config.vocab_size })
}

/// The user's symbols and the sentinels, each once and no other token's name.
fn checked_symbols<'a>(
    config: &'a UnigramConfig,
    sentinels: &'a [String],
) -> Result<BTreeSet<&'a str>, TrainError> {
    let mut known = BTreeSet::new();
    for symbol in config.symbols.iter().chain(sentinels) {
        let taken = [PAD, EOS, UNK].contains(&symbol.as_str()) || (0..=255).any(|b| byte_token(b) == *symbol);
        if symbol.is_empty() || taken || !known.insert(symbol.as_str()) {
            return Err(TrainError::SpecialToken { token: symbol.clone() });
        }
    }
    Ok(known)
}

/// Checks, normalises and sorts the words, adds up repeated ones, cuts out symbols and rare characters, and scales so that the least
/// count is at least 1: the trainer drops pieces expected less than half a time.
fn merge(words: &[(String, f64)], config: &UnigramConfig) -> Result<Vec<(String, f64)>, TrainError> {
    let mut merged: BTreeMap<Cow<'_, str>, f64> = BTreeMap::new();
    for (index, (word, count)) in words.iter().enumerate() {
        if !(count.is_finite() && *count > 0.0) {
            return Err(TrainError::BadCount { index, count: *count });
        }
        match &config.normalizer {
            None => *merged.entry(Cow::Borrowed(word)).or_default() += count,
            Some(normalizer) => {
                let normal = normalizer.normalize(&word.replace(BLANK, " ")).replace(' ', "\u{2581}");
                for part in Metaspace::default().words(&normal) {
                    *merged.entry(Cow::Owned(part.to_owned())).or_default() += count;
                }
            }
        }
    }
    let rare = rare_characters(&merged, config.character_coverage);
    if !rare.is_empty() {
        merged = cut_all(merged, |word| word.split(|c| rare.contains(&c)).collect());
    }
    for symbol in config.symbols.iter().filter(|symbol| !symbol.is_empty()) {
        // As texts are cut there before the model sees them.
        merged = cut_all(merged, |word| word.split(symbol.as_str()).collect());
    }
    merged.retain(|word, _| !word.is_empty() && word.chars().count() <= MAX_CHARS);
    let least = merged.values().copied().fold(f64::INFINITY, f64::min);
    let scale = if least < 1.0 { 1.0 / least } else { 1.0 };
    if merged.is_empty() {
        return Err(TrainError::NoWords);
    }
    Ok(merged.into_iter().map(|(word, count)| (word.into_owned(), count * scale)).collect())
}

/// The words' parts, each with the sum of its words' counts.
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

/// The characters beyond those that cover this share of all, the most frequent ones first; none of printable ASCII.
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
        // What occurs once would only learn itself, and keep parts that many words share from being learnt.
        seeds.retain(|s| s.count >= LEAST_SEED);
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

/// The final list: special tokens, symbols, bytes, then pieces by score, then sentinels.
fn finish(
    model: Model,
    required: &[char],
    room: usize,
    (config, sentinels): (&UnigramConfig, &[String]),
) -> Vec<(String, f64)> {
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
    // A piece that is a symbol's name has its place already.
    let is_symbol = |piece: &String| config.symbols.contains(piece) || sentinels.contains(piece);
    let mut longer: Vec<usize> =
        (model.characters..model.pieces.len()).filter(|&i| !is_symbol(&model.pieces[i])).collect();
    longer.sort_unstable_by(|&a, &b| {
        model.scores[b].total_cmp(&model.scores[a]).then_with(|| model.pieces[a].cmp(&model.pieces[b]))
    });
    chosen.extend(longer.into_iter().take(room).map(|i| (model.pieces[i].clone(), model.scores[i])));
    chosen.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));

    let mut out: Vec<(String, f64)> = [PAD, EOS, UNK].into_iter().map(|t| (t.to_owned(), 0.0)).collect();
    // Never found by the model: texts are cut at symbols before.
    out.extend(config.symbols.iter().map(|symbol| (symbol.clone(), symbol_score(symbol, lowest))));
    if config.byte_fallback {
        // Below the six characters of its name, so that the text "<0x41>" is never read as the byte.
        let score = 6.0 * lowest - 1.0;
        out.extend((0..=255).map(|b| (byte_token(b), score)));
    }
    out.extend(chosen);
    out.extend(sentinels.iter().map(|symbol| (symbol.clone(), symbol_score(symbol, lowest))));
    // Few decimals: every JSON reader gets the same float.
    out.iter_mut().for_each(|piece| piece.1 = libm::round(piece.1 * 1e6) / 1e6);
    out
}

/// A score below that of any cut of the symbol into characters.
fn symbol_score(symbol: &str, lowest: f64) -> f64 {
    symbol.chars().count() as f64 * lowest - 1.0
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
    fn symbols_and_sentinels_are_one_token_each_and_stand_where_stated() {
        let list = words(&[("▁patient", 500.0), ("▁the", 900.0)]);
        let with = |symbols: &[&str]| UnigramConfig {
            symbols: symbols.iter().map(|s| (*s).to_owned()).collect(),
            sentinels: 2,
            ..config(400)
        };
        let tokenizer = unigram(&list, &with(&["<mask>", "the", "q"])).unwrap().tokenizer;
        assert_eq!(tokenizer.encode("q<mask>the<extra_id_0>")[..3], [5, 3, 4]);
        let size = tokenizer.vocab_size() as u32;
        assert_eq!(
            [tokenizer.id("<extra_id_0>"), tokenizer.id("<extra_id_1>")],
            [Some(size - 1), Some(size - 2)]
        );
        let loaded = Tokenizer::from_json(&tokenizer.to_json()).unwrap();
        let in_sentencepiece = Tokenizer::from_sentencepiece(&tokenizer.to_sentencepiece().unwrap()).unwrap();
        for text in ["the <mask> patient <extra_id_1> q", "quit the<mask>"] {
            let ids = tokenizer.encode(text);
            assert_eq!((&loaded.encode(text), &in_sentencepiece.encode(text)), (&ids, &ids), "{text}");
            assert_eq!(tokenizer.decode(&ids), text);
        }
        for twice in [&["a", "a"][..], &["<unk>"], &["<0x41>"], &[""], &["<extra_id_1>"]] {
            assert!(
                matches!(unigram(&list, &with(twice)), Err(TrainError::SpecialToken { .. })),
                "{twice:?}"
            );
        }
    }

    #[test]
    fn rare_characters_are_cut_out_and_words_are_normalised_first() {
        let list = words(&[("▁ﬁne", 500.0), ("▁Zoë", 90.0), ("▁x日y", 1.0)]);
        let all = unigram(&list, &config(400)).unwrap().tokenizer;
        assert!(all.id("日").is_some() && all.id("ﬁ").is_some());
        let covering = |character_coverage| UnigramConfig { character_coverage, ..config(400) };
        let fewer = unigram(&list, &covering(0.9995)).unwrap().tokenizer;
        assert!(
            fewer.id("日").is_none() && fewer.id("ë").is_some() && fewer.decode(&fewer.encode("日")) == "日"
        );
        let normal = UnigramConfig { normalizer: Some(Normalizer::Nfkc), ..config(400) };
        let normal = unigram(&list, &normal).unwrap().tokenizer;
        assert!(normal.id("ﬁ").is_none() && normal.id("▁fine").is_some());
        assert_eq!(normal.encode(" ﬁne"), normal.encode(" fine"));
        assert_eq!(Tokenizer::from_json(&normal.to_json()).unwrap().encode(" ﬁne"), normal.encode(" fine"));
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
