//! Counts the runs of each record.

use super::found::{Portion, hash_of};
use super::share::Part;
use super::{Fingerprint, Length};

/// The figures of one of two texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// The number of records with letters or digits.
    pub records: u64,
    /// The number of runs of words.
    pub runs: u64,
    /// The number of runs that the other text has as well.
    pub shared_runs: u64,
    /// The number of records that the other text has as well.
    pub equal: u64,
    /// The number of records of which the other text has at least half of the runs, and of shorter ones of at least
    /// [`TELLING_WORDS`](super::TELLING_WORDS) words that the other text has as a whole.
    pub mostly_shared: u64,
    /// The first record that is mostly shared, counted from 1.
    pub first_mostly_shared: Option<u64>,
    /// The number of records that are not [`Side::mostly_shared`], have at least
    /// [`PHRASE_LETTERS`](super::PHRASE_LETTERS) letters, and are in the other text as a whole.
    pub equal_phrases: u64,
    /// The first record that is an equal phrase, counted from 1.
    pub first_equal_phrase: Option<u64>,
}

/// The counts of a record. If the record has runs within it, only these count; if it is shorter, the runs that begin in
/// it.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    runs: u32,
    shared: u32,
    is_long: bool,
    has_letters: bool,
    is_equal: bool,
    length: Length,
}

impl Tally {
    /// Adds a fingerprint of the record. Only the first portion counts runs.
    fn add(&mut self, fingerprint: Fingerprint, is_shared: bool, is_first: bool) {
        match fingerprint {
            Fingerprint::Run { is_within, .. } => {
                if is_within && !self.is_long {
                    *self = Self { is_long: true, ..Self::default() };
                }
                if is_within == self.is_long {
                    self.runs += u32::from(is_first);
                    self.shared += u32::from(is_shared);
                }
            }
            Fingerprint::Record { hash, length, .. } => {
                (self.has_letters, self.length) = (hash.is_some(), length);
                self.is_equal |= is_shared;
            }
        }
    }
}

/// The number of tallies that are allocated at once. One growing allocation would be moved, and would leave its old
/// places behind.
const CHUNK: usize = 1 << 14;

/// The tallies of the records of a part of a text.
#[derive(Default)]
pub(super) struct Tallies {
    pub part: Option<Part>,
    chunks: Vec<Box<[Tally]>>,
}

impl Tallies {
    /// Counts fingerprints. `is_shared` says whether both texts have a hash of the portion.
    pub fn add(
        &mut self,
        part: Part,
        found: &[Fingerprint],
        portion: Portion,
        is_shared: impl Fn(u64) -> bool,
    ) {
        let of_one_record = |one: &Fingerprint, other: &Fingerprint| one.record() == other.record();
        for own in found.chunk_by(of_one_record) {
            let tally = self.of(part.place(own[0].record()));
            for one in own {
                let shared = hash_of(*one).is_some_and(|hash| portion.has(hash) && is_shared(hash));
                tally.add(*one, shared, portion.number == 0);
            }
        }
    }

    fn of(&mut self, place: usize) -> &mut Tally {
        while place / CHUNK >= self.chunks.len() {
            self.chunks.push(vec![Tally::default(); CHUNK].into());
        }
        &mut self.chunks[place / CHUNK][place % CHUNK]
    }

    /// Adds the part to a side.
    pub fn add_to(&self, side: &mut Side) {
        let Some(part) = self.part else { return };
        for (place, tally) in self.chunks.iter().flatten().enumerate() {
            side.records += u64::from(tally.has_letters);
            side.runs += u64::from(tally.runs);
            side.shared_runs += u64::from(tally.shared);
            side.equal += u64::from(tally.is_equal);
            let by_runs = tally.shared > 0 && 2 * tally.shared >= tally.runs;
            let (count, first) = match tally.length {
                _ if by_runs => (&mut side.mostly_shared, &mut side.first_mostly_shared),
                Length::Sentence if tally.is_equal => {
                    (&mut side.mostly_shared, &mut side.first_mostly_shared)
                }
                Length::Phrase if tally.is_equal => (&mut side.equal_phrases, &mut side.first_equal_phrase),
                _ => continue,
            };
            let record = part.record(place) + 1;
            *count += 1;
            *first = Some(first.map_or(record, |first| first.min(record)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of records that are mostly shared, and of equal phrases.
    fn counted(tally: Tally) -> [u64; 2] {
        let mut side = Side::default();
        Tallies { part: Some(Part::WHOLE), chunks: vec![[tally].into()] }.add_to(&mut side);
        [side.mostly_shared, side.equal_phrases]
    }

    #[test]
    fn half_of_the_runs_or_all_of_a_record_of_eight_words_counts() {
        let own = Tally { runs: 8, has_letters: true, ..Tally::default() };
        assert_eq!(counted(Tally { shared: 3, ..own }), [0, 0]);
        assert_eq!(counted(Tally { shared: 4, ..own }), [1, 0]);
        let equal = Tally { is_equal: true, runs: 0, ..own };
        assert_eq!(counted(equal), [0, 0]);
        assert_eq!(counted(Tally { length: Length::Sentence, ..equal }), [1, 0]);
        assert_eq!(counted(Tally { length: Length::Sentence, ..own }), [0, 0]);
        assert_eq!(counted(Tally { length: Length::Phrase, ..equal }), [0, 1]);
        assert_eq!(counted(Tally { length: Length::Phrase, ..own }), [0, 0]);
        assert_eq!(counted(Tally { length: Length::Phrase, shared: 4, is_equal: true, ..own }), [1, 0]);
    }

    /// Runs that a record shares with the next one do not count if the record has runs of its own.
    #[test]
    fn runs_within_a_record_are_all_that_count_if_there_are_any() {
        let run = |is_within| Fingerprint::Run { record: 0, hash: 1, is_within };
        let counted = |runs: &[(bool, bool)]| {
            let mut tally = Tally::default();
            runs.iter().for_each(|(is_within, is_shared)| tally.add(run(*is_within), *is_shared, true));
            (tally.runs, tally.shared)
        };
        assert_eq!(counted(&[(false, true), (false, false)]), (2, 1));
        assert_eq!(counted(&[(true, false), (true, true), (false, true)]), (2, 1));
        assert_eq!(counted(&[(false, true), (true, false)]), (1, 0));
    }
}
