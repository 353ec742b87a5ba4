//! Joins words by class to words as they stand in a text, between blanks.
//!
//! A release by class finds `▁home`, `,` and `.`, but not that a comma often stands behind a word. Its counts say how often a
//! word of each class opens a run between blanks and how often one goes on. Joined words follow these rates, as if what goes on
//! did not depend on what it goes on from. Pieces such as `ed,` are learnt from them. This is post-processing and costs no privacy.

use std::collections::BTreeMap;

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};

use super::unseen::{Class, Completed, uniform};
use crate::count::MAX_ITEM_CHARS;
use tokenizer::BLANK;

/// The most words that are joined to one. Its length stays within that of the trainer's words.
const MAX_WORDS: usize = 3;

/// The share of all words below which a join is left out, by its expected count.
const LEAST_SHARE: f64 = 1e-5;

/// The largest share of words that may go on, so that some words end.
const MAX_CONTINUED: f64 = 0.95;

/// The words of a class that go on from a word of another class.
#[derive(Default)]
struct Followers<'a> {
    /// The words by falling count, each with the sum of all counts up to it.
    words: Vec<(&'a str, f64, f64)>,
    count: f64,
}

struct Joiner<'a> {
    followers: [Followers<'a>; 3],
    /// For each class, the shares of its words that a word of each class follows.
    rates: [[f64; 3]; 3],
    least: f64,
    joined: BTreeMap<String, (f64, bool)>,
    /// The expected count of each follower as part of a joined word.
    used: BTreeMap<&'a str, f64>,
}

/// Joins words by class, some of which are invented, to words as they are written. The sum of the counts of each word
/// by class stays, except for roundings.
pub(super) fn join(completed: &Completed) -> Completed {
    let words = || completed.words.iter().zip(&completed.invented);
    let mut joiner = Joiner::new(&completed.words);
    let mut stream = TestRng::from_seed(0).stream(Purpose::Data, Class::ALL.len() as u64, 0);
    for ((word, count), is_invented) in words().filter(|((word, _), _)| word.starts_with(BLANK)) {
        // This is a blank before another one, or a word too long to be joined.
        if word.chars().nth(1).is_none() || !is_short(word) {
            add(&mut joiner.joined, word.clone(), *count, *is_invented);
        } else if *is_invented {
            joiner.draw(word, *count, &mut stream);
        } else {
            joiner.expand(word.clone(), Class::of(word), *count, 1);
        }
    }
    let Joiner { mut joined, used, .. } = joiner;
    for ((word, count), is_invented) in words().filter(|((word, _), _)| !word.starts_with(BLANK)) {
        let left = count - used.get(word.as_str()).copied().unwrap_or(0.0);
        if left > 0.0 {
            add(&mut joined, word.clone(), left, *is_invented);
        }
    }
    let invented = joined.values().map(|word| word.1).collect();
    Completed { words: joined.into_iter().map(|(word, (count, _))| (word, count)).collect(), invented }
}

fn is_short(word: &str) -> bool {
    word.chars().count() <= MAX_ITEM_CHARS + 1
}

fn add(joined: &mut BTreeMap<String, (f64, bool)>, word: String, count: f64, is_invented: bool) {
    let entry = joined.entry(word).or_insert((0.0, true));
    entry.0 += count;
    entry.1 &= is_invented;
}

/// Whether a word with a capital would follow a mark that has a blank behind it. Most such words stand at the starts of records, where no blank
/// is before them either.
fn opens_a_sentence(before: &str, next: &str) -> bool {
    before.ends_with(['.', ',', ';', ':', '!', '?']) && next.starts_with(char::is_uppercase)
}

