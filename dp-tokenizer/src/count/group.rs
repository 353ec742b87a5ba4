//! Brings together the parts of units that have a name, wherever they are in the corpus.

use std::collections::HashMap;

use super::merge::numbers_of;
use super::run::{PARTS, Run, push_item};
use super::spill::{SpillBuffer, SpillFile, SpillReader, damaged, push_number};
use crate::unit::UnitError;

/// Maps the name of a unit to the number that addresses its random choices.
pub(super) type Address = fn(&[u8]) -> u64;

/// A list of whole units by rising address. Each has its address (8 bytes), its number of items, and the items by rising
/// number with their counts.
pub(super) fn group(
    runs: Vec<Run>,
    numbers: &[SpillBuffer],
    address: Address,
    spill: &SpillFile,
    limit: usize,
) -> Result<SpillBuffer, UnitError> {
    let mut lists = Vec::new();
    for (run, numbers) in runs.into_iter().zip(numbers) {
        lists.resize_with(run.lists.len(), SpillBuffer::default);
        let of = numbers_of(run.names.count(), &run.order, numbers, spill)?;
        for (from, to) in run.lists.iter().zip(&mut lists) {
            translate(from, &of, to, spill)?;
        }
        if lists.iter().map(SpillBuffer::held).sum::<usize>() > limit / 4 {
            lists.iter_mut().try_for_each(|list| list.store(spill))?;
        }
    }
    let mut out = SpillBuffer::default();
    for list in lists {
        // An entry takes at least two bytes in the list, and four times as many in memory.
        let passes = (1 + list.length().saturating_mul(8) / (limit as u64 / 2).max(1)).min(1 << 20);
        for index in 0..passes {
            group_list(&list, Pass { index, passes }, address, &mut out, spill)?;
            if out.held() > limit / 4 {
                out.store(spill)?;
            }
        }
    }
    Ok(out)
}

/// Copies a list with the common numbers of items.
fn translate(
    from: &SpillBuffer,
    of: &[u32],
    to: &mut SpillBuffer,
    spill: &SpillFile,
) -> Result<(), UnitError> {
    let mut reader = from.reader(spill, usize::MAX);
    let (mut entry, mut owner, mut held) = (Vec::new(), Vec::new(), Vec::new());
    while read_owner(&mut reader, &mut owner)? {
        let count = reader.expect()?;
        read_items(&mut reader, count, &mut held)?;
        entry.clear();
        push_number(&mut entry, owner.len() as u64);
        entry.extend_from_slice(&owner);
        push_number(&mut entry, held.len() as u64);
        for &(item, count) in &held {
            push_item(&mut entry, *of.get(item as usize).ok_or_else(damaged)?, count);
        }
        to.push(&entry);
    }
    Ok(())
}

fn read_owner(reader: &mut SpillReader<'_>, owner: &mut Vec<u8>) -> Result<bool, UnitError> {
    let Some(length) = reader.number()? else { return Ok(false) };
    owner.clear();
    // A name is part of a line, which has a limited length.
    owner.resize(usize::try_from(length).map_err(|_| damaged())?, 0);
    reader.fill(owner)?;
    Ok(true)
}

/// Reads this many items with their counts.
pub(super) fn read_items(
    reader: &mut SpillReader<'_>,
    count: u64,
    held: &mut Vec<(u32, u32)>,
) -> Result<(), UnitError> {
    held.clear();
    for _ in 0..count {
        let item = reader.expect()?;
        let times = if item & 1 == 1 { reader.expect()? } else { 1 };
        held.push((u32::try_from(item >> 1).map_err(|_| damaged())?, times as u32));
    }
    Ok(())
}

struct Owned {
    held: Vec<(u32, u32)>,
    /// The first items, up to here, are sorted and distinct.
    merged: usize,
}

impl Owned {
    /// Sorts the items and adds up the counts of equal ones.
    fn merge_counts(&mut self) {
        self.held.sort_unstable();
        self.held.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        self.merged = self.held.len();
    }
}

/// One of several passes over a list, each of which groups a range of addresses.
#[derive(Clone, Copy)]
struct Pass {
    /// Counted from 0.
    index: u64,
    passes: u64,
}

/// Groups the owners of a list whose addresses belong to this pass.
fn group_list(
    list: &SpillBuffer,
    pass: Pass,
    address: Address,
    out: &mut SpillBuffer,
    spill: &SpillFile,
) -> Result<(), UnitError> {
    let mut owners: HashMap<Box<[u8]>, Owned> = HashMap::new();
    let mut reader = list.reader(spill, usize::MAX);
    let (mut owner, mut held, mut entry) = (Vec::new(), Vec::new(), Vec::new());
    while read_owner(&mut reader, &mut owner)? {
        let count = reader.expect()?;
        read_items(&mut reader, count, &mut held)?;
        // Passes have rising addresses, so their number does not change the order.
        let low = u128::from(address(&owner) << PARTS.ilog2());
        if (low * u128::from(pass.passes)) >> 64 != u128::from(pass.index) {
            continue;
        }
        let owned = match owners.get_mut(owner.as_slice()) {
            Some(known) => known,
            None => owners.entry(owner.as_slice().into()).or_insert(Owned { held: Vec::new(), merged: 0 }),
        };
        owned.held.extend_from_slice(&held);
        // A user who repeats the same words must not fill the memory.
        if owned.held.len() > 2 * owned.merged + 1024 {
            owned.merge_counts();
        }
    }
    let mut owners: Vec<(u64, Box<[u8]>, Owned)> =
        owners.into_iter().map(|(owner, owned)| (address(&owner), owner, owned)).collect();
    owners.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    for (address, _, mut owned) in owners {
        owned.merge_counts();
        entry.clear();
        entry.extend_from_slice(&address.to_le_bytes());
        push_number(&mut entry, owned.held.len() as u64);
        for &(item, count) in &owned.held {
            push_item(&mut entry, item, count);
        }
        out.push(&entry);
    }
    Ok(())
}
