//! Brings the items of all runs under one numbering, by a k-way merge of their sorted names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::run::{Names, Run};
use super::spill::{SpillBuffer, SpillFile, SpillReader, damaged};
use crate::unit::UnitError;

/// The result of a merge.
pub(super) struct Merged {
    /// All items, by number.
    pub(super) names: Names,
    /// For each run, the common numbers of its items in the order of its names.
    pub(super) numbers: Vec<SpillBuffer>,
}

/// Merges the names of all runs, with about `limit` bytes of memory beside those of the runs.
pub(super) fn merge(runs: &[&Run], spill: &SpillFile, limit: usize) -> Result<Merged, UnitError> {
    let buffer = limit / 4 / runs.len().max(1);
    let mut merge = Merge {
        readers: runs.iter().map(|run| run.names.bytes.reader(spill, buffer)).collect(),
        out: Merged {
            names: Names::default(),
            numbers: runs.iter().map(|_| SpillBuffer::of_chunks(buffer)).collect(),
        },
        held: 0,
        limit: limit / 2,
        spill,
    };
    merge.short(&runs.iter().map(|run| run.names.short).collect::<Vec<_>>())?;
    merge.long(&runs.iter().map(|run| run.names.long).collect::<Vec<_>>())?;
    Ok(merge.out)
}

/// The next item of a run, least first, and the run.
type Head<Item> = Reverse<(Item, usize)>;

struct Merge<'a> {
    readers: Vec<SpillReader<'a>>,
    out: Merged,
    /// Bytes written since memory was last checked.
    held: usize,
    limit: usize,
    spill: &'a SpillFile,
}

impl Merge<'_> {
    fn short(&mut self, counts: &[u32]) -> Result<(), UnitError> {
        let mut left = counts.to_vec();
        let mut heap = BinaryHeap::with_capacity(left.len());
        for run in 0..left.len() {
            heap.extend(self.next_short(run, &mut left)?);
        }
        let mut last = None;
        while let Some(Reverse((key, run))) = heap.pop() {
            if last != Some(key) {
                self.check_room()?;
                self.out.names.push_short(key);
                last = Some(key);
            }
            self.number(run)?;
            heap.extend(self.next_short(run, &mut left)?);
        }
        Ok(())
    }

    fn next_short(&mut self, run: usize, left: &mut [u32]) -> Result<Option<Head<u128>>, UnitError> {
        if left[run] == 0 {
            return Ok(None);
        }
        left[run] -= 1;
        let mut key = [0; 16];
        self.readers[run].fill(&mut key)?;
        Ok(Some(Reverse((u128::from_be_bytes(key), run))))
    }

    fn long(&mut self, counts: &[u32]) -> Result<(), UnitError> {
        let mut left = counts.to_vec();
        let mut heap = BinaryHeap::with_capacity(left.len());
        for run in 0..left.len() {
            heap.extend(self.next_long(run, &mut left)?);
        }
        let mut last = Vec::new();
        while let Some(Reverse((item, run))) = heap.pop() {
            if last != item {
                self.check_room()?;
                self.out.names.push_long(&item);
                last = item;
            }
            self.number(run)?;
            heap.extend(self.next_long(run, &mut left)?);
        }
        Ok(())
    }

    fn next_long(&mut self, run: usize, left: &mut [u32]) -> Result<Option<Head<Vec<u8>>>, UnitError> {
        if left[run] == 0 {
            return Ok(None);
        }
        left[run] -= 1;
        let item = read_long(&mut self.readers[run])?;
        Ok(Some(Reverse((item, run))))
    }

    fn check_room(&self) -> Result<(), UnitError> {
        // The last number stays unused.
        if self.out.names.short.checked_add(self.out.names.long).is_some_and(|count| count < u32::MAX - 1) {
            return Ok(());
        }
        Err(UnitError::Spill {
            folder: std::path::PathBuf::new(),
            reason: "more than 4294967293 distinct items".to_owned(),
        })
    }

    /// Records that the item just written is the next one of this run.
    fn number(&mut self, run: usize) -> Result<(), UnitError> {
        let number = self.out.names.count() - 1;
        self.out.numbers[run].push(&number.to_le_bytes());
        self.held += 20;
        if self.held > self.limit {
            self.held = 0;
            self.out.names.bytes.store(self.spill)?;
            return self.out.numbers.iter_mut().try_for_each(|buffer| buffer.store(self.spill));
        }
        Ok(())
    }
}

pub(super) fn read_long(reader: &mut SpillReader<'_>) -> Result<Vec<u8>, UnitError> {
    let mut length = [0; 2];
    reader.fill(&mut length)?;
    let mut item = vec![0; usize::from(u16::from_le_bytes(length))];
    reader.fill(&mut item)?;
    Ok(item)
}

/// Maps the item numbers of a run to the common ones.
pub(super) fn numbers_of(
    count: u32,
    order: &SpillBuffer,
    numbers: &SpillBuffer,
    spill: &SpillFile,
) -> Result<Vec<u32>, UnitError> {
    let mut of = vec![0; count as usize];
    let (mut order, mut numbers) = (order.reader(spill, usize::MAX), numbers.reader(spill, usize::MAX));
    for _ in 0..count {
        let (mut own, mut common) = ([0; 4], [0; 4]);
        order.fill(&mut own)?;
        numbers.fill(&mut common)?;
        *of.get_mut(u32::from_le_bytes(own) as usize).ok_or_else(damaged)? = u32::from_le_bytes(common);
    }
    Ok(of)
}
