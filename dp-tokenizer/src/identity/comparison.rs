//! Finds the records of two texts that share runs.

use std::fmt;

use super::found::{Found, Portion};
use super::tally::{Side, Tallies};
use super::{Key, PHRASE_LETTERS, RUN_CHARACTERS, RUN_WORDS, Read, Share, TELLING_WORDS};

/// The most hashes of the public text that are held at once, in 80 MB. Those of a larger text are compared in several
/// passes.
const MAX_HASHES: usize = 3_600_000;

/// The largest share of records that may be in the other text: 1 in 1,000. Books quote the same verses.
const MAX_SHARED: f64 = 0.001;
/// The largest share of runs that may be in the other text. Forms and letters repeat whole sentences.
const MAX_RUNS: f64 = 0.25;
/// The largest share of records, short ones included, that both texts may have.
const MAX_EQUAL: f64 = 0.5;

/// The figures of two texts, which say how much they share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// The figures of the public text.
    pub public: Side,
    /// The figures of the private text, which are as private as the text.
    pub private: Side,
}

/// The reason why two texts count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Too many records are in the other text; the first of these in the public text, counted from 1.
    Records(Option<u64>),
    /// Too many records are in the other text, if equal phrases count; the first of these phrases in the public text, counted from 1.
    Phrases(Option<u64>),
    /// Too many runs are in both texts.
    Runs,
    /// Too many records, most of them short, are in both texts.
    ShortRecords,
}

/// Whether records of fewer than [`TELLING_WORDS`] words may be equal if they have [`PHRASE_LETTERS`] letters or more.
/// In parts of one corpus, more than 1 record in 1,000 is such an equal phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EqualPhrases {
    /// Equal phrases count as copies.
    Refused,
    /// Equal phrases are coincidences, as somebody declares.
    Accepted,
}

impl Overlap {
    /// Accepts two texts of which, on both sides, at most 1 record in 1,000 is [`Side::mostly_shared`] or a refused equal phrase, at
    /// most a quarter of all runs are shared, and at most half of all records are equal.
    ///
    /// # Errors
    /// The reason why the texts count as one.
    pub fn check(&self, phrases: EqualPhrases) -> Result<(), Sharing> {
        let most = |part: u64, most: f64| part as f64 <= most;
        let both = |accepts: &dyn Fn(&Side) -> bool| accepts(&self.public) && accepts(&self.private);
        if !both(&|side| most(side.mostly_shared, MAX_SHARED * side.records as f64)) {
            Err(Sharing::Records(self.public.first_mostly_shared))
        } else if !both(&|side| most(side.shared_runs, MAX_RUNS * side.runs as f64)) {
            Err(Sharing::Runs)
        } else if !both(&|side| most(side.equal, MAX_EQUAL * side.records as f64)) {
            Err(Sharing::ShortRecords)
        } else if phrases == EqualPhrases::Refused
            && !both(&|side| most(side.mostly_shared + side.equal_phrases, MAX_SHARED * side.records as f64))
        {
            Err(Sharing::Phrases(self.public.first_equal_phrase))
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs =
            format!("runs of {RUN_WORDS} words (or {RUN_CHARACTERS} characters in scripts without blanks)");
        let first = |first: &Option<u64>| {
            first.map_or_else(String::new, |record| format!(", the first of them record {record}"))
        };
        match self {
            Self::Records(record) => {
                write!(
                    f,
                    "more than 1 in 1,000 records share half of their {runs} or, from {TELLING_WORDS} words on, are equal{}",
                    first(record)
                )
            }
            Self::Phrases(record) => {
                write!(
                    f,
                    "more than 1 in 1,000 records, most of them of fewer than {TELLING_WORDS} words but of {PHRASE_LETTERS} letters or \
                     more, are equal{}",
                    first(record)
                )
            }
            Self::Runs => write!(f, "more than a quarter of all {runs} are in both texts"),
            Self::ShortRecords => write!(f, "more than half of the records are in both texts"),
        }
    }
}

/// A function that returns the numbers of every process, given those of this one. An error of any process is returned
/// on all. All processes call it equally often.
pub type Exchange<'a, E> = &'a mut dyn FnMut(Result<Vec<u64>, E>) -> Result<Vec<Vec<u64>>, E>;

/// Compares a public text with a private one. Either is read at least once; a public text of many millions of words, several times.
///
/// Memory: 80 MB, and 12 bytes a record.
///
/// # Errors
/// Those of reading.
pub fn compare<E: Send>(key: &Key, public: Read<'_, E>, private: Read<'_, E>) -> Result<Overlap, E> {
    compare_shares(key, Share::whole(), public, private, &mut |own| own.map(|own| vec![own]))
}

/// Compares two texts as [`compare`] does, on several processes together. All have the same key and the same texts, and each reads
/// its share of the records. All get the same result.
///
/// # Errors
/// Those of reading, and of the exchange.
pub fn compare_shares<E: Send>(
    key: &Key,
    share: Share,
    public: Read<'_, E>,
    private: Read<'_, E>,
    exchange: Exchange<'_, E>,
) -> Result<Overlap, E> {
    Comparison { key, share, public, private, most: MAX_HASHES }.on_all(exchange)
}

struct Comparison<'a, E> {
    key: &'a Key,
    share: Share,
    public: Read<'a, E>,
    private: Read<'a, E>,
    /// The most hashes that are held at once.
    most: usize,
}

