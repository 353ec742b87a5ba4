//! Tokens of words seen before. Text repeats its words; a look-up is several times faster than a search.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Words kept; when the cache is full it is emptied, so memory stays bounded whatever the text.
const WORDS: usize = 1 << 16;
/// Longer words are rare and would fill the memory.
const WORD_BYTES: usize = 64;

/// Remembers the token ids of words.
#[derive(Default)]
pub(crate) struct WordCache {
    words: HashMap<Box<[u8]>, (u32, u32), BuildHasherDefault<WordHasher>>,
    ids: Vec<u32>,
}

impl WordCache {
    /// Appends the ids of `word` to `out`, by memory or else by `encode`.
    pub(crate) fn extend(&mut self, word: &[u8], out: &mut Vec<u32>, encode: impl FnOnce(&mut Vec<u32>)) {
        if let Some(&(from, to)) = self.words.get(word) {
            out.extend_from_slice(&self.ids[from as usize..to as usize]);
            return;
        }
        let start = out.len();
        encode(out);
        if word.len() <= WORD_BYTES {
            if self.words.len() == WORDS {
                self.words.clear();
                self.ids.clear();
            }
            let from = self.ids.len() as u32;
            self.ids.extend_from_slice(&out[start..]);
            self.words.insert(word.into(), (from, self.ids.len() as u32));
        }
    }
}

/// Eight bytes a multiplication; quality enough for words, and the same on every machine.
///
/// Not resistant to chosen collisions: they could only slow a bounded cache down.
#[derive(Default)]
pub(crate) struct WordHasher(u64);

impl WordHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
        let mut word = [0; 8];
        let rest = chunks.remainder();
        word[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(word) ^ ((rest.len() as u64) << 56));
    }
    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }
    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value));
    }
    fn finish(&self) -> u64 {
        (self.0 ^ (self.0 >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_searched_once_and_a_full_cache_starts_anew() {
        let mut cache = WordCache::default();
        let mut searched = 0;
        for round in 0..2 {
            for n in 0..=WORDS as u32 {
                let mut out = vec![7];
                cache.extend(&n.to_le_bytes(), &mut out, |out| {
                    searched += 1;
                    out.extend([n, n + 1]);
                });
                assert_eq!(out, [7, n, n + 1], "{round}");
            }
        }
        // One word more than fits: by the time a word comes again, the cache has been emptied.
        assert_eq!(searched, 2 * (WORDS + 1));
        cache.extend(&(WORDS as u32).to_le_bytes(), &mut Vec::new(), |_| unreachable!("it was just seen"));
        assert!(cache.words.len() <= WORDS && cache.ids.len() <= 2 * WORDS);
        let mut out = Vec::new();
        cache.extend(&[b'x'; WORD_BYTES + 1], &mut out, |out| out.push(1));
        cache.extend(&[b'x'; WORD_BYTES + 1], &mut out, |out| out.push(2));
        assert_eq!(out, [1, 2]);
    }
}
