//! Gives distinct items numbers: a hash table in which a short item is its own key.

use rustc_hash::FxHashMap;
use tokenizer::short_key::{SHORT_BYTES, short_hash, short_key};

/// Marks the key of a longer item, which has an index instead of bytes.
const LONG: u128 = 0xFF << 120;

/// The number of an item, and its index in the current unit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// The key of the item; 0 for a free slot.
    key: u128,
    pub(super) number: u32,
    /// The unit that last held the item.
    pub(super) serial: u32,
    /// The index of the item in the list of that unit.
    pub(super) place: u32,
    /// The number of occurrences, where there are no units.
    pub(super) count: u32,
}

/// Numbers items in order of appearance.
pub(super) struct Interner {
    slots: Vec<Slot>,
    count: u32,
    long: FxHashMap<Box<[u8]>, u32>,
    long_bytes: usize,
}

const FIRST_SLOTS: usize = 1 << 8;

impl Default for Interner {
    fn default() -> Self {
        let slots = vec![Slot::default(); FIRST_SLOTS];
        Self { slots, count: 0, long: FxHashMap::default(), long_bytes: 0 }
    }
}

/// The distinct items: first short ones in byte order, then longer ones in byte order.
pub(super) struct Sorted {
    /// The keys in byte order, with the numbers of the items.
    pub(super) short: Vec<(u128, u32)>,
    pub(super) long: Vec<(Box<[u8]>, u32)>,
}

impl Interner {
    /// Returns the key of the item at `from..to` of `bytes`.
    #[inline]
    pub(super) fn key(&mut self, bytes: &[u8], from: usize, to: usize) -> u128 {
        match to - from {
            length if length <= SHORT_BYTES => short_key(bytes, from, length),
            _ => self.long_key(&bytes[from..to]),
        }
    }

    /// Prefetches the slots of these keys. These loads do not wait for each other, unlike those of [`Self::slot`], and
    /// waiting for memory is most of the work.
    #[inline]
    pub(super) fn touch(&self, keys: &[u128]) {
        let mask = self.slots.len() - 1;
        let loaded =
            keys.iter().fold(0, |sum, &key| sum ^ self.slots[short_hash(key) as usize & mask].number);
        std::hint::black_box(loaded);
    }

    /// Returns the slot of a key.
    #[inline]
    pub(super) fn slot(&mut self, key: u128) -> &mut Slot {
        if (self.count as usize + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = short_hash(key) as usize & mask;
        while self.slots[at].key != key && self.slots[at].key != 0 {
            at = (at + 1) & mask;
        }
        let slot = &mut self.slots[at];
        if slot.key == 0 {
            *slot = Slot { key, number: self.count, ..Slot::default() };
            self.count += 1;
        }
        slot
    }

    #[cold]
    fn long_key(&mut self, item: &[u8]) -> u128 {
        let place = match self.long.get(item) {
            Some(&known) => known,
            None => {
                let place = self.long.len() as u32;
                self.long_bytes += item.len() + 48;
                self.long.insert(item.into(), place);
                place
            }
        };
        LONG | u128::from(place)
    }

    #[cold]
    fn grow(&mut self) {
        let wider = vec![Slot::default(); self.slots.len() * 2];
        let mask = wider.len() - 1;
        for slot in std::mem::replace(&mut self.slots, wider) {
            if slot.key != 0 {
                let mut at = short_hash(slot.key) as usize & mask;
                while self.slots[at].key != 0 {
                    at = (at + 1) & mask;
                }
                self.slots[at] = slot;
            }
        }
    }

    /// Calls `take` with the number and count of each item that occurred since the last call.
    pub(super) fn take_counts(&mut self, mut take: impl FnMut(u32, u32)) {
        for slot in self.slots.iter_mut().filter(|slot| slot.count > 0) {
            take(slot.number, std::mem::take(&mut slot.count));
        }
    }

    /// Forgets which units held the items.
    pub(super) fn clear_serials(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.serial = 0);
    }

    /// Returns the number of bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>() + self.long_bytes
    }

    /// Whether the table is about to double.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.count as usize * 16 > self.slots.len() * 7
    }

    pub(super) fn sorted(self) -> Sorted {
        let mut numbers = vec![0; self.long.len()];
        let mut short = Vec::with_capacity(self.count as usize - self.long.len());
        for slot in self.slots.iter().filter(|slot| slot.key != 0) {
            if slot.key >= LONG {
                numbers[(slot.key & 0xFFFF_FFFF) as usize] = slot.number;
            } else {
                short.push((slot.key.swap_bytes(), slot.number));
            }
        }
        short.sort_unstable();
        let mut long: Vec<_> =
            self.long.into_iter().map(|(item, place)| (item, numbers[place as usize])).collect();
        long.sort_unstable();
        Sorted { short, long }
    }
}

/// Returns the bytes of a short key in the order of [`Sorted::short`], and their number.
pub(super) fn short_bytes(sorted_key: u128) -> ([u8; 16], usize) {
    let bytes = sorted_key.to_be_bytes();
    (bytes, usize::from(bytes[SHORT_BYTES]).min(SHORT_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_distinct_item_has_one_number_and_the_order_is_by_length_class_and_bytes(
            items in prop::collection::vec(prop::collection::vec(0_u8..3, 1..20), 1..400),
        ) {
            let mut interner = Interner::default();
            let mut known: FxHashMap<Vec<u8>, u32> = FxHashMap::default();
            for item in &items {
                // The item stands among other bytes, which the key must not include.
                let text = [&[9, 9], item.as_slice(), &[7; 3]].concat();
                let key = interner.key(&text, 2, 2 + item.len());
                let number = interner.slot(key).number;
                let fresh = known.len() as u32;
                prop_assert_eq!(number, *known.entry(item.clone()).or_insert(fresh));
            }
            prop_assert_eq!(interner.count as usize, known.len());
            let sorted = interner.sorted();
            let short = sorted.short.iter().map(|&(key, number)| {
                let (bytes, length) = short_bytes(key);
                (bytes[..length].to_vec(), number)
            });
            let got: Vec<_> = short.chain(sorted.long.iter().map(|(b, n)| (b.to_vec(), *n))).collect();
            let mut want: Vec<_> = known.into_iter().collect();
            want.sort_unstable_by_key(|(item, _)| (item.len() > SHORT_BYTES, item.clone()));
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn the_table_grows() {
        let mut interner = Interner::default();
        for round in 0..2 {
            for n in 0..20_000_u32 {
                let key = interner.key(&n.to_le_bytes(), 0, 4);
                assert_eq!(interner.slot(key).number, n, "{round}");
            }
        }
        assert_eq!(interner.count, 20_000);
    }
}
