//! Which records of two texts share runs.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use super::{Fingerprint, Fingerprints, Key, RUN_CHARACTERS, RUN_WORDS, Read, TELLING_WORDS};

/// Hashes of the public text that are held at once, in 80 MB. Those of a larger text are compared in several passes.
const MOST_HASHES: usize = 3_600_000;

/// The largest share of records that may be in the other text: 1 in 1,000. Books quote the same verses.
const MOST_SHARED: f64 = 0.001;
/// The largest share of runs that may be in the other text. Forms and letters repeat whole sentences.
const MOST_RUNS: f64 = 0.25;
/// The largest share of records, short ones included, that both texts may have.
const MOST_EQUAL: f64 = 0.5;

/// One of two texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Records with letters or digits.
    pub records: u64,
    /// Runs of words.
    pub runs: u64,
    /// Runs that the other text has as well.
    pub shared_runs: u64,
    /// Records that the other text has as well.
    pub equal: u64,
    /// Records of whose runs at least half are in the other text, and shorter ones of at least [`TELLING_WORDS`] words that the
    /// other text has as a whole.
    pub mostly_shared: u64,
    /// The first of these, counted from 1.
    pub first_mostly_shared: Option<u64>,
}

/// What two texts share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// Of the public text.
    pub public: Side,
    /// Of the private text. Its figures are as private as the text.
    pub private: Side,
}

/// What makes two texts one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Too many records are in the other text; the first of these in the public text, counted from 1.
    Records(Option<u64>),
    /// Too many runs are in both texts.
    Runs,
    /// Too many records, most of them short, are in both texts.
    ShortRecords,
}

impl Overlap {
    /// Accepts two texts of which, on both sides, at most 1 record in 1,000 is [`Side::mostly_shared`], at most a quarter of all runs
    /// are shared, and at most half of all records are equal.
    ///
    /// # Errors
    /// What they share.
    pub fn check(&self) -> Result<(), Sharing> {
        let most = |part: u64, most: f64| part as f64 <= most;
        let both = |accepts: &dyn Fn(&Side) -> bool| accepts(&self.public) && accepts(&self.private);
        if !both(&|side| most(side.mostly_shared, MOST_SHARED * side.records as f64)) {
            Err(Sharing::Records(self.public.first_mostly_shared))
        } else if !both(&|side| most(side.shared_runs, MOST_RUNS * side.runs as f64)) {
            Err(Sharing::Runs)
        } else if !both(&|side| most(side.equal, MOST_EQUAL * side.records as f64)) {
            Err(Sharing::ShortRecords)
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs =
            format!("runs of {RUN_WORDS} words (or {RUN_CHARACTERS} characters in scripts without blanks)");
        match self {
            Self::Records(first) => {
                write!(
                    f,
                    "more than 1 in 1,000 records share half of their {runs} or, from {TELLING_WORDS} words on, are equal"
                )?;
                first.map_or(Ok(()), |record| write!(f, ", the first of them record {record}"))
            }
            Self::Runs => write!(f, "more than a quarter of all {runs} are in both texts"),
            Self::ShortRecords => write!(f, "more than half of the records are in both texts"),
        }
    }
}

/// Hashes are uniform already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The share of the public text's hashes that one pass compares.
#[derive(Clone, Copy)]
struct Pass {
    number: u64,
    of: u64,
}

impl Pass {
    fn has(self, hash: u64) -> bool {
        hash % self.of == self.number
    }
}

/// Hashes of the public text, and whether the private one has them.
struct Found {
    hashes: HashMap<u64, bool, BuildHasherDefault<Identity>>,
    /// A bit that is set for each hash. Most hashes of other texts meet one that is not.
    filter: Vec<u64>,
}

impl Found {
    /// The hashes of a pass; [`None`] if they are too many.
    fn collect<E>(key: &Key, read: Read<'_, E>, pass: Pass, most: usize) -> Result<Option<Self>, E> {
        let mut hashes = HashMap::default();
        each(key, read, &mut |fingerprint| {
            let hash = hash_of(fingerprint).filter(|hash| pass.has(*hash));
            if let Some(hash) = hash.filter(|_| hashes.len() <= most) {
                hashes.insert(hash, false);
            }
        })?;
        if hashes.len() > most {
            return Ok(None);
        }
        let mut filter = vec![0; (hashes.len() / 8).next_power_of_two().max(1024)];
        for hash in hashes.keys() {
            let (word, bit) = Self::place(&filter, *hash);
            filter[word] |= bit;
        }
        Ok(Some(Self { hashes, filter }))
    }

