//! Tests which traces of keys, of generators and of their buffered numbers stay in memory.
//!
//! Without optimization, every call leaves copies of its arguments on the stack.

#![cfg(all(target_os = "linux", not(debug_assertions)))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod search;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use mechanisms::{OsRng, PrivacyRng, Purpose, RoundedGaussian, Stream};
use search::Masked;

const STEP: u64 = 3;
const STREAMS: u32 = 5;
/// The number of sources: so large that the search for the keys does not overwrite all memory that was freed.
const SOURCES: usize = 50;

/// Returns 256 bits of a block, from a word of it on.
fn bits(key: &Masked, nonce: u64, block: u64, word: u64) -> Masked {
    Masked::computed(|bits| {
        let mut seed = [0; 32];
        key.write_to(&mut seed);
        let mut generator = ChaCha20Rng::from_seed(seed);
        generator.set_stream(nonce);
        generator.set_word_pos(u128::from(16 * block + word));
        generator.fill_bytes(bits);
    })
}

/// Oracle: the memory of this process, read through /proc.
#[test]
fn memory_holds_no_key_once_its_owner_is_dropped() {
    let root = Masked::made_up(3);
    let purpose = (Purpose::GradientNoise as u64) << 32;
    let keys: Vec<Masked> =
        (0..STREAMS).map(|index| bits(&root, STEP, purpose | u64::from(index), 0)).collect();
    // The first word that a generator has ready makes room for its place.
    let ready: Vec<Masked> = keys.iter().map(|key| bits(key, 0, 0, 8)).collect();
    let copies = |secrets: &[Masked]| secrets.iter().map(Masked::copies).sum::<usize>();
    let everything = || [root.copies(), copies(&keys), copies(&ready)];
    assert_eq!(everything(), [0; 3], "this test keeps none");

    let sources: Vec<OsRng> =
        (0..SOURCES).map(|_| OsRng::shared(|key| root.write_to(key)).unwrap()).collect();
    let mut streams: Vec<Stream> = Vec::new();
    // A vector that grows moves what it has.
    for index in 0..STREAMS {
        streams.push(sources[0].stream(Purpose::GradientNoise, STEP, index));
    }
    let mut noise = vec![0; 100_000];
    for stream in &mut streams {
        RoundedGaussian::new(1 << 20).unwrap().add_to(stream, 0, &mut noise);
        stream.seek(0);
        stream.next_u32();
    }
    let moved = Box::new(sources);
    let each = STREAMS as usize;
    assert_eq!(everything(), [SOURCES, each, each], "each is in one place, and found there");
    drop(streams);
    assert_eq!(everything(), [SOURCES, 0, 0]);
    drop(moved);
    assert_eq!(everything(), [0; 3]);
}
