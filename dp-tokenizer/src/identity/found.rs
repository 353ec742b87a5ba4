//! The hashes of the public text, with a note of those that the private text has.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Fingerprint, Key, Read, Share};

/// A hasher that keeps its input: these hashes are uniform already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The share of the public text's hashes that one portion compares.
#[derive(Clone, Copy)]
pub(super) struct Portion {
    pub number: u64,
    pub of: u64,
}

impl Portion {
    pub fn has(self, hash: u64) -> bool {
        self.of == 1 || hash % self.of == self.number
    }
}

/// Hashes of the public text, and whether the private one has them.
pub(super) struct Found {
    hashes: HashMap<u64, AtomicBool, BuildHasherDefault<Identity>>,
    /// A Bloom filter: for each hash, two bits of one word are set. Nearly all hashes of other texts meet one that is
    /// not.
    filter: Vec<u64>,
}

impl Found {
    /// Collects the hashes of a portion; [`None`] if there are too many.
    pub fn collect<E: Send>(
        key: &Key,
        share: Share,
        read: Read<'_, E>,
        portion: Portion,
        most: usize,
    ) -> Result<Option<Self>, E> {
        let hashes = Mutex::new(HashMap::default());
        share.each(&mut share.states::<()>(), |part, ()| {
            part.read(key, read, &mut |found| {
                let mut hashes = hashes.lock().unwrap_or_else(PoisonError::into_inner);
                let found = found.iter().copied().filter_map(hash_of);
                for hash in found.filter(|hash| portion.has(*hash)) {
                    if hashes.len() <= most {
                        hashes.insert(hash, AtomicBool::new(false));
                    }
                }
            })
        })?;
        let hashes = hashes.into_inner().unwrap_or_else(PoisonError::into_inner);
        if hashes.len() > most {
            return Ok(None);
        }
        let mut filter = vec![0; (hashes.len() / 4).next_power_of_two().max(1024)];
        for hash in hashes.keys() {
            let (word, bits) = Self::place(&filter, *hash);
            filter[word] |= bits;
        }
        Ok(Some(Self { hashes, filter }))
    }

    fn place(filter: &[u64], hash: u64) -> (usize, u64) {
        ((hash >> 32) as usize & (filter.len() - 1), 1 << (hash >> 26 & 63) | 1 << (hash >> 20 & 63))
    }

    /// Notes that the private text has a hash. Returns whether the public one has it, too.
    pub fn note(&self, hash: u64) -> bool {
        let (word, bits) = Self::place(&self.filter, hash);
        if self.filter[word] & bits != bits {
            return false;
        }
        self.hashes.get(&hash).map(|found| found.store(true, Ordering::Relaxed)).is_some()
    }

    /// Returns the hashes that both texts have, as far as this process knows.
    pub fn shared(&self) -> Vec<u64> {
        let shared = self.hashes.iter().filter(|(_, found)| found.load(Ordering::Relaxed));
        shared.map(|(hash, _)| *hash).collect()
    }

    /// Whether the private text has a hash of the public one.
    pub fn is_shared(&self, hash: u64) -> bool {
        self.hashes.get(&hash).is_some_and(|found| found.load(Ordering::Relaxed))
    }
}

/// Returns the hash of a fingerprint. A record and a run of the same letters have different ones.
pub(super) fn hash_of(fingerprint: Fingerprint) -> Option<u64> {
    match fingerprint {
        Fingerprint::Run { hash, .. } => Some(hash),
        Fingerprint::Record { hash, .. } => hash.map(|hash| !hash),
    }
}
