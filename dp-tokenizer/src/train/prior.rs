//! What is known of a language in public: words, or the pieces of a public tokenizer, that stand for the words that a release did
//! not find.
//!
//! A release of little text finds some tens or hundreds of words. All else of a vocabulary then comes from how these are spelled, or from
//! public knowledge. That costs no privacy: the release is not asked again.

use std::collections::{BTreeMap, BTreeSet};

use super::unseen::Completed;
use rustc_hash::FxHashMap;
use serde_json::Value;
use tokenizer::{BLANK, Tokenizer, byte_token};

/// The rank from which the weights of pieces without probabilities fall as one over it (Zipf).
const FIRST_RANK: f64 = 10.0;
/// The least share of the text that the released words are taken for.
const LEAST_SHARE: f64 = 0.02;
/// The number of characters on which the next one depends, and the weight of shorter contexts.
const CONTEXT: usize = 3;
const SMOOTHING: f64 = 8.0;
/// The number of released words beside which a prior and invented words have the same weight.
const ENOUGH_WORDS: f64 = 1000.0;
/// The most by which its spelling makes a word of a prior more or less frequent.
const MOST_LIKE: f64 = 50.0;
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

/// Joins the words of several public priors. Each has the same weight, so that a word that all of them hold gets more than one that only
/// one of them holds.
///
/// ```
/// use dp_tokenizer::train::joint_prior;
/// let word = |word: &str, count: f64| (word.to_owned(), count);
/// let words = joint_prior(&[vec![word("▁a", 900.0), word("▁b", 100.0)], vec![word("▁b", 1.0)]]);
/// assert_eq!(words, [word("▁a", 0.45), word("▁b", 0.55)]);
/// ```
#[must_use]
pub fn joint_prior(priors: &[Vec<(String, f64)>]) -> Vec<(String, f64)> {
    let mut words: BTreeMap<&str, f64> = BTreeMap::new();
    for prior in priors {
        let sum: f64 = prior.iter().map(|word| word.1).sum();
        for (word, weight) in prior {
            *words.entry(word).or_default() += weight / sum / priors.len() as f64;
        }
    }
    words.into_iter().map(|(word, share)| (word.to_owned(), share)).collect()
}

/// Returns the weight of a public prior beside invented words, which are spelt as the released ones: the more words are released, the less it
/// counts. README.md has the figures, of public texts.
pub(super) fn weight(released: usize) -> f64 {
    let share = released as f64 / ENOUGH_WORDS;
    1.0 / (1.0 + share * share)
}

/// Adds the words of a public prior that were not released, each as frequent as its share is beside that of the released words, times
/// `weight`. Words that are spelt as the released ones count more, others less. So the prior takes on the text's language, the better the
/// more words are released.
pub(super) fn complete(own: &Completed, prior: &[(String, f64)], weight: f64) -> Completed {
    let mut all: BTreeMap<&str, (f64, bool)> = BTreeMap::new();
    for ((word, count), invented) in own.words.iter().zip(&own.invented) {
        all.insert(word, (*count, *invented));
    }
    let released: BTreeMap<&str, f64> =
        all.iter().filter(|word| !word.1.1).map(|(word, (count, _))| (*word, *count)).collect();
    let characters = characters(&released, prior);
    let prior: Vec<&(String, f64)> =
        prior.iter().filter(|word| word.0.chars().all(|c| characters.contains(&c))).collect();
    let all_shares: f64 = prior.iter().map(|word| word.1).sum();
    let (mut share, mut count) = (0.0, 0.0);
    for (word, own) in &prior {
        if let Some(found) = released.get(word.as_str()) {
            share += own / all_shares;
            count += found;
        }
    }
    let count = if count > 0.0 { count } else { released.values().sum() };
    let of_one = weight * count / share.max(LEAST_SHARE) / all_shares;
    let (mut of_released, mut of_prior) = (Spelling::default(), Spelling::default());
    released.keys().for_each(|word| of_released.add(word));
    prior.iter().for_each(|word| of_prior.add(&word.0));
    for (word, own) in prior.iter().filter(|word| !released.contains_key(word.0.as_str())) {
        let entry = all.entry(word).or_insert((0.0, false));
        entry.0 += of_released.likeness(&of_prior, word) * own * of_one;
        // It is a word of the language.
        entry.1 = false;
    }
    let invented = all.values().map(|word| word.1).collect();
    Completed {
        words: all.into_iter().map(|(word, (count, _))| (word.to_owned(), count)).collect(),
        invented,
    }
}

/// How often characters follow others in a list of words. Each word counts once: the rare words, which are sought, are spelt as many others
/// and not as the most frequent ones.
#[derive(Default)]
struct Spelling {
    contexts: FxHashMap<u128, f64>,
    /// The counts of contexts with the character after them.
    next: FxHashMap<u128, f64>,
}

impl Spelling {
    fn add(&mut self, word: &str) {
        each_context(word, |keys| {
            for (context, next) in keys {
                *self.contexts.entry(*context).or_default() += 1.0;
                *self.next.entry(*next).or_default() += 1.0;
            }
        });
    }

