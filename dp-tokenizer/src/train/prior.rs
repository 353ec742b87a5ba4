//! What is known of a language in public: words, or the pieces of a public tokenizer, that stand for the words that a release did
//! not find.
//!
//! A release of little text finds some tens or hundreds of words. All else of a vocabulary then comes from how these are spelled, or from
//! public knowledge. That costs no privacy: the release is not asked again.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;
use tokenizer::{BLANK, Tokenizer, byte_token};

/// The rank from which the weights of pieces without probabilities fall as one over it (Zipf).
const FIRST_RANK: f64 = 10.0;
/// The least share of the text that the released words are taken for.
const LEAST_SHARE: f64 = 0.02;
/// The weight of a prior's word that is no part of a released word: it may be of another language than the text. README.md shows what this
/// gains and costs.
const UNKNOWN: f64 = 0.3;
/// The most characters of a prior that may be new, and the share of its text that they and the released ones cover. Each takes a place of
/// the vocabulary, and a tokenizer of all languages has tens of thousands.
const NEW_CHARACTERS: usize = 200;
const COVERAGE: f64 = 0.9995;

/// Returns the pieces of a public tokenizer as words with their shares: those of a unigram model by their probabilities, others by
/// their order, which is that of their learning. A piece starts with `▁` if a blank precedes it.
///
/// ```
/// use dp_tokenizer::train::{BpeConfig, bpe, prior_words};
/// let public = bpe(&[("▁pain".to_owned(), 9.0)], &BpeConfig::default())?.tokenizer;
/// assert!(prior_words(&public).iter().any(|(word, share)| word == "▁pain" && *share > 0.0));
/// # Ok::<(), dp_tokenizer::train::TrainError>(())
/// ```
#[must_use]
pub fn prior_words(public: &Tokenizer) -> Vec<(String, f64)> {
    let file: Value = serde_json::from_str(&public.to_json()).unwrap_or_default();
    let kind = file["model"]["type"].as_str().unwrap_or_default();
    let weight = |id: u32| match public.score(id).filter(|_| kind == "Unigram") {
        Some(score) => libm::exp(score),
        None => 1.0 / (f64::from(id) + FIRST_RANK),
    };
    let bytes: BTreeSet<String> = (0..=255).map(byte_token).collect();
    let spelled = |id: u32| {
        let token = public.token(id).filter(|token| !bytes.contains(*token))?;
        let word = match kind {
            "WordPiece" => match token.strip_prefix("##") {
                Some(inner) => inner.to_owned(),
                None => format!("{BLANK}{token}"),
            },
            "Unigram" => token.to_owned(),
            _ if token.contains(BLANK) => token.to_owned(),
            _ => public.decode(&[id]).replace(' ', &BLANK.to_string()),
        };
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != char::REPLACEMENT_CHARACTER;
        let inner = word.strip_prefix(BLANK).unwrap_or(&word);
        let is_word = inner.chars().nth(1).is_some() || inner.len() < word.len() && !inner.is_empty();
        (is_word && inner.chars().all(|c| is_plain(c) && c != BLANK)).then_some(word)
    };
    let mut words: BTreeMap<String, f64> = BTreeMap::new();
    for id in (0..public.vocab_size() as u32).filter(|id| !public.is_special(*id)) {
        let weight = weight(id);
        if weight > 0.0
            && let Some(word) = spelled(id)
        {
            *words.entry(word).or_default() += weight;
        }
    }
    let sum: f64 = words.values().sum();
    words.into_iter().map(|(word, weight)| (word, weight / sum)).collect()
}

/// Adds the words of a public prior that were not released, each as frequent as its share is beside that of the released words. Words
/// that are no part of a released word count less.
pub(super) fn complete(released: &[(String, f64)], prior: &[(String, f64)]) -> Vec<(String, f64)> {
    let mut all: BTreeMap<&str, f64> = BTreeMap::new();
    for (word, count) in released {
        *all.entry(word).or_default() += count;
    }
    let characters = characters(released, prior);
    let prior: Vec<&(String, f64)> =
        prior.iter().filter(|word| word.0.chars().all(|c| characters.contains(&c))).collect();
    let all_shares: f64 = prior.iter().map(|word| word.1).sum();
    let (mut share, mut count) = (0.0, 0.0);
    for (word, own) in &prior {
        if let Some(found) = all.get(word.as_str()) {
            share += own / all_shares;
            count += found;
        }
    }
    let count = if count > 0.0 { count } else { released.iter().map(|word| word.1).sum() };
    let of_one = count / share.max(LEAST_SHARE) / all_shares;
    let known = parts(released, &prior);
    for (word, own) in &prior {
        let weight = if known.contains(word.as_str()) { 1.0 } else { UNKNOWN };
        all.entry(word).or_insert(weight * own * of_one);
    }
    all.into_iter().map(|(word, count)| (word.to_owned(), count)).collect()
}