impl<E: Send> Comparison<'_, E> {
    fn on_all(&self, exchange: Exchange<'_, E>) -> Result<Overlap, E> {
        let texts = || [self.share.states::<Tallies>(), self.share.states::<Tallies>()];
        let [mut of_public, mut of_private] = texts();
        let (mut portion, mut sides) = (Portion { number: 0, of: 1 }, Vec::new());
        while portion.number < portion.of {
            let found = Found::collect(self.key, self.share.of_all(), self.public, portion, self.most);
            let (found, failed) = match found {
                Ok(found) => (found, None),
                Err(error) => (None, Some(error)),
            };
            let fits = exchange(failed.map_or(Ok(vec![u64::from(found.is_some())]), Err))?;
            let Some(found) = found.filter(|_| fits.iter().all(|fits| *fits == [1])) else {
                portion = Portion { number: 0, of: 2 * portion.of };
                [of_public, of_private] = texts();
                continue;
            };
            let noted = self.tally(self.private, portion, &mut of_private, |hash| found.note(hash));
            for hash in exchange(noted.map(|()| found.shared()))?.into_iter().flatten() {
                found.note(hash);
            }
            let known = self.tally(self.public, portion, &mut of_public, |hash| found.is_shared(hash));
            sides = exchange(known.map(|()| [side(&of_public), side(&of_private)].concat()))?;
            portion.number += 1;
        }
        Ok(Overlap::of_all(&sides))
    }

    /// Counts the fingerprints of this process's share of a text.
    fn tally(
        &self,
        read: Read<'_, E>,
        portion: Portion,
        tallies: &mut [Tallies],
        is_shared: impl Fn(u64) -> bool + Sync,
    ) -> Result<(), E> {
        self.share.each(tallies, |part, tallies| {
            tallies.part = Some(part);
            part.read(self.key, read, &mut |found| {
                tallies.add(part, found, portion, &is_shared);
            })
        })
    }
}

/// Returns the side of a text that several threads have counted, in the order in which [`Side::of_numbers`] reads it.
fn side(threads: &[Tallies]) -> [u64; Side::NUMBERS] {
    let mut side = Side::default();
    threads.iter().for_each(|thread| thread.add_to(&mut side));
    let Side { records, runs, shared_runs, equal, mostly_shared, equal_phrases, .. } = side;
    let firsts = [side.first_mostly_shared, side.first_equal_phrase].map(|first| first.unwrap_or(u64::MAX));
    [records, runs, shared_runs, equal, mostly_shared, equal_phrases, firsts[0], firsts[1]]
}

impl Side {
    /// The length of a side as numbers: six counts, and the places of two first records.
    const NUMBERS: usize = 8;

