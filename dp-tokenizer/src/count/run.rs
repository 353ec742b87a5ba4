//! The data that one thread collects: its own numbers for items, and the items of units by these numbers.

use mechanisms::Words;

use super::intern::{Interner, Slot, Sorted};
use super::spill::{SpillBuffer, SpillFile, push_number};
use crate::items::scan;
use crate::unit::UnitError;
use tokenizer::short_key::SHORT_BYTES;

/// The number of lists for units with a name. All parts of a unit go to the same list.
pub(super) const PARTS: usize = 64;

/// Collects the data of a run.
pub(super) struct Builder {
    words: Words,
    interner: Interner,
    lists: Vec<SpillBuffer>,
    /// The items of the current unit with their counts, in order of appearance.
    open: Vec<(u32, u32)>,
    serial: u32,
    counted: usize,
    /// The keys of the items that are being added.
    keys: Vec<u128>,
    entry: Vec<u8>,
}

/// The number of keys whose slots are prefetched together. Their cache lines fill part of the L1 cache.
const KEYS_AT_ONCE: usize = 128;

/// The most bytes of the numbering of a run, whose own numbers have 32 bits.
const MAX_NUMBERING: u64 = 1 << 36;

/// Data under one numbering of items.
pub(super) struct Run {
    pub(super) names: Names,
    /// The number of each item, in the order of the names; `None` if the items are numbered in this order.
    pub(super) order: Option<SpillBuffer>,
    pub(super) lists: Vec<SpillBuffer>,
}

/// Distinct items: first short ones in byte order, then longer ones in byte order.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) bytes: SpillBuffer,
    pub(super) short: u64,
    pub(super) long: u64,
}

impl Names {
    pub(super) fn count(&self) -> u64 {
        self.short + self.long
    }

    pub(super) fn push_short(&mut self, key: u128) {
        self.bytes.push(&key.to_be_bytes());
        self.short += 1;
    }

    pub(super) fn push_long(&mut self, item: &[u8]) {
        debug_assert!(item.len() > SHORT_BYTES);
        self.bytes.push(&(item.len() as u16).to_le_bytes());
        self.bytes.push(item);
        self.long += 1;
    }
}

impl Builder {
    pub(super) fn new(lists: usize, words: Words) -> Self {
        Self {
            words,
            interner: Interner::default(),
            lists: (0..lists).map(|_| SpillBuffer::default()).collect(),
            open: Vec::new(),
            serial: 0,
            counted: 0,
            keys: Vec::new(),
            entry: Vec::new(),
        }
    }

    /// Begins a block; the following units belong to it.
    pub(super) fn begin_block(&mut self, block: u64) {
        self.entry.clear();
        push_number(&mut self.entry, block << 1 | 1);
        self.lists[0].push(&self.entry);
    }

    /// Adds a whole unit.
    pub(super) fn unit(&mut self, text: &str) {
        self.begin_unit();
        self.add(text);
        self.end_unit();
    }

    fn begin_unit(&mut self) {
        if self.serial == u32::MAX {
            self.interner.clear_serials();
            self.serial = 0;
        }
        self.serial += 1;
        self.open.clear();
    }

    fn end_unit(&mut self) {
        self.entry.clear();
        push_number(&mut self.entry, (self.open.len() as u64) << 1);
        self.write_open(0);
    }

    /// Adds a part of a unit with a name.
    pub(super) fn part(&mut self, owner: &[u8], text: &str) {
        self.begin_unit();
        self.add(text);
        self.entry.clear();
        push_number(&mut self.entry, owner.len() as u64);
        self.entry.extend_from_slice(owner);
        push_number(&mut self.entry, self.open.len() as u64);
        self.write_open(list_of(owner, self.lists.len()));
    }

    /// Adds text to the current unit.
    fn add(&mut self, text: &str) {
        let Self { words, interner, open, serial, keys, .. } = self;
        each_slot(text, *words, interner, keys, |slot| {
            if slot.serial == *serial {
                let count = &mut open[slot.place as usize].1;
                *count = count.saturating_add(1);
            } else {
                (slot.serial, slot.place) = (*serial, open.len() as u32);
                open.push((slot.number, 1));
            }
        });
    }

    /// Counts text that belongs to no unit.
    pub(super) fn count(&mut self, text: &str) {
        self.counted += text.len();
        each_slot(text, self.words, &mut self.interner, &mut self.keys, |slot| slot.count += 1);
    }