/// Returns the words of a prior that are parts of released words.
fn parts<'a>(released: &[(String, f64)], prior: &[&'a (String, f64)]) -> HashSet<&'a str> {
    let all: HashSet<&str> = prior.iter().map(|word| word.0.as_str()).collect();
    let longest = all.iter().map(|word| word.len()).max().unwrap_or(0);
    let mut known = HashSet::new();
    for (word, _) in released {
        for (begin, _) in word.char_indices() {
            let rest = &word[begin..];
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
            known.extend(ends.take_while(|end| *end <= longest).filter_map(|end| all.get(&rest[..end])));
        }
    }
    known
}

/// Returns the characters that words of a prior may have: printable ASCII, those of the released words, and the most frequent others.
fn characters(released: &[(String, f64)], prior: &[(String, f64)]) -> BTreeSet<char> {
    let mut known: BTreeSet<char> = ('!'..='~').chain([BLANK]).collect();
    known.extend(released.iter().flat_map(|word| word.0.chars()));
    let mut others: BTreeMap<char, f64> = BTreeMap::new();
    let mut all = 0.0;
    for (word, share) in prior {
        for c in word.chars() {
            all += share;
            if !known.contains(&c) {
                *others.entry(c).or_default() += share;
            }
        }
    }
    let mut left: f64 = others.values().sum();
    let mut ranked: Vec<(char, f64)> = others.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (c, share) in ranked.into_iter().take(NEW_CHARACTERS) {
        if left <= (1.0 - COVERAGE) * all {
            break;
        }
        known.insert(c);
        left -= share;
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prior_words_are_as_frequent_as_their_shares_beside_the_released_ones() {
        let word = |word: &str, count: f64| (word.to_owned(), count);
        let prior = [word("▁the", 0.4), word("▁pain", 0.1), word("▁fever", 0.2), word("in", 0.3)];
        let words = complete(&[word("▁the", 35.0), word("▁pain", 15.0), word("▁mg", 7.0)], &prior);
        let want = [("in", 30.0), ("▁fever", 20.0 * UNKNOWN), ("▁mg", 7.0), ("▁pain", 15.0), ("▁the", 35.0)];
        let found: Vec<(&str, f64)> =
            words.iter().map(|(word, count)| (word.as_str(), count.round())).collect();
        assert_eq!(found, want);
    }

    /// A thousand characters that were not released would fill the vocabulary.
    #[test]
    fn a_prior_brings_its_frequent_characters_alone() {
        let rare = ('一'..).take(1000).map(|c| (format!("▁{c}{c}"), 1e-6));
        let prior: Vec<_> = rare.chain([("▁größer".to_owned(), 1.0)]).collect();
        let found = characters(&[("▁the".to_owned(), 1.0)], &prior);
        assert!(found.contains(&'ß') && !found.contains(&'一'));
    }

    #[test]
    fn pieces_of_each_kind_of_tokenizer_are_words() {
        let words = [("▁pain".to_owned(), 9.0), ("▁paint".to_owned(), 5.0), ("s".to_owned(), 3.0)];
        let bpe = super::super::bpe(&words, &super::super::BpeConfig::default()).unwrap().tokenizer;
        let unigram =
            super::super::unigram(&words, &super::super::UnigramConfig::default()).unwrap().tokenizer;
        let wordpiece =
            super::super::wordpiece(&words, &super::super::WordPieceTraining::default()).unwrap().tokenizer;
        for tokenizer in [bpe, unigram, wordpiece] {
            let found = prior_words(&tokenizer);
            assert!(found.iter().any(|word| word.0 == "▁pain"), "{found:?}");
            assert!(found.iter().all(|word| !word.0.contains(['#', 'Ġ', '<'])), "{found:?}");
            assert!((found.iter().map(|word| word.1).sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
}
