//! Divides the records of one text among several processes, and among several threads of each.

use super::{Fingerprint, Fingerprints, Key, Passage, Read};

/// The number of records in a row that one thread reads. It reads on to the end of the runs that begin in them.
const BLOCK: u64 = 128;

/// The part of a text that a process reads. Blocks of records go to the processes in turn, and those of a process to
/// its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of this process, from 0.
    pub process: u64,
    /// The number of processes.
    pub processes: u64,
    /// The number of threads of this process.
    pub threads: u64,
}

impl Share {
    /// Returns the share of a single process, which reads all records with as many threads as the machine runs at once.
    #[must_use]
    pub fn whole() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        Self { process: 0, processes: 1, threads }
    }

    /// Returns the share of all records, for the threads of this process.
    pub(super) fn of_all(self) -> Self {
        Self { process: 0, processes: 1, ..self }
    }

    /// Returns a default value for each thread.
    pub(super) fn states<T: Default>(self) -> Vec<T> {
        (0..self.threads.max(1)).map(|_| T::default()).collect()
    }

    /// Calls `work` on each thread with its part and its state. The error is that of the first thread that fails.
    pub(super) fn each<T: Send, E: Send>(
        self,
        states: &mut [T],
        work: impl Fn(Part, &mut T) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let of = self.processes * states.len() as u64;
        let part = |thread| Part { number: self.process + self.processes * thread, of };
        if let [state] = states {
            return work(part(0), state);
        }
        let done = std::thread::scope(|scope| {
            let start = |(thread, state)| {
                let work = &work;
                scope.spawn(move || work(part(thread), state))
            };
            let threads: Vec<_> = (0..).zip(states).map(start).collect();
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        done.into_iter().try_for_each(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

/// The records of one thread: one block of each `of` blocks in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    number: u64,
    of: u64,
}

impl Part {
    #[cfg(test)]
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    fn has(self, record: u64) -> bool {
        record / BLOCK % self.of == self.number
    }

    /// Returns the place of a record among those of the part.
    pub fn place(self, record: u64) -> usize {
        (record / BLOCK / self.of * BLOCK + record % BLOCK) as usize
    }

    /// Returns the record at a place.
    pub fn record(self, place: usize) -> u64 {
        let place = place as u64;
        (place / BLOCK * self.of + self.number) * BLOCK + place % BLOCK
    }

    /// Reads the records of the part and hands out their fingerprints.
    pub fn read<E>(
        self,
        key: &Key,
        read: Read<'_, E>,
        take: &mut dyn FnMut(&[Fingerprint]),
    ) -> Result<(), E> {
        let (fingerprints, found) = (Fingerprints::new(key), Vec::new());
        let (own, is_complete) = (Own::Blocks, true);
        read(&mut Reading { key, fingerprints, part: self, own, record: 0, is_complete, found, take })
    }
}

/// The records that a thread reads of what it is given.
#[derive(Clone, Copy)]
enum Own {
    /// Those of the part's blocks, of the whole text.
    Blocks,
    /// Those before the record with this number, of the text from the thread's stretch on.
    Before(u64),
}

/// The passages of a text from its beginning, of which a thread reads its own records; or from the beginning of the thread's own
/// stretch ([`Self::stretch`]).
pub struct Reading<'a> {
    key: &'a Key,
    fingerprints: Fingerprints<'a>,
    part: Part,
    own: Own,
    /// The number of the next record, or of that which has begun.
    record: u64,
    /// Whether the fingerprints have read everything since the part's last record began.
    is_complete: bool,
    found: Vec<Fingerprint>,
    take: &'a mut dyn FnMut(&[Fingerprint]),
}

impl Reading<'_> {
    /// Whether this thread reads the next record. Where it does not, [`Self::pass_over`] says so at less cost than [`Self::take`].
    #[must_use]
    pub fn wants(&self) -> bool {
        self.has(self.record) || self.is_within_runs()
    }

    fn has(&self, record: u64) -> bool {
        match self.own {
            Own::Blocks => self.part.has(record),
            Own::Before(end) => record < end,
        }
    }

    /// Whether runs that began in a record of the thread are not complete.
    fn is_within_runs(&self) -> bool {
        self.is_complete && self.fingerprints.begun().any(|record| self.has(record))
    }

    /// Chooses to read a stretch of the text instead of blocks: returns its number, from 0, and the number of stretches into which the
    /// caller divides the text. The caller then gives the passages from the stretch on, for as long as this thread wants them, and calls
    /// [`Self::end_stretch`] behind the stretch. Every thread has to choose the same.
    pub fn stretch(&mut self) -> (u64, u64) {
        self.own = Own::Before(u64::MAX);
        (self.part.number, self.part.of)
    }

    /// Ends the thread's own stretch before the next record. Runs that begin in the stretch may end behind it.
    pub fn end_stretch(&mut self) {
        if let Own::Before(end) = &mut self.own {
            *end = (*end).min(self.record);
        }
    }

    /// Leaves out a record that this thread does not read.
    pub fn pass_over(&mut self) {
        self.is_complete = false;
        self.record += 1;
    }

    /// Takes the next passage.
    pub fn take(&mut self, passage: Passage<'_>) {
        if !self.wants() {
            self.is_complete = false;
            self.record += u64::from(passage.ends_record);
            return;
        }
        if !std::mem::replace(&mut self.is_complete, true) {
            self.fingerprints = Fingerprints::from_record(self.key, self.record);
        }
        let (part, own, found) = (self.part, self.own, &mut self.found);
        // Records of a stretch get numbers of the part, so that places among its records are in a row.
        let number = |record: u64| match own {
            Own::Blocks => part.has(record).then_some(record),
            Own::Before(end) => (record < end).then(|| part.record(record as usize)),
        };
        let (mut record, mut own_number) = (self.record, number(self.record));
        self.fingerprints.read(passage, &mut |one: Fingerprint| {
            if one.record() != record {
                (record, own_number) = (one.record(), number(one.record()));
            }
            if let Some(number) = own_number {
                found.push(one.of_record(number));
            }
        });
        (self.take)(found);
        found.clear();
        self.record += u64::from(passage.ends_record);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Returns records without letters, of few words and of many, so that runs cross any number of records and blocks.
    fn texts() -> Vec<String> {
        let mut rng = fastrand::Rng::with_seed(3);
        let record = |n: u64| {
            let words = if (n / 300).is_multiple_of(2) {
                rng.usize(..2) * rng.usize(..30)
            } else {
                rng.usize(..20) / 19
            };
            (0..words).map(|word| format!("w{n}x{word} ")).collect()
        };
        (0..3_000).map(record).collect()
    }

    fn all(share: Share, passes_over: bool) -> Vec<Fingerprint> {
        let (texts, key) = (texts(), Key::public());
        let read = |reading: &mut Reading<'_>| {
            for text in &texts {
                if passes_over && !reading.wants() {
                    reading.pass_over();
                    continue;
                }
                // The record is read in two passages.
                let (first, second) = text.split_at(text.len() / 2);
                reading.take(Passage { text: first, ends_record: false });
                reading.take(Passage::record(second));
            }
            Ok::<(), Infallible>(())
        };
        let mut found: Vec<Vec<Fingerprint>> = share.states();
        share
            .each(&mut found, |part, own| {
                part.read(&key, &read, &mut |some| {
                    own.extend_from_slice(some);
                })
            })
            .unwrap();
        found.concat()
    }

    #[test]
    fn the_parts_of_a_text_have_its_fingerprints_once_each() {
        let sorted = |mut found: Vec<Fingerprint>| {
            found.sort_by_key(|one| format!("{:8} {one:?}", one.record()));
            found
        };
        let whole = sorted(all(Share { process: 0, processes: 1, threads: 1 }, false));
        assert!(whole.len() > 10_000, "{}", whole.len());
        for (processes, threads) in [(1, 2), (1, 5), (2, 1), (3, 2), (7, 3), (40, 1)] {
            for passes_over in [false, true] {
                let share = |process| Share { process, processes, threads };
                let parts = (0..processes).flat_map(|process| all(share(process), passes_over));
                assert!(sorted(parts.collect()) == whole, "{processes} processes, {threads} threads");
            }
        }
    }

    /// Records have other numbers in stretches, so that only hashes are compared.
    #[test]
    fn the_stretches_of_a_text_have_its_fingerprints_once_each() {
        let (texts, key) = (texts(), Key::public());
        let hashes = |found: &[Fingerprint]| -> Vec<String> {
            let mut hashes: Vec<String> = found.iter().map(|one| format!("{:?}", one.of_record(0))).collect();
            hashes.sort_unstable();
            hashes
        };
        let whole = all(Share { process: 0, processes: 1, threads: 1 }, false);
        let records = |found: &[Fingerprint]| {
            let mut records: Vec<u64> = found.iter().map(|one| one.record()).collect();
            records.sort_unstable();
            records.dedup();
            records.len()
        };
        for (processes, threads) in [(1, 1), (1, 3), (2, 2), (5, 1)] {
            let read = |reading: &mut Reading<'_>| {
                let (number, of) = reading.stretch();
                let at = |number: u64| (texts.len() as u64 * number / of) as usize;
                for (place, text) in texts.iter().enumerate().skip(at(number)) {
                    if place >= at(number + 1) {
                        reading.end_stretch();
                    }
                    if !reading.wants() {
                        break;
                    }
                    reading.take(Passage::record(text));
                }
                Ok::<(), Infallible>(())
            };
            let mut found: Vec<Vec<Fingerprint>> = vec![Vec::new(); (processes * threads) as usize];
            for (process, found) in (0..processes).zip(found.chunks_mut(threads as usize)) {
                let share = Share { process, processes, threads };
                share
                    .each(found, |part, own| part.read(&key, &read, &mut |some| own.extend_from_slice(some)))
                    .unwrap();
            }
            let found = found.concat();
            assert!(hashes(&found) == hashes(&whole), "{processes} processes, {threads} threads");
            assert_eq!(records(&found), records(&whole), "every record has its own number");
        }
    }

    #[test]
    fn places_of_a_part_are_in_a_row_and_lead_back() {
        for of in [1, 2, 5] {
            for number in 0..of {
                let part = Part { number, of };
                let own: Vec<u64> = (0..10 * BLOCK).filter(|record| part.has(*record)).collect();
                assert!(own.iter().enumerate().all(|(place, record)| part.place(*record) == place));
                assert!(own.iter().enumerate().all(|(place, record)| part.record(place) == *record));
            }
        }
    }

    #[test]
    fn the_error_of_a_thread_is_that_of_the_work() {
        let share = Share { process: 0, processes: 1, threads: 3 };
        let fails = |part: Part, _: &mut ()| if part.number == 1 { Err("no file") } else { Ok(()) };
        assert_eq!(share.each(&mut [(); 3], fails), Err("no file"));
    }
}
