//! A hash for words and small keys.

use std::hash::Hasher;

/// A hash with one multiplication for eight bytes. Its quality suffices for words, and it is the same on every machine.
///
/// Not resistant to chosen collisions, which could only slow down a bounded cache.
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