    fn place(filter: &[u64], hash: u64) -> (usize, u64) {
        ((hash >> 32) as usize & (filter.len() - 1), 1 << (hash >> 26 & 63))
    }

    /// Notes that the private text has a hash. Whether the public one has it, too.
    fn note(&mut self, hash: u64) -> bool {
        let (word, bit) = Self::place(&self.filter, hash);
        if self.filter[word] & bit == 0 {
            return false;
        }
        self.hashes.get_mut(&hash).map(|found| *found = true).is_some()
    }

    /// Whether the private text has a hash of the public one.
    fn is_shared(&self, hash: u64) -> bool {
        self.hashes.get(&hash).copied().unwrap_or(false)
    }
}

/// The hash of a fingerprint. Records and runs differ.
fn hash_of(fingerprint: Fingerprint) -> Option<u64> {
    match fingerprint {
        Fingerprint::Run { hash, .. } => Some(hash),
        Fingerprint::Record { hash, .. } => hash.map(|hash| !hash),
    }
}

fn each<E>(key: &Key, read: Read<'_, E>, take: &mut impl FnMut(Fingerprint)) -> Result<(), E> {
    let mut fingerprints = Fingerprints::new(key);
    read(&mut |passage| fingerprints.read(passage, take))
}

/// Compares a public text with a private one. Either is read at least once; a public text of many millions of words, several times.
///
/// Memory: 80 MB, and 12 bytes a record.
///
/// # Errors
/// Those of reading.
pub fn compare<E>(key: &Key, public: Read<'_, E>, private: Read<'_, E>) -> Result<Overlap, E> {
    compare_within(key, public, private, MOST_HASHES)
}

fn compare_within<E>(
    key: &Key,
    public: Read<'_, E>,
    private: Read<'_, E>,
    most: usize,
) -> Result<Overlap, E> {
    let (mut of_public, mut of_private) = (Tallies::default(), Tallies::default());
    let mut pass = Pass { number: 0, of: 1 };
    while pass.number < pass.of {
        let Some(mut found) = Found::collect(key, public, pass, most)? else {
            let of = 2 * pass.of;
            (pass, of_public, of_private) = (Pass { number: 0, of }, Tallies::default(), Tallies::default());
            continue;
        };
        each(key, private, &mut |one| of_private.add(one, pass, |hash| found.note(hash)))?;
        each(key, public, &mut |one| of_public.add(one, pass, |hash| found.is_shared(hash)))?;
        pass.number += 1;
    }
    Ok(Overlap { public: of_public.side(), private: of_private.side() })
}

/// Runs of a record. Of a record with runs within it, these count alone; of a shorter one, those that begin in it.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    runs: u32,
    shared: u32,
    is_long: bool,
    has_letters: bool,
    is_equal: bool,
    is_telling: bool,
}

/// The runs of all records of a text.
#[derive(Default)]
struct Tallies(Vec<Tally>);

impl Tallies {
    /// Counts a fingerprint. `is_shared` says of a hash of the pass whether both texts have it.
    fn add(&mut self, fingerprint: Fingerprint, pass: Pass, is_shared: impl FnOnce(u64) -> bool) {
        let shared = hash_of(fingerprint).is_some_and(|hash| pass.has(hash) && is_shared(hash));
        let is_first = pass.number == 0;
        match fingerprint {
            Fingerprint::Run { record, is_within, .. } => {
                let tally = self.of(record);
                if is_within && !tally.is_long {
                    *tally = Tally { is_long: true, ..Tally::default() };
                }
                if is_within == tally.is_long {
                    tally.runs += u32::from(is_first);
                    tally.shared += u32::from(shared);
                }
            }
            Fingerprint::Record { record, hash, is_telling } => {
                let tally = self.of(record);
                (tally.has_letters, tally.is_telling) = (hash.is_some(), is_telling);
                tally.is_equal |= shared;
            }
        }
    }