    /// Returns the side made from the numbers of all processes: counts are summed, first places minimized.
    fn of_numbers<'a>(all: impl Iterator<Item = &'a [u64]>) -> Self {
        let (mut sums, mut firsts) = ([0; 6], [u64::MAX; 2]);
        for own in all {
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            firsts
                .iter_mut()
                .zip(own.iter().skip(sums.len()))
                .for_each(|(first, own)| *first = (*first).min(*own));
        }
        let [records, runs, shared_runs, equal, mostly_shared, equal_phrases] = sums;
        let [first_mostly_shared, first_equal_phrase] =
            firsts.map(|first| Some(first).filter(|first| *first < u64::MAX));
        Self {
            records,
            runs,
            shared_runs,
            equal,
            mostly_shared,
            first_mostly_shared,
            equal_phrases,
            first_equal_phrase,
        }
    }
}

impl Overlap {
    fn of_all(sides: &[Vec<u64>]) -> Self {
        let half = |place: usize| {
            Side::of_numbers(sides.iter().filter_map(move |own| own.chunks_exact(Side::NUMBERS).nth(place)))
        };
        Self { public: half(0), private: half(1) }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Barrier, Mutex};

    use super::super::{Passage, Reading};
    use super::*;

    fn overlap(public: &[&str], private: &[&str], most: usize) -> Overlap {
        on_processes(1, public, private, most)[0]
    }

    /// Returns what each process finds.
    fn on_processes(count: usize, public: &[&str], private: &[&str], most: usize) -> Vec<Overlap> {
        let read = |texts: &[&str], reading: &mut Reading<'_>| {
            texts.iter().for_each(|text| reading.take(Passage::record(text)));
            Ok::<(), Infallible>(())
        };
        let public = |reading: &mut Reading<'_>| read(public, reading);
        let private = |reading: &mut Reading<'_>| read(private, reading);
        let (barrier, sent) = (Barrier::new(count), Mutex::new(vec![Vec::new(); count]));
        let work = |process: usize| {
            let share = Share { process: process as u64, processes: count as u64, threads: 2 };
            let comparison =
                Comparison { key: &Key::public(), share, public: &public, private: &private, most };
            let exchange = &mut |own: Result<Vec<u64>, Infallible>| {
                sent.lock().unwrap()[process] = own.unwrap();
                barrier.wait();
                let all = sent.lock().unwrap().clone();
                barrier.wait();
                Ok(all)
            };
            comparison.on_all(exchange).unwrap()
        };
        let work = &work;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|process| scope.spawn(move || work(process))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// The texts have copies of records of every block, on one side the first and on the other the last. They are
    /// compared in one portion and in several.
    #[test]
    fn processes_that_share_the_records_find_what_one_finds() {
        let own = |from: usize| -> Vec<String> { (from..from + 600).map(|n| words(n * 100, 17)).collect() };
        let (mut public, mut private) = (own(1_000), own(5_000));
        for copied in [595, 300, 130, 131] {
            public[copied] = words(copied * 40_000 + 7_000_000, 30);
            private[600 - copied] = words(copied * 40_000 + 7_000_010, 20);
        }
        private[599] = public[77].clone();
        let [public, private] =
            [&public, &private].map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
        for most in [usize::MAX, 500] {
            let one = overlap(&public, &private, most);
            assert_eq!((one.public.records, one.private.records), (600, 600));
            assert_eq!((one.public.equal, one.public.first_mostly_shared), (1, Some(78)), "{one:?}");
            assert_eq!((one.private.mostly_shared, one.private.first_mostly_shared), (5, Some(6)), "{one:?}");
            for count in [2, 3, 4] {
                assert_eq!(
                    on_processes(count, &public, &private, most),
                    vec![one; count],
                    "{count} processes"
                );
            }
        }
    }

