//! A sample of a text's fingerprints, of bounded size.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::{Fingerprint, Key, Read, Share};

/// The share of a text's sketch that another text must have in order to hold the text.
const MAX_SHARE_OF_A_TEXT: f64 = 0.5;

/// A sample of the hashes of a text: those with at least `level` zeros at the end. All sketches under one key sample alike, so that
/// the share of one text in another follows from their sketches (Broder 1997, <https://doi.org/10.1109/SEQUEN.1997.666900>).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    level: u32,
    hashes: BTreeSet<u64>,
}

impl Sample {
    fn add(&mut self, hash: u64, most: usize) {
        if hash.trailing_zeros() < self.level || !self.hashes.insert(hash) {
            return;
        }
        self.shrink(most);
    }

    fn merge(&mut self, other: &Self, most: usize) {
        self.level = self.level.max(other.level);
        let level = self.level;
        self.hashes.extend(&other.hashes);
        self.hashes.retain(|hash| hash.trailing_zeros() >= level);
        self.shrink(most);
    }

    /// Returns the sample as numbers: its level, the number of its hashes, and the hashes.
    fn to_numbers(&self) -> impl Iterator<Item = u64> {
        [u64::from(self.level), self.hashes.len() as u64].into_iter().chain(self.hashes.iter().copied())
    }

    /// Reads the numbers that [`Self::to_numbers`] gave, of at most `most` hashes.
    fn of_numbers(most: usize, numbers: &mut impl Iterator<Item = u64>) -> Option<Self> {
        let level = u32::try_from(numbers.next()?).ok()?;
        let count = usize::try_from(numbers.next()?).ok().filter(|count| *count <= most)?;
        let hashes: BTreeSet<u64> = numbers.take(count).collect();
        (hashes.len() == count).then_some(Self { level, hashes })
    }

    fn shrink(&mut self, most: usize) {
        while self.hashes.len() > most {
            self.level += 1;
            let level = self.level;
            self.hashes.retain(|hash| hash.trailing_zeros() >= level);
        }
    }
}

/// A bounded sample of the records and the runs of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sketch {
    most: usize,
    records: Sample,
    runs: Sample,
}

impl Sketch {
    /// Returns the sketch of no text. It keeps at most `most` hashes of records, and as many of runs.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), records: Sample::default(), runs: Sample::default() }
    }

    /// Adds this process's share of a text. [`Self::merge`] joins the sketches of several processes.
    ///
    /// # Errors
    /// Errors of reading the text.
    pub fn read<E: Send>(mut self, key: &Key, share: Share, read: Read<'_, E>) -> Result<Self, E> {
        let mut own: Vec<Self> = share.states::<()>().iter().map(|()| Self::new(self.most)).collect();
        share.each(&mut own, |part, sketch| {
            part.read(key, read, &mut |found| found.iter().for_each(|one| sketch.add(*one)))
        })?;
        own.iter().for_each(|own| self.merge(own));
        Ok(self)
    }

    /// Adds what another sketch of the same size has read. The result is the sketch of both texts together.
    pub fn merge(&mut self, other: &Self) {
        self.records.merge(&other.records, self.most);
        self.runs.merge(&other.runs, self.most);
    }

    /// Adds a fingerprint.
    pub fn add(&mut self, fingerprint: Fingerprint) {
        match fingerprint {
            Fingerprint::Run { hash, .. } => self.runs.add(hash, self.most),
            Fingerprint::Record { hash: Some(hash), .. } => self.records.add(hash, self.most),
            Fingerprint::Record { hash: None, .. } => {}
        }
    }

    /// Returns the sketch as numbers, for another process.
    pub(crate) fn to_numbers(&self) -> Vec<u64> {
        self.records.to_numbers().chain(self.runs.to_numbers()).collect()
    }

    /// Reads a sketch from these numbers, with at most `most` hashes of each kind; [`None`] if they are no sketch.
    pub(crate) fn of_numbers(most: usize, numbers: &mut impl Iterator<Item = u64>) -> Option<Self> {
        let records = Sample::of_numbers(most, numbers)?;
        let runs = Sample::of_numbers(most, numbers)?;
        Some(Self { most, records, runs })
    }

    /// Returns two sketches of which one text holds at least half of the records or of the runs of the other, if there
    /// are such.
    ///
    /// Fewer than 64 records in common are a coincidence (short ones, such as "Thank you."), unless the texts have the same records.
    /// Hashes that more than 64 texts have, such as those of a common heading, do not tell texts apart.
    #[must_use]
    pub fn first_pair(sketches: &[Self]) -> Option<(usize, usize)> {
        let samples = |of: fn(&Self) -> &Sample| sketches.iter().map(of).collect::<Vec<_>>();
        let pairs = [
            first_pair(&samples(|sketch| &sketch.runs), 1),
            first_pair(&samples(|sketch| &sketch.records), COINCIDENCES),
        ];
        pairs.into_iter().flatten().min_by_key(|(first, second)| (*second, *first))
    }
}