impl<'a> Joiner<'a> {
    fn new(words: &'a [(String, f64)]) -> Self {
        let mut all = [0.0; 3];
        let mut followers: [Followers<'a>; 3] = Default::default();
        for (word, count) in words {
            let class = Class::of(word) as usize;
            all[class] += count;
            if !word.starts_with(BLANK) && is_short(word) {
                followers[class].words.push((word, *count, 0.0));
            }
        }
        let total: f64 = all.iter().sum();
        for followers in &mut followers {
            followers.words.sort_by(|a, b| b.1.total_cmp(&a.1));
            for word in &mut followers.words {
                followers.count += word.1;
                word.2 = followers.count;
            }
        }
        let rates = Class::ALL.map(|from| {
            let mut rates = Class::ALL.map(|to| {
                let others = total - all[to as usize];
                if to == from || others <= 0.0 { 0.0 } else { followers[to as usize].count / others }
            });
            let sum: f64 = rates.iter().sum();
            rates.iter_mut().for_each(|rate| *rate *= (MAX_CONTINUED / sum).min(1.0));
            rates
        });
        Self { followers, rates, least: total * LEAST_SHARE, joined: BTreeMap::new(), used: BTreeMap::new() }
    }

    /// Adds a word with this count, and its joins with other words, which take their share of the count.
    fn expand(&mut self, word: String, class: Class, count: f64, length: usize) {
        let mut left = count;
        let continued = if length < MAX_WORDS { Class::ALL.as_slice() } else { &[] };
        for &to in continued {
            let rate = self.rates[class as usize][to as usize];
            let share = count * rate / self.followers[to as usize].count;
            for at in 0..self.followers[to as usize].words.len() {
                let (next, frequency, _) = self.followers[to as usize].words[at];
                let expected = share * frequency;
                if opens_a_sentence(&word, next) {
                    continue;
                }
                if expected >= self.least {
                    left -= expected;
                    *self.used.entry(next).or_default() += expected;
                    self.expand(format!("{word}{next}"), to, expected, length + 1);
                } else {
                    break;
                }
            }
        }
        add(&mut self.joined, word, left, false);
    }

    /// Adds a word with followers that are drawn at random.
    fn draw(&mut self, word: &str, count: f64, stream: &mut Stream) {
        let (mut text, mut class) = (word.to_owned(), Class::of(word));
        for _ in 1..MAX_WORDS {
            let mut at = uniform(stream);
            let rates = self.rates[class as usize];
            let next = Class::ALL.into_iter().find(|to| {
                at -= rates[*to as usize];
                at < 0.0
            });
            let Some(next) = next else { break };
            let followers = &self.followers[next as usize];
            let place = uniform(stream) * followers.count;
            let Some(&(follower, ..)) =
                followers.words.get(followers.words.partition_point(|word| word.2 <= place))
            else {
                break;
            };
            text.push_str(follower);
            *self.used.entry(follower).or_default() += count;
            class = next;
        }
        add(&mut self.joined, text, count, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_words_keep_the_counts_of_their_parts_and_follow_the_rates() {
        let words = [
            ("▁home", 600.0),
            ("▁run", 200.0),
            ("▁\"", 100.0),
            ("▁", 9.0),
            (",", 150.0),
            (".", 50.0),
            ("so", 40.0),
            ("Ann", 20.0),
        ];
        let words: Vec<(String, f64)> = words.map(|(word, count)| (word.to_owned(), count)).to_vec();
        let invented = vec![false; words.len()];
        let Completed { words: joined, invented } = join(&Completed { words: words.clone(), invented });
        assert!(invented.iter().all(|invented| !invented));
        let count = |start: &str| {
            joined.iter().filter(|word| word.0.starts_with(start)).map(|word| word.1).sum::<f64>()
        };
        // Commas follow 150 of 860 words of letters.
        assert!((count("▁home,") / 600.0 - 150.0 / 860.0).abs() < 1e-9, "{joined:?}");
        assert!(count("▁\"Ann") > 0.0 && count("▁home,so") > 0.0 && count("▁home,Ann") == 0.0);
        assert!(count("▁\"so") > 0.0 && count("▁homeso") == 0.0 && count("▁,") == 0.0);
        for (part, whole) in words.iter().filter(|word| word.0 != "▁") {
            let part_of = |word: &str| word.match_indices(part.as_str()).count() as f64;
            let sum: f64 = joined.iter().map(|(word, count)| part_of(word) * count).sum();
            assert!((sum / whole - 1.0).abs() < 1e-9, "{part}: {sum}");
        }
    }
}