    /// Returns the root of how many times likelier a word is among these words than among `others`, within [`MOST_LIKE`]. The root, because
    /// the characters of a word depend on each other. Where few of these words have a context, shorter ones decide.
    ///
    /// # References
    /// Moore and Lewis 2010, <https://aclanthology.org/P10-2041/>: the difference of two models selects text of a domain.
    fn likeness(&self, others: &Self, word: &str) -> f64 {
        let count = |counts: &FxHashMap<u128, f64>, key| counts.get(&key).copied().unwrap_or(0.0);
        let mut sum = 0.0;
        each_context(word, |keys| {
            let mut ratio = 1.0;
            for &(context, next) in keys {
                let (all, own) = (count(&self.contexts, context), count(&self.next, next));
                let expected = count(&others.next, next) / count(&others.contexts, context);
                if all > 0.0 && expected > 0.0 {
                    ratio = (own / expected + SMOOTHING * ratio) / (all + SMOOTHING);
                }
            }
            sum += libm::log(ratio);
        });
        libm::exp(sum / 2.0).clamp(1.0 / MOST_LIKE, MOST_LIKE)
    }
}

/// Calls `each` for each character of a word and for its end, with the keys of the contexts before it, shortest first, each with the key of
/// the context and the character.
fn each_context(word: &str, mut each: impl FnMut(&[(u128, u128)])) {
    const BITS: u32 = 21;
    let (end, start) = (0, 1);
    let characters = word.chars().map(|c| u128::from(u32::from(c)) + 2);
    let spelt: Vec<u128> = [start].into_iter().chain(characters).chain([end]).collect();
    let mut keys = [(0, 0); CONTEXT + 1];
    for at in 1..spelt.len() {
        let lengths = 0..=CONTEXT.min(at);
        for (length, key) in lengths.clone().zip(&mut keys) {
            let context = spelt[at - length..at].iter().fold(1, |key, c| key << BITS | c);
            *key = (context, context << BITS | spelt[at]);
        }
        each(&keys[..lengths.count()]);
    }
}

/// Returns the characters that words of a prior may have: printable ASCII, those of the released words, and the most frequent others.
fn characters(released: &BTreeMap<&str, f64>, prior: &[(String, f64)]) -> BTreeSet<char> {
    let mut known: BTreeSet<char> = ('!'..='~').chain([BLANK]).collect();
    known.extend(released.keys().flat_map(|word| word.chars()));
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
        let released = [word("▁the", 35.0), word("▁pain", 15.0), word("▁mg", 7.0)];
        let (mut of_released, mut of_prior) = (Spelling::default(), Spelling::default());
        released.iter().for_each(|word| of_released.add(&word.0));
        prior.iter().for_each(|word| of_prior.add(&word.0));
        let like = |word: &str| of_released.likeness(&of_prior, word);
        // The released half of the prior has a count of 50.
        let (inside, fever) = (30.0 * like("in"), 20.0 * like("▁fever"));
        let want = [("in", inside), ("▁fever", fever), ("▁mg", 7.0), ("▁pain", 15.0), ("▁the", 35.0)];
        let own = Completed { words: released.to_vec(), invented: vec![false; released.len()] };
        for weight in [1.0, 0.25] {
            let found = complete(&own, &prior, weight).words;
            assert_eq!(found.len(), want.len());
            for ((word, count), (wanted, expected)) in found.iter().zip(want) {
                let is_released = own.words.iter().any(|own| own.0 == *word);
                let expected = if is_released { expected } else { weight * expected };
                assert!(word == wanted && (count / expected - 1.0).abs() < 1e-9, "{word}: {count}");
            }
        }
    }

    /// The prior is of two languages, the released words of one.
    #[test]
    fn words_spelt_as_the_released_ones_count_more() {
        let words = |list: &str| list.split(' ').map(|word| (format!("▁{word}"), 1.0)).collect::<Vec<_>>();
        let (german, french) = ("schwarz schnell schön schuh", "beau beaucoup bateau chapeau");
        let prior = words(&format!("{german} {french}"));
        let released = words("schwarze schnelle schöne schule waschen");
        let own = Completed { invented: vec![false; released.len()], words: released };
        let found = complete(&own, &prior, 1.0).words;
        let count = |word: &str| found.iter().find(|found| found.0 == format!("▁{word}")).unwrap().1;
        for (one, other) in german.split(' ').zip(french.split(' ')) {
            assert!(count(one) > 2.0 * count(other), "{one} {other}");
        }
        let nothing = Spelling::default();
        assert!((nothing.likeness(&nothing, "▁schwarz") - 1.0).abs() < 1e-12);
    }

    /// A thousand characters that were not released would fill the vocabulary.
    #[test]
    fn a_prior_brings_its_frequent_characters_alone() {
        let rare = ('一'..).take(1000).map(|c| (format!("▁{c}{c}"), 1e-6));
        let prior: Vec<_> = rare.chain([("▁größer".to_owned(), 1.0)]).collect();
        let found = characters(&BTreeMap::from([("▁the", 1.0)]), &prior);
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
