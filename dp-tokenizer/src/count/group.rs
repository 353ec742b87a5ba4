//! Units with a name: their parts, wherever they stand, brought together before anything is weighed.

use std::collections::HashMap;

use super::merge::numbers_of;
use super::run::{PARTS, Run, push_item};
use super::tape::{Spill, Tape, TapeReader, damaged, push_number};
use crate::unit::UnitError;

/// How a unit's name becomes the number that addresses its random choices.
pub(super) type Address = fn(&[u8]) -> u64;

/// One list of whole units by rising address: the address (8 bytes), number of items, items by rising number with their
/// counts.
pub(super) fn group(
    runs: Vec<Run>,
    numbers: &[Tape],
    address: Address,
    spill: &Spill,
    limit: usize,
) -> Result<Tape, UnitError> {
    let mut lists = Vec::new();
    for (run, numbers) in runs.into_iter().zip(numbers) {
        lists.resize_with(run.lists.len(), Tape::default);
        let of = numbers_of(run.names.count(), (&run.order, numbers), spill)?;
        for (from, to) in run.lists.iter().zip(&mut lists) {
            translate(from, &of, to, spill)?;
        }
        if lists.iter().map(Tape::held).sum::<usize>() > limit / 4 {
            lists.iter_mut().try_for_each(|list| list.store(spill))?;
        }
    }
    let mut out = Tape::default();
    for list in lists {
        // An entry takes two bytes or more on the tape, and four times that in memory.
        let passes = (1 + list.length().saturating_mul(8) / (limit as u64 / 2).max(1)).min(1 << 20);
        for pass in 0..passes {
            group_list(&list, (pass, passes), address, (&mut out, spill))?;
            if out.held() > limit / 4 {
                out.store(spill)?;
            }
        }
    }
    Ok(out)
}

/// Copies a list under the common numbers.
fn translate(from: &Tape, of: &[u32], to: &mut Tape, spill: &Spill) -> Result<(), UnitError> {
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

fn read_owner(reader: &mut TapeReader<'_>, owner: &mut Vec<u8>) -> Result<bool, UnitError> {
    let Some(length) = reader.number()? else { return Ok(false) };
    owner.clear();
    // A name is part of a line, whose length is capped.
    owner.resize(usize::try_from(length).map_err(|_| damaged())?, 0);
    reader.fill(owner)?;
    Ok(true)
}

/// Reads this many items with their counts.
pub(super) fn read_items(
    reader: &mut TapeReader<'_>,
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
    /// Up to here items are in order and distinct.
    settled: usize,
}

impl Owned {
    /// Adds counts of the same item.
    fn settle(&mut self) {
        self.held.sort_unstable();
        self.held.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        self.settled = self.held.len();
    }
}

/// Groups those owners of a list whose turn it is.
fn group_list(
    list: &Tape,
    (pass, passes): (u64, u64),
    address: Address,
    (out, spill): (&mut Tape, &Spill),
) -> Result<(), UnitError> {
    let mut owners: HashMap<Box<[u8]>, Owned> = HashMap::new();
    let mut reader = list.reader(spill, usize::MAX);
    let (mut owner, mut held, mut entry) = (Vec::new(), Vec::new(), Vec::new());
    while read_owner(&mut reader, &mut owner)? {
        let count = reader.expect()?;
        read_items(&mut reader, count, &mut held)?;
        // Passes take rising addresses, so that their number does not change the order.
        let low = u128::from(address(&owner) << PARTS.ilog2());
        if (low * u128::from(passes)) >> 64 != u128::from(pass) {
            continue;
        }
        let owned = match owners.get_mut(owner.as_slice()) {
            Some(known) => known,
            None => owners.entry(owner.as_slice().into()).or_insert(Owned { held: Vec::new(), settled: 0 }),
        };
        owned.held.extend_from_slice(&held);
        // So that someone who writes the same words all the time does not fill the memory.
        if owned.held.len() > 2 * owned.settled + 1024 {
            owned.settle();
        }
    }
    let mut owners: Vec<(u64, Box<[u8]>, Owned)> =
        owners.into_iter().map(|(owner, owned)| (address(&owner), owner, owned)).collect();
    owners.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    for (address, _, mut owned) in owners {
        owned.settle();
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
