//! Keys and their generators. Each stays in one place of memory, which is cleared when it is dropped.

use std::convert::Infallible;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use zeroize::Zeroizing;

/// A 256-bit key. Moving it copies none of it.
pub(super) struct Key(Box<Zeroizing<[u8; 32]>>);

impl Key {
    /// Returns the key that `write` writes in place.
    ///
    /// # Errors
    /// That of `write`.
    pub fn written_by<E>(write: impl FnOnce(&mut [u8; 32]) -> Result<(), E>) -> Result<Self, E> {
        let mut key = Box::new(Zeroizing::new([0; 32]));
        write(&mut key)?;
        Ok(Self(key))
    }

    /// Returns the key that results from applying `change` to this one.
    pub fn changed_by(mut self, change: impl FnOnce(&mut [u8; 32])) -> Self {
        change(&mut self.0);
        self
    }

    /// Returns the key whose first bytes are `seed`. The others are 0.
    pub fn of_seed(seed: u64) -> Self {
        let write = |key: &mut [u8; 32]| {
            key[..8].copy_from_slice(&seed.to_le_bytes());
            Ok::<(), Infallible>(())
        };
        let Ok(key) = Self::written_by(write);
        key
    }

    /// Returns the first 256 bits of a block under this key.
    pub fn derive(&self, nonce: u64, block: u64) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        generator(&self.0, nonce, block).fill_bytes(key.as_mut_slice());
        key
    }
}

/// Returns ChaCha20 at the beginning of a block, made in the place in memory that it keeps.
#[inline(never)]
pub(super) fn generator(key: &[u8; 32], nonce: u64, block: u64) -> Box<ChaCha20Rng> {
    const WORDS_PER_BLOCK: u128 = 16;
    let mut generator = Box::new(ChaCha20Rng::from_seed(*key));
    generator.set_stream(nonce);
    generator.set_word_pos(u128::from(block) * WORDS_PER_BLOCK);
    generator
}
