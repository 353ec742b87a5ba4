//! Invented clinical notes from a seed: names, phone numbers, dates, drugs, and planted secrets.
//!
//! Every person, number and address is invented. The notes replace private text in examples and tests, and contain the same
//! kinds of details, which a model must not memorize. Some notes contain a *canary*, a sentence with a random secret. How well a
//! trained model predicts it, compared with secrets that were never planted, measures memorization.

mod note;
mod vocabulary;

use std::collections::HashMap;

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};

use super::Record;

/// The number of occurrences of each planted secret. Large corpora contain all.
const REPETITIONS: [u64; 12] = [1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 16];

/// Index of the stream that chooses canaries; notes use others.
const CANARY_STREAM: u32 = 1;

/// A planted secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canary {
    /// The text before the secret, without a blank at its end.
    pub prefix: String,
    /// The secret, eight digits in two groups.
    pub secret: String,
    /// Number of notes that contain it.
    pub repetitions: u64,
}

impl Canary {
    /// Returns the sentence as planted.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("{} {}.", self.prefix, self.secret)
    }
}

/// Returns the secrets planted in a corpus of this size and seed, in at most a tenth of the notes.
///
/// ```
/// use dp_tokenizer::corpus::{Source, clinical, open};
/// let canary = &clinical::canaries(6000, 7)[0];
/// let mut found = 0;
/// for note in open(&Source::Embedded { records: 6000, seed: 7 })? {
///     found += u64::from(note?.text.contains(&canary.sentence()));
/// }
/// assert_eq!(found, canary.repetitions);
/// # Ok::<(), dp_tokenizer::corpus::CorpusError>(())
/// ```
#[must_use]
pub fn canaries(records: u64, seed: u64) -> Vec<Canary> {
    let mut stream = TestRng::from_seed(seed).stream(Purpose::Data, u64::MAX, CANARY_STREAM);
    let mut room = records / 10;
    let mut out = Vec::new();
    for (number, repetitions) in REPETITIONS.into_iter().enumerate() {
        let canary = Canary { prefix: prefix(number), secret: secret(&mut stream), repetitions };
        if repetitions <= room {
            room -= repetitions;
            out.push(canary);
        }
    }
    out
}

fn prefix(number: usize) -> String {
    let place = vocabulary::LOCKED_PLACES[number % vocabulary::LOCKED_PLACES.len()];
    format!("The access code of the {place} is")
}

fn secret(stream: &mut Stream) -> String {
    format!("{:04} {:04}", stream.below(10_000), stream.below(10_000))
}

/// The notes of one seed in order.
pub(super) struct Notes {
    rng: TestRng,
    records: u64,
    next: u64,
    planted: HashMap<u64, String>,
}

impl Notes {
    pub(super) fn new(records: u64, seed: u64) -> Self {
        let rng = TestRng::from_seed(seed);
        let mut places = rng.stream(Purpose::Data, u64::MAX, 0);
        let mut planted = HashMap::new();
        for canary in canaries(records, seed) {
            let mut left = canary.repetitions;
            // At most a tenth of the notes are taken, so a free one is soon found.
            while left > 0 {
                let place = places.below(records);
                if let std::collections::hash_map::Entry::Vacant(free) = planted.entry(place) {
                    free.insert(canary.sentence());
                    left -= 1;
                }
            }
        }
        Self { rng, records, next: 0, planted }
    }
}

impl Iterator for Notes {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.next >= self.records {
            return None;
        }
        let index = self.next;
        self.next += 1;
        Some(note::write(&self.rng, index, self.records, self.planted.get(&index).map(String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_notes_and_another_seed_others() {
        let all = |seed| Notes::new(50, seed).collect::<Vec<_>>();
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
    }

    #[test]
    fn a_patient_has_one_name_and_several_notes() {
        let notes: Vec<_> = Notes::new(400, 1).collect();
        let mut by_user: HashMap<String, Vec<String>> = HashMap::new();
        for note in notes {
            let name = note.text.split(',').next().unwrap_or_default().to_owned();
            by_user.entry(note.user.unwrap()).or_default().push(name);
        }
        assert!(by_user.len() > 50 && by_user.values().any(|n| n.len() > 2), "{}", by_user.len());
        assert!(by_user.values().all(|names| names.iter().all(|n| *n == names[0])));
    }

    #[test]
    fn notes_hold_phones_and_are_of_a_length_worth_reading() {
        let notes: Vec<_> = Notes::new(500, 3).collect();
        let words = notes.iter().map(|n| n.text.split_whitespace().count()).sum::<usize>() / notes.len();
        assert!((50..150).contains(&words), "{words} words a note");
        assert!(notes.iter().filter(|n| n.text.contains("555-")).count() > 100);
        assert!(notes.iter().all(|n| !n.text.contains('\n') && !n.text.contains("  ")));
    }

    #[test]
    fn small_corpora_get_few_canaries_and_planting_ends() {
        assert!(canaries(5, 1).is_empty());
        assert_eq!(canaries(20, 1).iter().map(|c| c.repetitions).sum::<u64>(), 2);
        assert_eq!(canaries(6000, 7).len(), REPETITIONS.len());
        for canary in canaries(640, 7) {
            let found = Notes::new(640, 7).filter(|n| n.text.contains(&canary.sentence())).count();
            assert_eq!(found as u64, canary.repetitions);
        }
    }
}
