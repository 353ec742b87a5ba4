//! Invents words such as a release does not find: a text has many rare words, and a release at a small ε finds only the
//! frequent ones.
//!
//! Pieces learnt from frequent words only are whole words. They leave places of the vocabulary empty, and rare words fall into
//! characters. Invented words stand for the rare ones in training: a character model learnt from the released words spells
//! them, and the released counts say how frequent all of them are together. This is post-processing and costs no privacy.
//!
//! # References
//! Witten and Bell 1991, <https://doi.org/10.1109/18.87000>, method C, with a weight of [`SMOOTHING`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};

use rustc_hash::FxHashMap;
use tokenizer::BLANK;

/// The number of characters on which the next one depends. A key holds the characters' numbers and their count in 64
/// bits.
const CONTEXT: usize = 3;

/// The weight of shorter contexts. Rare words are less like the released words than those are like each other.
const SMOOTHING: f64 = 8.0;

/// The power of a word's count that is its weight in the character model: rarer words are more like those that were not
/// found.
const RARITY: f64 = -0.5;

/// The most characters of an invented word.
const LONGEST: usize = 24;

/// The number of invented words of letters. There are [`FEWER`] times fewer of each other class.
const INVENTED: usize = 40_000;
const FEWER: usize = 5;

/// The most digits of an invented number.
const DIGITS: u64 = 5;

/// The least words of a class, so that their counts have a slope.
const LEAST_WORDS: usize = 16;

/// The factor by which Zipf's law expects more rare words than texts have: their counts fall faster than those of
/// frequent words.
const EXCESS: f64 = 1.25;

/// Words with their counts, in order, with a flag for those that are invented.
pub(super) struct Completed {
    pub(super) words: Vec<(String, f64)>,
    pub(super) invented: Vec<bool>,
}

/// Adds invented words to the words of a release. The result does not depend on their order.
pub(super) fn complete(released: &[(String, f64)]) -> Completed {
    let mut all: BTreeMap<String, (f64, bool)> = BTreeMap::new();
    // The words are taken in order, so that their given order does not change a rounding.
    let mut ordered: Vec<&(String, f64)> = released.iter().collect();
    ordered.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    ordered.into_iter().for_each(|(word, count)| all.entry(word.clone()).or_default().0 += count);
    for class in Class::ALL {
        let own: Vec<(&str, f64)> = all
            .iter()
            .filter(|w| Class::of(w.0) == class && !w.1.1 && !is_run(w.0))
            .map(|(w, c)| (w.as_str(), c.0))
            .collect();
        if own.len() < LEAST_WORDS {
            continue;
        }
        let found = invent(class, &own);
        let count = missing_count(&own) / found.len().max(1) as f64;
        for word in found {
            let entry = all.entry(word).or_insert((0.0, true));
            if entry.1 {
                entry.0 += count;
            }
        }
    }
    let invented = all.values().map(|word| word.1).collect();
    Completed { words: all.into_iter().map(|(word, (count, _))| (word, count)).collect(), invented }
}

/// Returns words such as a release does not find, with their joint count by the released ones: a text's rare words,
/// which a model will meet as well. This is post-processing of the released counts. There are none where too few words
/// show how counts fall.
#[must_use]
pub fn unseen_words(released: &[(String, f64)]) -> Vec<(String, f64)> {
    let Completed { words, invented } = complete(released);
    words.into_iter().zip(invented).filter(|(_, invented)| *invented).map(|(word, _)| word).collect()
}

/// Whether the item is a run of words.
fn is_run(word: &str) -> bool {
    word.chars().skip(1).any(|c| c == BLANK)
}

/// The kind of character with which a word starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Letters,
    Digits,
    Other,
}

impl Class {
    pub(super) const ALL: [Self; 3] = [Self::Letters, Self::Digits, Self::Other];

    pub(super) fn of(word: &str) -> Self {
        match word.strip_prefix(BLANK).unwrap_or(word).chars().next() {
            Some(c) if c.is_alphabetic() => Self::Letters,
            Some(c) if c.is_numeric() => Self::Digits,
            _ => Self::Other,
        }
    }
}

