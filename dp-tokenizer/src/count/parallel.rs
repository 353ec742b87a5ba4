//! Distributes the blocks of a corpus over threads.

#[cfg(not(target_arch = "wasm32"))]
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
    mpsc::{Receiver, sync_channel},
};

use mechanisms::Words;

use super::CountOptions;
use super::run::{Builder, PARTS, Run};
use super::spill::SpillFile;
use crate::corpus::{Block, Blocks, CorpusError, Source, source_name};
use crate::unit::{PrivacyUnit, UnitError, check_divides, cut_words};

/// The data that the threads collected.
#[derive(Default)]
pub(super) struct Collected {
    /// The runs of each thread.
    pub(super) runs: Vec<Vec<Run>>,
    /// The number of each block, and its number of units.
    pub(super) blocks: Vec<(u64, u64)>,
    /// The number of records.
    pub(super) records: u64,
}

/// Reads the whole corpus, as [`collect_blocks`] does.
///
/// # Errors
/// Also [`CorpusError::Empty`].
pub(super) fn collect(
    source: &Source,
    unit: Option<PrivacyUnit>,
    words: Words,
    options: &CountOptions,
    spill: &SpillFile,
) -> Result<Collected, UnitError> {
    unit.map_or(Ok(()), check_divides)?;
    let collected = collect_blocks(Blocks::open(source)?, unit, words, options, spill)?;
    match collected.records {
        0 => Err(CorpusError::Empty { source_name: source_name(source) }.into()),
        _ => Ok(collected),
    }
}

/// Reads all blocks, of which there may be none. Without a unit, everything that a thread counts between two calls of
/// [`Worker::flush`] is one unit.
pub(super) fn collect_blocks(
    blocks: impl Iterator<Item = Result<Block, CorpusError>>,
    unit: Option<PrivacyUnit>,
    words: Words,
    options: &CountOptions,
    spill: &SpillFile,
) -> Result<Collected, UnitError> {
    unit.map_or(Ok(()), check_divides)?;
    let threads = options.threads.clamp(1, 256);
    // The tables take half of the memory. Reading, merging and growing tables need the other half.
    let limit = options.memory.max(1 << 16) / 2 / threads;
    let worker = || Worker::of(unit, words, limit, spill);
    let (workers, stopped) =
        if threads == 1 { one_by_one(blocks, worker()) } else { side_by_side(blocks, threads, worker) };
    finish(workers, stopped)
}

/// The error at which reading stopped early.
type Stopped = Option<CorpusError>;

fn one_by_one(
    blocks: impl Iterator<Item = Result<Block, CorpusError>>,
    mut worker: Worker<'_>,
) -> (Vec<Worker<'_>>, Stopped) {
    for block in blocks {
        match block {
            Ok(block) => worker.take(block),
            Err(error) => return (vec![worker], Some(error)),
        }
        if worker.fault.is_some() {
            break;
        }
    }
    (vec![worker], None)
}

#[cfg(not(target_arch = "wasm32"))]
fn side_by_side<'a>(
    blocks: impl Iterator<Item = Result<Block, CorpusError>>,
    threads: usize,
    worker: impl Fn() -> Worker<'a>,
) -> (Vec<Worker<'a>>, Stopped) {
    let failed = AtomicBool::new(false);
    let (sender, receiver) = sync_channel(2 * threads);
    let receiver = Mutex::new(receiver);
    let mut workers: Vec<Worker<'a>> = (0..threads).map(|_| worker()).collect();
    let mut stopped = None;
    std::thread::scope(|scope| {
        for worker in &mut workers {
            let (receiver, failed) = (&receiver, &failed);
            scope.spawn(move || worker.run(receiver, failed));
        }
        for block in blocks {
            match block {
                // Blocks are received in the order of sending, so those before a bad one are finished.
                Ok(block) if !failed.load(Ordering::Relaxed) => {
                    if sender.send(block).is_err() {
                        break;
                    }
                }
                Ok(_) => break,
                Err(error) => {
                    stopped = Some(error);
                    break;
                }
            }
        }
        drop(sender);
    });
    (workers, stopped)
}

/// Processes the blocks one by one: WASM has no threads.
#[cfg(target_arch = "wasm32")]
fn side_by_side<'a>(
    blocks: impl Iterator<Item = Result<Block, CorpusError>>,
    _: usize,
    worker: impl Fn() -> Worker<'a>,
) -> (Vec<Worker<'a>>, Stopped) {
    one_by_one(blocks, worker())
}