    /// Returns the bytes of text counted since the last [`Self::end_count`], a bound on the number of items.
    pub(super) fn counted(&self) -> usize {
        self.counted
    }

    /// Writes the counts as one unit in a block of its own.
    pub(super) fn end_count(&mut self, block: u64) {
        self.begin_block(block);
        self.open.clear();
        self.interner.take_counts(|item, count| self.open.push((item, count)));
        self.counted = 0;
        self.end_unit();
        // The list is freed, since it is as long as the table.
        self.open = Vec::new();
    }

    fn write_open(&mut self, list: usize) {
        for &(item, count) in &self.open {
            push_item(&mut self.entry, item.into(), count);
        }
        self.lists[list].push(&self.entry);
    }

    /// Returns the number of bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.interner.bytes() + self.lists.iter().map(SpillBuffer::held).sum::<usize>()
    }

    /// Keeps the memory near `limit` bytes: moves the items of units to disk, and the whole run if its numbering takes a
    /// large part.
    pub(super) fn relieve(&mut self, limit: usize, spill: &SpillFile) -> Result<Option<Run>, UnitError> {
        if self.bytes() > limit {
            for list in &mut self.lists {
                list.store(spill)?;
            }
        }
        if self.is_full(limit) {
            let mut run = std::mem::replace(self, Self::new(self.lists.len(), self.words)).finish();
            run.store(spill)?;
            return Ok(Some(run));
        }
        Ok(None)
    }

    /// Whether the numbering takes so much of `limit` bytes that a new run must begin.
    pub(super) fn is_full(&self, limit: usize) -> bool {
        let numbering = self.interner.bytes();
        let is_large = numbering > limit / 4 || numbering as u64 > MAX_NUMBERING;
        numbering > limit / 2 || (self.interner.is_nearly_full() && is_large)
    }

    pub(super) fn finish(self) -> Run {
        let Sorted { short, long } = self.interner.sorted();
        let (mut names, mut order) = (Names::default(), SpillBuffer::default());
        for (key, number) in short {
            names.push_short(key);
            order.push(&number.to_le_bytes());
        }
        for (item, number) in long {
            names.push_long(&item);
            order.push(&number.to_le_bytes());
        }
        Run { names, order: Some(order), lists: self.lists }
    }
}

/// Calls `take` with the slot of each item of the text.
#[inline]
fn each_slot(
    text: &str,
    words: Words,
    interner: &mut Interner,
    keys: &mut Vec<u128>,
    mut take: impl FnMut(&mut Slot),
) {
    let mut take_all = |interner: &mut Interner, keys: &mut Vec<u128>| {
        interner.touch(keys);
        keys.drain(..).for_each(|key| take(interner.slot(key)));
    };
    scan(text, words, |bytes, range| {
        keys.push(interner.key(bytes, range.start, range.end));
        if keys.len() == KEYS_AT_ONCE {
            take_all(interner, keys);
        }
    });
    take_all(interner, keys);
}

impl Run {
    fn store(&mut self, spill: &SpillFile) -> Result<(), UnitError> {
        self.names.bytes.store(spill)?;
        self.order.iter_mut().try_for_each(|order| order.store(spill))?;
        self.lists.iter_mut().try_for_each(|list| list.store(spill))
    }
}

/// Appends an item and its count, which is nearly always 1.
pub(super) fn push_item(entry: &mut Vec<u8>, item: u64, count: u32) {
    push_number(entry, item << 1 | u64::from(count > 1));
    if count > 1 {
        push_number(entry, u64::from(count));
    }
}

/// Returns the list of a unit among `lists`. The highest bits of the hash decide, so that hashes rise from list to
/// list.
pub(super) fn list_of(owner: &[u8], lists: usize) -> usize {
    ((u128::from(owner_hash(owner)) * lists as u128) >> 64) as usize
}

/// Returns a hash of the unit's name that is the same on every machine. It addresses the random choices of the unit.
pub(super) fn owner_hash(owner: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let whole = owner.chunks_exact(8);
    let rest = whole.remainder();
    let hash = whole.fold(0, |hash, bytes| mix(hash, word(bytes)));
    let hash = mix(hash, word(rest) ^ ((rest.len() as u64) << 56));
    (hash ^ (hash >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}