    /// A first pass may fit into memory where a second does not.
    #[test]
    fn the_number_of_passes_changes_nothing() {
        let texts = |from: usize| -> Vec<String> { (from..from + 6).map(|n| words(n * 100, 20)).collect() };
        let (public, private) = (texts(0), texts(3));
        let [public, private] =
            [&public, &private].map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
        let one = overlap(&public, &private, usize::MAX);
        assert_eq!((one.public.equal, one.private.equal), (3, 3));
        for most in 10..130 {
            assert_eq!(overlap(&public, &private, most), one, "{most} hashes at once");
        }
    }

    #[test]
    fn a_record_that_is_a_run_of_another_is_shared_but_not_equal() {
        let (short, long) = (words(10, 13), words(0, 40));
        let found = overlap(&[&short], &[&long], usize::MAX);
        assert_eq!((found.public.mostly_shared, found.public.equal, found.private.equal), (1, 0, 0));
    }

    fn words(from: usize, count: usize) -> String {
        (from..from + count).map(|n| format!("w{n} ")).collect()
    }

    /// The thresholds are tested at their edges, on either side.
    #[test]
    fn one_record_more_than_the_thresholds_is_refused_on_either_side() {
        let clean = Side { records: 1_000, runs: 1_000, ..Side::default() };
        type Set = fn(&mut Side, u64);
        let cases: [(Set, u64, Sharing); 4] = [
            (|side, count| side.mostly_shared = count, 1, Sharing::Records(None)),
            (|side, count| side.equal_phrases = count, 1, Sharing::Phrases(None)),
            (|side, count| side.shared_runs = count, 250, Sharing::Runs),
            (|side, count| side.equal = count, 500, Sharing::ShortRecords),
        ];
        for (set, most, sharing) in cases {
            let of = |count| {
                let mut side = clean;
                set(&mut side, count);
                [Overlap { public: side, private: clean }, Overlap { public: clean, private: side }]
            };
            let check = |overlap: &Overlap| overlap.check(EqualPhrases::Refused);
            assert!(of(most).iter().all(|overlap| check(overlap).is_ok()), "{sharing:?}");
            assert!(of(most + 1).iter().all(|overlap| check(overlap) == Err(sharing)), "{sharing:?}");
            let accepted = of(most + 1).map(|overlap| overlap.check(EqualPhrases::Accepted).is_ok());
            assert_eq!(accepted, [matches!(sharing, Sharing::Phrases(_)); 2]);
        }
        let both = Side { mostly_shared: 1, equal_phrases: 1, ..clean };
        let overlap = Overlap { public: both, private: clean };
        assert_eq!(overlap.check(EqualPhrases::Refused), Err(Sharing::Phrases(None)));
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
                    assert!(
                        matches!(found.check(EqualPhrases::Accepted), Err(Sharing::Records(_))),
                        "{found:?}"
                    );
                }
                assert_eq!(overlap(&public, &private, 100), overlap(&public, &private, usize::MAX));
            }
        }
        assert_eq!(
            overlap(&[&before, &secret], &[&after, &secret], 1000).public.first_mostly_shared,
            Some(2)
        );
        overlap(&unrelated[..50], &unrelated[50..], 1000).check(EqualPhrases::Refused).unwrap();
    }

    #[test]
    fn a_phrase_that_is_equal_is_found_and_may_be_accepted() {
        let texts = |from: usize| -> Vec<String> { (from..from + 50).map(|n| words(n * 100, 17)).collect() };
        let (mut public, mut private) = (texts(1_000), texts(5_000));
        public.insert(30, "An excellent, outstanding idea!".to_owned());
        private.push("an excellent outstanding IDEA".to_owned());
        let [public, private] =
            [&public, &private].map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
        let found = overlap(&public, &private, usize::MAX);
        assert_eq!((found.public.mostly_shared, found.public.equal_phrases), (0, 1));
        assert_eq!(found.check(EqualPhrases::Refused), Err(Sharing::Phrases(Some(31))));
        assert_eq!(found.check(EqualPhrases::Accepted), Ok(()));
        assert_eq!(on_processes(3, &public, &private, usize::MAX), vec![found; 3]);
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
            overlap(&public, &private, 1 << 20).check(EqualPhrases::Refused)
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