/// Invents words of a class that are not among `own`. A likely word comes several times.
fn invent(class: Class, own: &[(&str, f64)]) -> Vec<String> {
    let wanted = if class == Class::Letters { INVENTED } else { INVENTED / FEWER };
    // The seed is fixed: the words are public once the released ones are.
    let mut stream = TestRng::from_seed(0).stream(Purpose::Data, class as u64, 0);
    let known: BTreeSet<&str> = own.iter().map(|word| word.0).collect();
    let speller = Speller::learn(own);
    let spelt = std::iter::repeat_with(|| match class {
        Class::Digits => Some(number(&mut stream)),
        Class::Letters | Class::Other => speller.spell(&mut stream),
    });
    // A blank opens a word, or the word has none.
    let is_word = |word: &String| word.chars().nth(1).is_some() && !is_run(word);
    // Where most spellings are known words, fewer are invented.
    let new = spelt.take(4 * wanted).flatten().filter(|word| is_word(word) && !known.contains(word.as_str()));
    new.take(wanted).collect()
}

fn number(stream: &mut Stream) -> String {
    let mut word = if stream.below(2) == 0 { String::from(BLANK) } else { String::new() };
    let length = 2 + stream.below(DIGITS - 1);
    word.extend((0..length).map(|_| char::from(b'0' + stream.below(10) as u8)));
    word
}

