//! A cache of the tokens of words. Text repeats its words, and a lookup is several times faster than a search.

use std::ops::Range;

use crate::short_key::{SHORT_BYTES, short_hash, short_key};
use rustc_hash::FxHashMap;

/// The most sets, each of two slots for short words. A third word of a set evicts the older one.
const SETS: usize = 1 << 16;
/// The number of sets at the start. A single short text needs no large table.
const FIRST_SETS: usize = 1 << 5;
/// The number of ids per slot. A short word with more ids is stored with the longer words.
const SLOT_IDS: usize = 4;
/// The most longer words. When the cache is full, all are dropped.
const WORDS: usize = 1 << 15;
/// The most bytes of a cached word. Longer words seldom recur and would fill the memory.
const WORD_BYTES: usize = 64;

#[derive(Clone, Copy, Default)]
struct Slot {
    /// The word and, in the three highest bits, the number of its ids; 0 for a free slot.
    key: u128,
    ids: [u32; SLOT_IDS],
}

/// Two slots, which share a cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Set([Slot; 2]);

/// The place of the number of ids in a key. A short key has free bits there, above its length.
const COUNT_SHIFT: u32 = 125;
const KEY_BITS: u128 = (1 << COUNT_SHIFT) - 1;

/// Caches the token ids of words in bounded memory: 4 MiB for short words, a few more for longer ones.
#[derive(Default)]
pub(crate) struct WordCache {
    short: Vec<Set>,
    /// The number of words entered since the table was made.
    entered: usize,
    words: FxHashMap<Box<[u8]>, (u32, u32)>,
    ids: Vec<u32>,
}

impl WordCache {
    /// Appends the ids of a word of `text` to `out`: from the cache, or else by `encode`. With the bytes around it, a
    /// short word is read faster.
    #[inline]
    pub(crate) fn extend_within(
        &mut self,
        text: &[u8],
        word: Range<usize>,
        out: &mut Vec<u32>,
        encode: impl FnOnce(&mut Vec<u32>),
    ) {
        if word.len() <= SHORT_BYTES {
            self.extend_short(text, word.start, word.len(), out, encode);
        } else {
            self.extend_long(&text[word], out, encode);
        }
    }

    /// Appends a long word's ids from the hash map, or encodes and stores them.
    fn extend_long(&mut self, word: &[u8], out: &mut Vec<u32>, encode: impl FnOnce(&mut Vec<u32>)) {
        if word.len() > WORD_BYTES {
            return encode(out);
        }
        if let Some(&(from, to)) = self.words.get(word) {
            out.extend_from_slice(&self.ids[from as usize..to as usize]);
            return;
        }
        let start = out.len();
        encode(out);
        // A short word with few ids is stored in a slot instead.
        if word.len() > SHORT_BYTES || out.len() - start > SLOT_IDS {
            if self.words.len() == WORDS {
                self.words.clear();
                self.ids.clear();
            }
            let from = self.ids.len() as u32;
            self.ids.extend_from_slice(&out[start..]);
            self.words.insert(word.into(), (from, self.ids.len() as u32));
        }
    }

    /// Appends the ids of a word of at most [`SHORT_BYTES`] bytes from its slot, or encodes and stores them.
    #[inline]
    fn extend_short(
        &mut self,
        text: &[u8],
        from: usize,
        length: usize,
        out: &mut Vec<u32>,
        encode: impl FnOnce(&mut Vec<u32>),
    ) {
        let key = short_key(text, from, length);
        if self.recall(key, out) {
            return;
        }
        let start = out.len();
        self.extend_long(&text[from..from + length], out, encode);
        self.remember(key, &out[start..]);
    }

    /// Caches the ids of the short word with this key, if they fit a slot.
    pub(crate) fn remember(&mut self, key: u128, ids: &[u32]) {
        if ids.len() <= SLOT_IDS && key != 0 {
            let mut slot = Slot { key: key | (ids.len() as u128) << COUNT_SHIFT, ids: [0; SLOT_IDS] };
            slot.ids[..ids.len()].copy_from_slice(ids);
            if self.entered >= 2 * self.short.len() && self.short.len() < SETS {
                self.grow();
            }
            self.enter(slot);
        }
    }

    /// Appends the ids of the short word with this key, if they are cached.
    #[inline]
    pub(crate) fn recall(&self, key: u128, out: &mut Vec<u32>) -> bool {
        let place = short_hash(key) as usize & self.short.len().wrapping_sub(1);
        let Some(Set([first, second])) = self.short.get(place) else { return false };
        let slot = if second.key & KEY_BITS == key { second } else { first };
        if slot.key & KEY_BITS != key {
            return false;
        }
        // Copying the whole slot is faster than copying the used part.
        let end = out.len() + (slot.key >> COUNT_SHIFT) as usize;
        out.extend_from_slice(&slot.ids);
        out.truncate(end);
        true
    }

    fn enter(&mut self, slot: Slot) {
        let place = short_hash(slot.key & KEY_BITS) as usize & (self.short.len() - 1);
        let Set(set) = &mut self.short[place];
        *set = [slot, set[0]];
        self.entered += 1;
    }

    fn grow(&mut self) {
        let sets = (8 * self.short.len()).clamp(FIRST_SETS, SETS);
        let before = std::mem::replace(&mut self.short, vec![Set::default(); sets]);
        self.entered = 0;
        let slots = before.iter().flat_map(|set| set.0.iter().rev());
        slots.filter(|slot| slot.key != 0).for_each(|slot| self.enter(*slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(cache: &mut WordCache, word: &[u8], ids: &[u32]) -> (Vec<u32>, bool) {
        let (mut out, mut searched) = (vec![7], false);
        cache.extend_within(word, 0..word.len(), &mut out, |out| {
            searched = true;
            out.extend(ids);
        });
        (out.split_off(1), searched)
    }

    #[test]
    fn what_is_remembered_is_what_was_found_whatever_is_pushed_out() {
        let mut cache = WordCache::default();
        for round in 0..2 {
            for n in 0..300_000_u32 {
                // Words of 4 to 24 bytes with 0 to 5 ids.
                let word = n.to_le_bytes().repeat(1 + n as usize % 6);
                let ids: Vec<u32> = (0..n % 6).map(|i| n + i).collect();
                assert_eq!(cached(&mut cache, &word, &ids).0, ids, "{round} {n}");
            }
        }
        assert!(cache.short.len() == SETS && cache.words.len() <= WORDS && cache.ids.len() <= 5 * WORDS);
    }

    #[test]
    fn a_short_text_takes_little_memory() {
        let mut cache = WordCache::default();
        for n in 0..FIRST_SETS as u8 {
            cached(&mut cache, &[n], &[1]);
        }
        assert_eq!(cache.short.len(), FIRST_SETS);
    }

    #[test]
    fn a_word_is_searched_once_unless_it_is_very_long() {
        let mut cache = WordCache::default();
        for (length, ids, again) in
            [(15, 4, false), (15, 5, false), (16, 9, false), (64, 2, false), (65, 1, true)]
        {
            let (word, ids) = (vec![b'a' + ids as u8; length], vec![5; ids]);
            assert!(cached(&mut cache, &word, &ids).1);
            assert_eq!(cached(&mut cache, &word, &ids), (ids, again), "{length}");
        }
    }
}
