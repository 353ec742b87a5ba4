//! A trie over bytes in two flat arrays, with one addition and one comparison per byte.

const NONE: u32 = u32::MAX;
/// The number of slots that the children of a node may span: one for each byte.
const FAN: usize = 256;
/// The number of free slots tried for a node before its children go to the end of the arrays.
const TRIES: usize = 64;

/// Maps byte strings to their index in the original list.
#[derive(Debug)]
pub(crate) struct DoubleArray {
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The place where the children of this node start.
    base: u32,
    /// The parent, or `NONE` for a free slot.
    check: u32,
    /// Index of the key that ends here, or `NONE`.
    value: u32,
}

const FREE: Slot = Slot { base: 0, check: NONE, value: NONE };

impl DoubleArray {
    /// Builds a trie of distinct keys in any order. Empty keys are left out.
    pub(crate) fn new<K: AsRef<[u8]>>(keys: &[K]) -> Self {
        let mut order: Vec<u32> = (0..keys.len() as u32).filter(|&i| !key(keys, i).is_empty()).collect();
        order.sort_unstable_by(|&a, &b| key(keys, a).cmp(key(keys, b)));
        let mut trie = Self { slots: vec![FREE; FAN + 1] };
        trie.slots[0].check = 0;
        let mut free = Free { first: 1, next: Vec::new() };
        // (node, depth, range of sorted keys that pass through the node)
        let mut work = vec![(0_u32, 0_usize, 0_usize, order.len())];
        let mut children: Vec<(u8, usize, usize)> = Vec::new();
        while let Some((node, depth, start, end)) = work.pop() {
            children.clear();
            let mut at = start;
            while at < end {
                let k = key(keys, order[at]);
                if k.len() == depth {
                    trie.slots[node as usize].value = order[at];
                    at += 1;
                    continue;
                }
                let byte = k[depth];
                let run = order[at..end].partition_point(|&i| key(keys, i)[depth] == byte);
                children.push((byte, at, at + run));
                at += run;
            }
            if children.is_empty() {
                continue;
            }
            let base = free.place(&mut trie.slots, &children);
            trie.slots[node as usize].base = base as u32;
            for &(byte, from, to) in &children {
                let child = base + byte as usize;
                trie.slots[child].check = node;
                work.push((child as u32, depth + 1, from, to));
            }
        }
        trie
    }

    /// Calls `found(length, index)` for each key that is a prefix of `text`, shortest first.
    #[inline]
    pub(crate) fn prefixes(&self, text: &[u8], mut found: impl FnMut(usize, u32)) {
        let mut node = 0_u32;
        let mut base = self.slots[0].base;
        for (at, &byte) in text.iter().enumerate() {
            let Some(slot) = self.slots.get(base as usize + byte as usize) else { return };
            if slot.check != node {
                return;
            }
            node = base + u32::from(byte);
            base = slot.base;
            if slot.value != NONE {
                found(at + 1, slot.value);
            }
        }
    }

    /// Returns the index of exactly this key.
    pub(crate) fn get(&self, text: &[u8]) -> Option<u32> {
        let mut last = None;
        self.prefixes(text, |length, index| last = Some((length, index)));
        last.filter(|&(length, _)| length == text.len()).map(|(_, index)| index)
    }
}

fn key<K: AsRef<[u8]>>(keys: &[K], index: u32) -> &[u8] {
    keys[index as usize].as_ref()
}

/// The free slots. Children are placed first-fit within a bounded number of tries.
struct Free {
    first: usize,
    /// For each slot, its own number if it is free, else a later slot with no free one in between. All slots beyond the
    /// list are free.
    next: Vec<u32>,
}

impl Free {
    /// Returns the first free slot from `at` on, and halves the path for later searches.
    fn search(&mut self, mut at: usize) -> usize {
        while let Some(&next) = self.next.get(at).filter(|&&next| next as usize != at) {
            self.next[at] = self.next.get(next as usize).copied().unwrap_or(next);
            at = next as usize;
        }
        at
    }

    fn claim(&mut self, at: usize) {
        self.next.extend(self.next.len() as u32..=at as u32);
        self.next[at] = at as u32 + 1;
    }

    fn place(&mut self, slots: &mut Vec<Slot>, children: &[(u8, usize, usize)]) -> usize {
        let lowest = children[0].0 as usize;
        self.first = self.search(self.first);
        // A base of 0 would make the root a child of its own byte 0.
        let mut at = self.search(self.first.max(lowest + 1));
        let mut tries = 0;
        let base = loop {
            if tries == TRIES {
                // Do not search the crowded part again: give up the gaps before here.
                self.first = self.first.max(at.saturating_sub(FAN));
                at = at.max(slots.len());
            }
            tries += 1;
            let base = at - lowest;
            if slots.len() < base + FAN + 1 {
                slots.resize(base + FAN + 1, FREE);
            }
            if children.iter().all(|&(byte, ..)| slots[base + byte as usize].check == NONE) {
                break base;
            }
            at = self.search(at + 1);
        };
        // The slots are claimed at once, so that no other node takes them before the children's turn.
        for &(byte, ..) in children {
            slots[base + byte as usize].check = 0;
            self.claim(base + byte as usize);
        }
        base
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn prefixes_are_those_a_search_through_the_list_finds(
            keys in prop::collection::btree_set(prop::collection::vec(0_u8..5, 1..6), 1..60),
            text in prop::collection::vec(0_u8..6, 0..10),
        ) {
            let keys: Vec<Vec<u8>> = keys.into_iter().collect();
            let trie = DoubleArray::new(&keys);
            let mut got = Vec::new();
            trie.prefixes(&text, |length, index| got.push((length, index as usize)));
            let mut want: Vec<_> = keys.iter().enumerate()
                .filter(|(_, k)| text.starts_with(k)).map(|(i, k)| (k.len(), i)).collect();
            want.sort_unstable();
            prop_assert_eq!(got, want);
            prop_assert_eq!(trie.get(&text).map(|i| keys[i as usize].clone()), keys.contains(&text).then_some(text));
        }
    }

    #[test]
    fn many_keys_of_all_bytes_are_found_and_no_others() {
        let mut keys = BTreeSet::new();
        let mut state = 1_u32;
        while keys.len() < 20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            keys.insert(state.to_le_bytes()[..1 + (state >> 30) as usize].to_vec());
        }
        let keys: Vec<Vec<u8>> = keys.into_iter().collect();
        let trie = DoubleArray::new(&keys);
        assert!(keys.iter().enumerate().all(|(i, k)| trie.get(k) == Some(i as u32)));
        assert!(trie.get(b"").is_none() && DoubleArray::new::<&str>(&[]).get(b"a").is_none());
    }
}