    fn of(&mut self, record: u64) -> &mut Tally {
        let place = record as usize;
        if place >= self.0.len() {
            self.0.resize(place + 1, Tally::default());
        }
        &mut self.0[place]
    }

    fn side(&self) -> Side {
        let mut side = Side::default();
        for (number, tally) in (1..).zip(&self.0) {
            side.records += u64::from(tally.has_letters);
            side.runs += u64::from(tally.runs);
            side.shared_runs += u64::from(tally.shared);
            side.equal += u64::from(tally.is_equal);
            let by_runs = tally.shared > 0 && 2 * tally.shared >= tally.runs;
            if by_runs || (tally.is_telling && tally.is_equal) {
                side.mostly_shared += 1;
                side.first_mostly_shared.get_or_insert(number);
            }
        }
        side
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::Passage;
    use super::*;

    fn overlap(public: &[&str], private: &[&str], most: usize) -> Overlap {
        let read = |texts: &[&str], take: &mut dyn FnMut(Passage<'_>)| {
            texts.iter().for_each(|text| take(Passage::record(text)));
            Ok::<(), Infallible>(())
        };
        let key = Key::public();
        compare_within(&key, &|take| read(public, take), &|take| read(private, take), most).unwrap()
    }

    fn words(from: usize, count: usize) -> String {
        (from..from + count).map(|n| format!("w{n} ")).collect()
    }

    #[test]
    fn a_record_is_found_whole_in_parts_and_within_another_in_both_texts() {
        let secret = words(0, 40);
        let (first, second) = secret.split_at(secret.len() / 2);
        let lines: Vec<String> = (0..8).map(|line| words(5 * line, 5)).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (before, after) = (words(1_000, 300), words(2_000, 300));
        let within = [before.clone(), secret.clone(), after.clone()].concat();
        let unrelated: Vec<String> = (5..105).map(|n| words(n * 10_000, 30)).collect();
        let unrelated: Vec<&str> = unrelated.iter().map(String::as_str).collect();
        let forms: [&[&str]; 4] = [&[&secret], &[first, second], &lines, &[&within]];
        for form in forms {
            for (public, private) in [(form, &[secret.as_str()][..]), (&[secret.as_str()][..], form)] {
                let (public, private) =
                    ([&unrelated[..50], public].concat(), [&unrelated[50..], private].concat());
                for most in [usize::MAX, 100] {
                    let found = overlap(&public, &private, most);
                    assert!(matches!(found.check(), Err(Sharing::Records(_))), "{found:?}");
                }
                assert_eq!(overlap(&public, &private, 100), overlap(&public, &private, usize::MAX));
            }
        }
        assert_eq!(
            overlap(&[&before, &secret], &[&after, &secret], 1000).public.first_mostly_shared,
            Some(2)
        );
        overlap(&unrelated[..50], &unrelated[50..], 1000).check().unwrap();
    }

    #[test]
    fn a_quotation_is_no_copy_but_quotations_everywhere_are_and_so_are_most_short_records() {
        let quoting = |n: usize| [words(n * 1_000, 28), words(7, 45), words(n * 1_000 + 500, 28)].concat();
        let text = |numbers: std::ops::Range<usize>, quotes: usize| -> Vec<String> {
            let quotes = numbers.start + quotes;
            numbers.map(|n| if n < quotes { quoting(n) } else { words(n * 1_000, 101) }).collect()
        };
        let check = |public: &[String], private: &[String]| {
            let [public, private] =
                [public, private].map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
            overlap(&public, &private, 1 << 20).check()
        };
        check(&text(1..101, 60), &text(201..301, 60)).unwrap();
        assert_eq!(check(&text(1..101, 70), &text(201..301, 1)), Err(Sharing::Runs));
        assert_eq!(check(&text(1..101, 1), &text(201..301, 70)), Err(Sharing::Runs));
        let short = |own: usize| -> Vec<String> {
            (0..10).map(|n| if n < 5 { format!("reply {n}") } else { format!("reply {}", own + n) }).collect()
        };
        let (one, mut other) = (short(100), short(200));
        check(&one, &other).unwrap();
        other[9] = one[9].clone();
        other.rotate_left(3);
        assert_eq!(check(&one, &other), Err(Sharing::ShortRecords));
    }
}