/// Returns the joint count of the words that are too rare to be among `own`, if counts fall as a power of the rank
/// (Zipf). A line through the logarithms of ranks and counts gives the power. It leaves out the most frequent quarter,
/// which falls less steeply, and the last tenth, which noise favored.
fn missing_count(own: &[(&str, f64)]) -> f64 {
    /// The least excess of the power over 1. The sum over all ranks grows without limit as the power falls to 1, and no
    /// text has so many words.
    const LEAST_EXCESS_POWER: f64 = 0.2;
    let mut counts: Vec<f64> = own.iter().map(|word| word.1).collect();
    counts.sort_by(|a, b| b.total_cmp(a));
    let ranks = counts.len();
    let points: Vec<(f64, f64)> =
        (ranks / 4..ranks * 9 / 10).map(|at| (libm::log((at + 1) as f64), libm::log(counts[at]))).collect();
    let n = points.len() as f64;
    let (x, y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let covariance: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let variance: f64 = points.iter().map(|p| (p.0 - x) * (p.0 - x)).sum();
    let power = -covariance / variance;
    let rank = ranks as f64;
    let last = libm::exp(y - power * (libm::log(rank) - x));
    last * rank / (EXCESS * (power - 1.0).max(LEAST_EXCESS_POWER))
}

/// The numbers, among those of characters, for the end of a word and for the place before its first character.
const END: u16 = 0;
const START: u16 = 1;

/// The characters that follow a context.
#[derive(Default)]
struct Followers {
    /// The sum of all weights.
    total: f64,
    /// The characters, each with the sum of all weights up to it.
    next: Vec<(u16, f64)>,
}

/// A character model with contexts of up to [`CONTEXT`] characters.
struct Speller {
    characters: Vec<char>,
    contexts: FxHashMap<u64, Followers>,
}

/// Returns the last characters as a key.
fn key(spelt: &[u16], length: usize) -> u64 {
    spelt[spelt.len() - length..].iter().fold(length as u64, |key, &c| key << 16 | u64::from(c))
}

impl Speller {
    /// Learns from words with their counts, all above 0.
    fn learn(words: &[(&str, f64)]) -> Self {
        let alphabet: BTreeSet<char> = words.iter().flat_map(|word| word.0.chars()).collect();
        let characters: Vec<char> = alphabet.into_iter().take(usize::from(u16::MAX - START)).collect();
        let numbers: HashMap<char, u16> = characters.iter().copied().zip(START + 1..=u16::MAX).collect();
        let least = words.iter().map(|word| word.1).fold(f64::INFINITY, f64::min);
        let mut weights: BTreeMap<(u64, u16), f64> = BTreeMap::new();
        for (word, count) in words {
            // Words with the rarest characters of an alphabet of more than 65,000 are left out.
            let Some(inner) = word.chars().map(|c| numbers.get(&c).copied()).collect::<Option<Vec<u16>>>()
            else {
                continue;
            };
            let spelt: Vec<u16> = std::iter::once(START).chain(inner).chain([END]).collect();
            let weight = libm::pow(count / least, RARITY);
            for at in 1..spelt.len() {
                for length in 0..=CONTEXT.min(at) {
                    *weights.entry((key(&spelt[..at], length), spelt[at])).or_default() += weight;
                }
            }
        }
        let mut contexts: FxHashMap<u64, Followers> = FxHashMap::default();
        for ((key, next), weight) in weights {
            let followers: &mut Followers = contexts.entry(key).or_default();
            followers.total += weight;
            followers.next.push((next, followers.total));
        }
        Self { characters, contexts }
    }

    /// Draws a word; `None` where it gets too long.
    fn spell(&self, stream: &mut Stream) -> Option<String> {
        let mut spelt = vec![START];
        while spelt.len() <= LONGEST {
            match self.next(&spelt, stream)? {
                END => {
                    let text = spelt[1..].iter().map(|&n| self.characters[usize::from(n - START) - 1]);
                    return Some(text.collect());
                }
                next => spelt.push(next),
            }
        }
        None
    }

    fn next(&self, spelt: &[u16], stream: &mut Stream) -> Option<u16> {
        for length in (0..=CONTEXT.min(spelt.len())).rev() {
            let Some(Followers { total, next }) = self.contexts.get(&key(spelt, length)) else { continue };
            let is_chosen = uniform(stream) * (total + SMOOTHING * next.len() as f64) < *total;
            if length == 0 || is_chosen {
                let at = uniform(stream) * total;
                return next
                    .get(next.partition_point(|follower| follower.1 <= at))
                    .map(|follower| follower.0);
            }
        }
        None
    }
}

/// Returns a number in [0, 1).
pub(super) fn uniform(stream: &mut Stream) -> f64 {
    const STEPS: u64 = 1 << 53;
    stream.below(STEPS) as f64 / STEPS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(number: usize) -> Vec<(String, f64)> {
        let spelt = |n: usize| {
            let syllables = ["ta", "ri", "mon", "el", "s", "ing", "ber", "o"];
            format!("▁{}{}{}", syllables[n % 8], syllables[n / 8 % 8], syllables[n / 64 % 8])
        };
        (0..number).map(|n| (spelt(n), 1e4 / libm::pow((n + 1) as f64, 1.5))).collect()
    }

    #[test]
    fn the_missing_count_is_that_of_the_law_that_the_counts_follow() {
        // Oracle: the sum of r^-1.5 over r > 200 lies between the integrals from 200 and from 201.
        let words = words(200);
        let own: Vec<(&str, f64)> = words.iter().map(|w| (w.0.as_str(), w.1)).collect();
        let beyond = |rank: f64| 1e4 * 2.0 / rank.sqrt();
        let found = EXCESS * missing_count(&own);
        assert!(found > beyond(201.0) * (1.0 - 1e-9) && found < beyond(200.0) * (1.0 + 1e-9), "{found}");
    }

    #[test]
    fn unseen_words_are_new_and_have_the_missing_counts() {
        let released = words(300);
        let unseen = unseen_words(&released);
        assert!(unseen.len() > 20 && unseen.iter().all(|one| released.iter().all(|known| known.0 != one.0)));
        let sum: f64 = unseen.iter().map(|word| word.1).sum();
        let own: Vec<(&str, f64)> = released.iter().map(|(word, count)| (word.as_str(), *count)).collect();
        assert!((sum / missing_count(&own) - 1.0).abs() < 1e-9, "{sum}");
        assert_eq!(unseen_words(&released[..10]), []);
    }

    #[test]
    fn runs_of_words_stay_and_change_no_invented_word() {
        let (words, run) = (words(200), ("▁tata▁riri".to_owned(), 7.0));
        let without = complete(&words).words;
        let with = complete(&[words, vec![run.clone()]].concat()).words;
        let (runs, others): (Vec<_>, Vec<_>) = with.into_iter().partition(|word| *word == run);
        assert!(runs == [run] && others == without);
    }

    #[test]
    fn invented_words_are_new_ones_of_the_same_letters_and_leave_the_released_counts() {
        let released = words(200);
        let backwards: Vec<_> = released.iter().rev().cloned().collect();
        let Completed { words: all, invented } = complete(&released);
        assert!(complete(&backwards).words == all);
        let (new, old): (Vec<_>, Vec<_>) = all.into_iter().zip(invented).partition(|(_, invented)| *invented);
        let old: BTreeMap<String, f64> = old.into_iter().map(|(word, _)| word).collect();
        assert_eq!(old, released.into_iter().collect::<BTreeMap<_, _>>());
        let letters: BTreeSet<char> = old.keys().flat_map(|word| word.chars()).collect();
        assert!(
            new.len() > 1000 && new.iter().all(|((word, _), _)| word.chars().all(|c| letters.contains(&c)))
        );
        assert!(new.iter().all(|((word, _), _)| word.rfind(BLANK).is_none_or(|at| at == 0)));
        let count: f64 = new.iter().map(|((_, count), _)| count).sum();
        let own: Vec<(&str, f64)> = old.iter().map(|w| (w.0.as_str(), *w.1)).collect();
        assert!((count / missing_count(&own) - 1.0).abs() < 1e-6, "{count}");
    }

    #[test]
    fn few_words_are_left_alone() {
        let few = words(LEAST_WORDS - 1);
        assert!(complete(&few).invented.iter().all(|invented| !invented));
    }
}