/// Returns the first error in the order of the corpus, or the collected data.
fn finish(workers: Vec<Worker<'_>>, stopped: Stopped) -> Result<Collected, UnitError> {
    let mut collected = Collected::default();
    let mut records = Vec::new();
    let mut first: Option<(u64, UnitError)> = None;
    for mut worker in workers {
        if let Some(block) = worker.last {
            worker.flush(block);
        }
        if let Some((block, error)) = worker.fault
            && first.as_ref().is_none_or(|known| block < known.0)
        {
            first = Some((block, error));
        }
        collected.blocks.extend(worker.units);
        let mut runs = worker.runs;
        runs.push(worker.builder.finish());
        collected.runs.push(runs);
        records.extend(worker.records);
    }
    match (first, stopped) {
        (Some((block, UnitError::NoUser { record })), _) => {
            let before = records.iter().filter(|r| r.0 < block).map(|r| r.1).sum::<u64>();
            Err(UnitError::NoUser { record: before + record })
        }
        (Some((_, error)), _) => Err(error),
        (None, Some(error)) => Err(error.into()),
        (None, None) => {
            collected.records = records.iter().map(|r| r.1).sum();
            Ok(collected)
        }
    }
}

/// The most bytes of text whose items fit into counts of 32 bits.
const MAX_COUNTED: usize = 1 << 31;

struct Worker<'a> {
    unit: Option<PrivacyUnit>,
    limit: usize,
    spill: &'a SpillFile,
    builder: Builder,
    runs: Vec<Run>,
    /// The number of each block, and its number of units.
    units: Vec<(u64, u64)>,
    records: Vec<(u64, u64)>,
    /// The last block, if its counts are not flushed.
    last: Option<u64>,
    fault: Option<(u64, UnitError)>,
}

impl<'a> Worker<'a> {
    fn of(unit: Option<PrivacyUnit>, words: Words, limit: usize, spill: &'a SpillFile) -> Self {
        let lists = if unit == Some(PrivacyUnit::User) { PARTS } else { 1 };
        Self {
            unit,
            limit,
            spill,
            builder: Builder::new(lists, words),
            runs: Vec::new(),
            units: Vec::new(),
            records: Vec::new(),
            last: None,
            fault: None,
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn run(&mut self, receiver: &Mutex<Receiver<Block>>, failed: &AtomicBool) {
        loop {
            // The lock is held while waiting; other threads wait for the next block.
            let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(block) = next else { return };
            if self.fault.is_none() {
                self.take(block);
            }
            if self.fault.is_some() {
                failed.store(true, Ordering::Relaxed);
            }
        }
    }

    fn take(&mut self, block: Block) {
        let number = block.number;
        if let Err(error) = self.try_take(block) {
            self.fault = Some((number, error));
        }
    }

    fn try_take(&mut self, block: Block) -> Result<(), UnitError> {
        let number = block.number;
        let (mut units, mut records) = (0, 0);
        let builder = &mut self.builder;
        if self.unit.is_some_and(|unit| unit != PrivacyUnit::User) {
            builder.begin_block(number);
        }
        let taken = block.each_record(|record| -> Result<(), UnitError> {
            records += 1;
            match self.unit {
                None => builder.count(&record.text),
                Some(PrivacyUnit::Record | PrivacyUnit::Owner) => {
                    builder.unit(&record.text);
                    units += 1;
                }
                Some(PrivacyUnit::Words(n)) => {
                    for piece in cut_words(&record.text, n as usize) {
                        builder.unit(piece);
                        units += 1;
                    }
                }
                Some(PrivacyUnit::User) => {
                    let user = record.user.ok_or(UnitError::NoUser { record: records })?;
                    builder.part(user.as_bytes(), &record.text);
                }
            }
            Ok(())
        })?;
        self.records.push((number, taken.records));
        match self.unit {
            Some(_) => self.units.push((number, units)),
            None if self.builder.counted() >= MAX_COUNTED || self.builder.is_full(self.limit) => {
                self.flush(number);
            }
            None => self.last = Some(number),
        }
        self.runs.extend(self.builder.relieve(self.limit, self.spill)?);
        Ok(())
    }

    /// Writes the counts up to this block to the list, as one unit.
    fn flush(&mut self, block: u64) {
        self.last = None;
        self.builder.end_count(block);
        self.units.push((block, 1));
    }
}
