//! Brings the items of all runs under one numbering, by a k-way merge of their sorted names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::run::{Names, Run};
use super::spill::{SpillBuffer, SpillFile, SpillReader, damaged};
use crate::unit::UnitError;

/// The result of a merge.
pub(super) struct Merged {
    /// All items, in the order of their numbers.
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

/// The next item of a run with the number of the run, ordered so that a heap gives the least first.
type Head<Item> = Reverse<(Item, usize)>;

struct Merge<'a> {
    readers: Vec<SpillReader<'a>>,
    out: Merged,
    /// The number of bytes written since memory was last checked.
    held: usize,
    limit: usize,
    spill: &'a SpillFile,
}

impl Merge<'_> {
    fn short(&mut self, counts: &[u64]) -> Result<(), UnitError> {
        let mut left = counts.to_vec();
        let mut heap = BinaryHeap::with_capacity(left.len());
        for run in 0..left.len() {
            heap.extend(self.next_short(run, &mut left)?);
        }
        let mut last = None;
        while let Some(Reverse((key, run))) = heap.pop() {
            if last != Some(key) {
                self.out.names.push_short(key);
                last = Some(key);
            }
            self.number(run)?;
            heap.extend(rising(key, self.next_short(run, &mut left)?)?);
        }
        Ok(())
    }

    fn next_short(&mut self, run: usize, left: &mut [u64]) -> Result<Option<Head<u128>>, UnitError> {
        if left[run] == 0 {
            return Ok(None);
        }
        left[run] -= 1;
        let mut key = [0; 16];
        self.readers[run].fill(&mut key)?;
        Ok(Some(Reverse((u128::from_be_bytes(key), run))))
    }

    fn long(&mut self, counts: &[u64]) -> Result<(), UnitError> {
        let mut left = counts.to_vec();
        let mut heap = BinaryHeap::with_capacity(left.len());
        for run in 0..left.len() {
            heap.extend(self.next_long(run, &mut left)?);
        }
        let mut last = Vec::new();
        while let Some(Reverse((item, run))) = heap.pop() {
            if last != item {
                self.out.names.push_long(&item);
                last.clone_from(&item);
            }
            self.number(run)?;
            heap.extend(rising(item, self.next_long(run, &mut left)?)?);
        }
        Ok(())
    }

    fn next_long(&mut self, run: usize, left: &mut [u64]) -> Result<Option<Head<Vec<u8>>>, UnitError> {
        if left[run] == 0 {
            return Ok(None);
        }
        left[run] -= 1;
        let item = read_long(&mut self.readers[run])?;
        Ok(Some(Reverse((item, run))))
    }

    /// Records that the item just written to the names is the next one of this run.
    fn number(&mut self, run: usize) -> Result<(), UnitError> {
        let number = self.out.names.count() - 1;
        self.out.numbers[run].push(&number.to_le_bytes());
        self.held += 24;
        if self.held > self.limit {
            self.held = 0;
            self.out.names.bytes.store(self.spill)?;
            return self.out.numbers.iter_mut().try_for_each(|buffer| buffer.store(self.spill));
        }
        Ok(())
    }
}

/// Passes on the next name of a run, which must come after `item`: a damaged file of a run may have another order.
fn rising<Item: Ord>(item: Item, next: Option<Head<Item>>) -> Result<Option<Head<Item>>, UnitError> {
    match next {
        Some(Reverse((after, _))) if after <= item => Err(damaged()),
        next => Ok(next),
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
    count: u64,
    order: Option<&SpillBuffer>,
    numbers: &SpillBuffer,
    spill: &SpillFile,
) -> Result<Vec<u64>, UnitError> {
    let mut of = vec![0; usize::try_from(count).map_err(|_| damaged())?];
    let mut order = order.map(|order| order.reader(spill, usize::MAX));
    let mut numbers = numbers.reader(spill, usize::MAX);
    for place in 0..of.len() {
        let own = match &mut order {
            None => place,
            Some(order) => {
                let mut own = [0; 4];
                order.fill(&mut own)?;
                u32::from_le_bytes(own) as usize
            }
        };
        let mut common = [0; 8];
        numbers.fill(&mut common)?;
        *of.get_mut(own).ok_or_else(damaged)? = u64::from_le_bytes(common);
    }
    Ok(of)
}