/// The most texts that may have a hash if it is to tell texts apart.
const TELLING: usize = 64;
/// The number of records in common from which on they are no coincidence.
const COINCIDENCES: usize = 64;

fn first_pair(samples: &[&Sample], least: usize) -> Option<(usize, usize)> {
    let mut owners: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut wholes: HashMap<&BTreeSet<u64>, usize> = HashMap::new();
    for (place, sample) in samples.iter().enumerate() {
        if sample.hashes.is_empty() {
            continue;
        }
        if let Some(first) = wholes.insert(&sample.hashes, place) {
            return Some((first, place));
        }
        for hash in &sample.hashes {
            let owners = owners.entry(*hash).or_default();
            if owners.len() <= TELLING {
                owners.push(place as u32);
            }
        }
    }
    (0..samples.len()).find_map(|place| {
        let mut shared: HashMap<u32, usize> = HashMap::new();
        let own = samples[place];
        for hash in &own.hashes {
            let owners = owners.get(hash).filter(|owners| owners.len() <= TELLING);
            for other in owners.into_iter().flatten().filter(|other| **other != place as u32) {
                *shared.entry(*other).or_default() += 1;
            }
        }
        let holds = |(other, shared): (&u32, &usize)| {
            let level = own.level.max(samples[*other as usize].level);
            let tells = |hash: &&u64| {
                hash.trailing_zeros() >= level && owners.get(*hash).is_some_and(|all| all.len() <= TELLING)
            };
            let of = own.hashes.iter().filter(tells).count();
            (*shared >= least && *shared as f64 >= MAX_SHARE_OF_A_TEXT * of as f64).then_some(*other as usize)
        };
        let other = shared.iter().filter_map(holds).min()?;
        Some((place.min(other), place.max(other)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Passage, Reading};
    use super::*;

    fn share_of(most: usize, records: &[String], share: Share) -> Sketch {
        let read = |reading: &mut Reading<'_>| {
            records.iter().for_each(|text| reading.take(Passage::record(text)));
            Ok::<(), std::convert::Infallible>(())
        };
        Sketch::new(most).read(&Key::public(), share, &read).unwrap()
    }

    fn sketch(most: usize, records: &[String]) -> Sketch {
        share_of(most, records, Share { process: 0, processes: 1, threads: 1 })
    }

    #[test]
    fn the_sketches_of_all_shares_are_that_of_the_text() {
        for (most, count) in [(64, 3_000), (64, 300), (100_000, 3_000)] {
            let records = records(0..count, 20);
            for (processes, threads) in [(1, 3), (2, 1), (3, 2)] {
                let mut all = Sketch::new(most);
                for process in 0..processes {
                    all.merge(&share_of(most, &records, Share { process, processes, threads }));
                }
                assert_eq!(all, sketch(most, &records), "{most} {count} {processes} {threads}");
                let numbers = all.to_numbers();
                assert_eq!(Sketch::of_numbers(most, &mut numbers.iter().copied()), Some(all));
                assert_eq!(Sketch::of_numbers(most, &mut numbers[1..].iter().copied()), None);
            }
        }
    }

    /// Returns records of this many words, all different.
    fn records(numbers: std::ops::Range<usize>, words: usize) -> Vec<String> {
        numbers.map(|n| (0..words).map(|word| format!("{n}w{word} ")).collect()).collect()
    }

    #[test]
    fn half_of_a_text_in_another_is_found_at_every_size_of_the_sample_and_a_third_is_not() {
        for (words, count) in [(3, 2_000), (20, 2_000), (20, 200)] {
            let one = records(0..count, words);
            let shuffled: Vec<String> = one.iter().rev().cloned().collect();
            let with = |share: usize| {
                let mut other = records(count..2 * count, words);
                other.splice(0..count * share / 100, one[..count * share / 100].iter().cloned());
                other
            };
            for most in [512, 100_000] {
                let pair = |other: &[String]| {
                    let third = sketch(most, &records(9_000..9_100, words));
                    Sketch::first_pair(&[third, sketch(most, &one), sketch(most, other)])
                };
                assert_eq!(pair(&shuffled), Some((1, 2)), "{words} {count} {most}");
                assert_eq!(pair(&with(65)), Some((1, 2)), "{words} {count} {most}");
                assert_eq!(pair(&with(35)), None, "{words} {count} {most}");
                assert_eq!(pair(&[one.clone(), records(5_000..9_000, words)].concat()), Some((1, 2)));
            }
            let written = serde_json::to_string(&sketch(512, &one)).unwrap();
            assert_eq!(serde_json::from_str::<Sketch>(&written).unwrap(), sketch(512, &one));
        }
    }

    /// The samples are whole, so that shares are exact.
    #[test]
    fn half_of_the_records_is_one_text_and_fewer_are_not() {
        let one = records(0..200, 3);
        for (common, want) in [(100, Some((0, 1))), (99, None)] {
            let other: Vec<String> = [&one[..common], &records(500..700 - common, 3)].concat();
            assert_eq!(Sketch::first_pair(&[sketch(10_000, &one), sketch(10_000, &other)]), want, "{common}");
        }
    }

    #[test]
    fn short_records_in_common_are_a_coincidence_and_a_text_named_a_hundred_times_is_found() {
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let chats =
            [text(&["ok", "thanks"]), text(&["ok", "thanks", "see you"]), text(&["thanks", "ok", "x"])];
        let sketches: Vec<Sketch> = chats.iter().map(|chat| sketch(64, chat)).collect();
        assert_eq!(Sketch::first_pair(&sketches), None);
        let again = [sketches[0].clone(), sketches[1].clone(), sketch(64, &text(&["THANKS!", "Ok."]))];
        assert_eq!(Sketch::first_pair(&again), Some((0, 2)));
        let many = vec![sketch(64, &records(0..5, 20)); 100];
        assert_eq!(Sketch::first_pair(&many), Some((0, 1)));
    }

    #[test]
    fn a_heading_that_many_texts_have_does_not_make_them_one() {
        let heading = records(0..1, 60).concat();
        let text = |n: usize| sketch(10_000, &[heading.clone() + &records(n..n + 1, 5).concat()]);
        let texts: Vec<Sketch> = (1..101).map(text).collect();
        assert_eq!(Sketch::first_pair(&texts), None);
        assert_eq!(Sketch::first_pair(&texts[..64]), Some((0, 1)));
    }

    #[test]
    fn lines_of_a_record_are_found_in_it() {
        let lines = records(0..50, 5);
        let whole = [lines.concat()];
        assert_eq!(Sketch::first_pair(&[sketch(4096, &lines), sketch(4096, &whole)]), Some((0, 1)));
    }
}
