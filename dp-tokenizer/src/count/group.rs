//! Brings together the parts of units that have a name, wherever they are in the corpus.

use std::collections::HashMap;

use super::merge::numbers_of;
use super::run::{PARTS, Run, list_of, push_item};
use super::spill::{SpillBuffer, SpillFile, SpillReader, damaged, push_number};
use crate::corpus::MAX_LINE_BYTES;
use crate::unit::UnitError;

/// Maps the name of a unit to the number that addresses its random choices.
pub(super) type Address = fn(&[u8]) -> u64;

/// Takes a whole unit: its name, and its items by rising number with their counts.
pub(super) type TakeUnit<'a> = dyn FnMut(&[u8], &[(u64, u32)]) -> Result<(), UnitError> + 'a;

/// Hands each whole unit to `take`, by rising address.
pub(super) fn group(
    runs: Vec<Run>,
    numbers: &[SpillBuffer],
    address: Address,
    spill: &SpillFile,
    limit: u64,
    take: &mut TakeUnit<'_>,
) -> Result<(), UnitError> {
    let mut lists = Vec::new();
    for (run, numbers) in runs.into_iter().zip(numbers) {
        lists.resize_with(run.lists.len(), SpillBuffer::default);
        let of = numbers_of(run.names.count(), run.order.as_ref(), numbers, spill)?;
        for (index, (from, to)) in run.lists.iter().zip(&mut lists).enumerate() {
            let (lists, most) = (run.lists.len(), limit / 4 / PARTS as u64);
            translate(from, &of, to, spill, |owner, to| {
                if list_of(owner, lists) != index {
                    return Err(damaged());
                }
                if to.held() as u64 > most { to.store(spill) } else { Ok(()) }
            })?;
        }
    }
    for list in lists {
        // An entry takes at least two bytes in the list, and eight times as many in memory.
        let passes = (1 + list.length().saturating_mul(16) / (limit / 2).max(1)).min(1 << 20);
        for pass in 0..passes {
            group_list(&list, Pass { index: pass, passes }, address, spill, take)?;
        }
    }
    Ok(())
}

/// Copies a list with the common numbers of items.
fn translate(
    from: &SpillBuffer,
    of: &[u64],
    to: &mut SpillBuffer,
    spill: &SpillFile,
    check: impl Fn(&[u8], &mut SpillBuffer) -> Result<(), UnitError>,
) -> Result<(), UnitError> {
    let mut reader = from.reader(spill, usize::MAX);
    let (mut entry, mut owner, mut held) = (Vec::new(), Vec::new(), Vec::new());
    while read_owner(&mut reader, &mut owner)? {
        let count = reader.expect()?;
        read_items(&mut reader, count, &mut held)?;
        for item in &mut held {
            item.0 = *of.get(item.0 as usize).ok_or_else(damaged)?;
        }
        entry.clear();
        push_owner(&mut entry, &owner, &held);
        to.push(&entry);
        check(&owner, to)?;
    }
    Ok(())
}

fn read_owner(reader: &mut SpillReader<'_>, owner: &mut Vec<u8>) -> Result<bool, UnitError> {
    let Some(length) = reader.number()? else { return Ok(false) };
    owner.clear();
    // A name is part of a line, which has a limited length.
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_LINE_BYTES);
    owner.resize(length.ok_or_else(damaged)?, 0);
    reader.fill(owner)?;
    Ok(true)
}

/// Reads this many items with their counts.
pub(super) fn read_items(
    reader: &mut SpillReader<'_>,
    count: u64,
    held: &mut Vec<(u64, u32)>,
) -> Result<(), UnitError> {
    held.clear();
    for _ in 0..count {
        let item = reader.expect()?;
        let times = if item & 1 == 1 { reader.expect()? } else { 1 };
        held.push((item >> 1, u32::try_from(times).map_err(|_| damaged())?));
    }
    Ok(())
}

struct Owned {
    held: Vec<(u64, u32)>,
    /// The number of items at the beginning that are sorted and distinct.
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
    /// The number of the pass, from 0.
    index: u64,
    passes: u64,
}

/// Groups the owners of a list whose addresses belong to this pass.
fn group_list(
    list: &SpillBuffer,
    pass: Pass,
    address: Address,
    spill: &SpillFile,
    take: &mut TakeUnit<'_>,
) -> Result<(), UnitError> {
    let mut owners: HashMap<Box<[u8]>, Owned> = HashMap::new();
    let mut reader = list.reader(spill, usize::MAX);
    let (mut owner, mut held) = (Vec::new(), Vec::new());
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
    for (_, name, mut owned) in owners {
        owned.merge_counts();
        take(&name, &owned.held)?;
    }
    Ok(())
}

/// Appends a unit with its name to a list of parts.
pub(super) fn push_owner(entry: &mut Vec<u8>, name: &[u8], held: &[(u64, u32)]) {
    push_number(entry, name.len() as u64);
    entry.extend_from_slice(name);
    push_number(entry, held.len() as u64);
    held.iter().for_each(|&(item, count)| push_item(entry, item, count));
}

/// Appends a unit with its address to a list of whole units.
pub(super) fn push_addressed(entry: &mut Vec<u8>, address: u64, held: &[(u64, u32)]) {
    entry.extend_from_slice(&address.to_le_bytes());
    push_number(entry, held.len() as u64);
    held.iter().for_each(|&(item, count)| push_item(entry, item, count));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn items_have_numbers_beyond_32_bits(held in prop::collection::btree_map(any::<u64>().prop_map(|n| n >> 1), 1_u32.., 1..20)) {
            let held: Vec<(u64, u32)> = held.into_iter().collect();
            let (mut entry, mut list, spill) = (Vec::new(), SpillBuffer::default(), SpillFile::new(None));
            push_owner(&mut entry, b"one", &held);
            list.push(&entry);
            let mut reader = list.reader(&spill, usize::MAX);
            let (mut owner, mut read) = (Vec::new(), Vec::new());
            prop_assert!(read_owner(&mut reader, &mut owner).unwrap() && owner == b"one");
            let count = reader.expect().unwrap();
            read_items(&mut reader, count, &mut read).unwrap();
            prop_assert_eq!(read, held);
        }
    }
}
