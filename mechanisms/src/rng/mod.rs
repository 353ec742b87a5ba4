//! The source of randomness, and the address of every random number.

#[cfg(target_arch = "x86_64")]
mod blocks;
mod key;
mod stream;

pub use stream::Stream;
pub(crate) use stream::open_unit;

use crate::MechanismError;
use key::Key;

/// The use of a stream of random numbers. Two purposes never share a number.
///
/// The discriminants never change. They are part of each number's address, so a later version repeats a run with a test
/// key bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum Purpose {
    /// The choice of the units that take part in a step.
    Sampling = 1,
    /// The choice of a sampled unit's window.
    Window = 2,
    /// Noise on a sum of clipped gradients.
    GradientNoise = 3,
    /// Noise on a histogram.
    HistogramNoise = 4,
    /// The weights a model starts from.
    Initialization = 5,
    /// Masks and spans of a training objective.
    Masking = 6,
    /// Synthetic data, shuffles of public data.
    Data = 7,
    /// The choice of a unit's items that count if it has more than the cap.
    Contribution = 8,
    /// Generated text.
    Generation = 9,
    /// Privacy audits: canaries, guesses.
    Audit = 10,
    /// The trials of a search: their number and their settings.
    Trials = 11,
    /// A histogram of labels: which record of a unit counts, and the noise.
    Labels = 12,
    /// The name by which a release or a run is known.
    Identity = 13,
    /// Votes of an evolution: which record of a unit votes, and the noise.
    Votes = 14,
    /// Tokens that are drawn by private references.
    Tokens = 15,
}

/// Whether the key of a run is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RandomnessSource {
    /// A 256-bit key from the operating system, never stored: the noise cannot be repeated by anyone.
    OperatingSystem,
    /// A key made from a known seed. The run can be repeated, so it protects nobody.
    Test,
}

impl RandomnessSource {
    /// Whether noise from this source may be called private.
    #[must_use]
    pub fn is_private(self) -> bool {
        matches!(self, Self::OperatingSystem)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::OsRng {}
    impl Sealed for super::TestRng {}
}

/// A source of addressed random streams. The trait is sealed, so that no other crate can provide a weaker source.
pub trait PrivacyRng: sealed::Sealed + Sync {
    /// Returns the stream at (purpose, step, index), from its beginning.
    fn stream(&self, purpose: Purpose, step: u64, index: u32) -> Stream;
    /// Returns the source of the key, which says whether it is secret.
    fn source(&self) -> RandomnessSource;
}

/// Returns a unique name of a release or a run: 128 random bits as hexadecimal digits. With a test
/// key it is always the same.
///
/// ```
/// use mechanisms::{OsRng, TestRng, random_id};
/// assert_eq!(random_id(&TestRng::from_seed(7)), random_id(&TestRng::from_seed(7)));
/// assert_ne!(random_id(&OsRng::new()?), random_id(&OsRng::new()?));
/// assert_eq!(random_id(&TestRng::from_seed(7)).len(), 32);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[must_use]
pub fn random_id(rng: &dyn PrivacyRng) -> String {
    rng.stream(Purpose::Identity, 0, 0).next_name()
}

/// Randomness for private runs: ChaCha20 under a new 256-bit key from the operating system.
///
/// The key is never stored or shown, and its memory is cleared when this source is dropped. A process that resumes a run draws a
/// new key, so noise is never repeated.
pub struct OsRng {
    root: Key,
}

impl OsRng {
    /// Draws a key.
    ///
    /// # Errors
    /// [`MechanismError::NoEntropy`] if the system gives none.
    pub fn new() -> Result<Self, MechanismError> {
        match Key::written_by(|key| getrandom::fill(key)) {
            Ok(root) => Ok(Self { root }),
            Err(error) => Err(MechanismError::NoEntropy { reason: error.to_string() }),
        }
    }

    /// Returns the source of a computation that several processes share: all get the key that one of them drew.
    ///
    /// `broadcast` gets a new key of this process and replaces it by the key of one process, the
    /// same everywhere. A reader of the messages between the processes learns the key. `broadcast`
    /// must clear its copies.
    ///
    /// # Errors
    /// As [`OsRng::new`].
    pub fn shared(broadcast: impl FnOnce(&mut [u8; 32])) -> Result<Self, MechanismError> {
        Ok(Self { root: Self::new()?.root.changed_by(broadcast) })
    }
}

impl PrivacyRng for OsRng {
    fn stream(&self, purpose: Purpose, step: u64, index: u32) -> Stream {
        derive_stream(&self.root, purpose, step, index)
    }
    fn source(&self) -> RandomnessSource {
        RandomnessSource::OperatingSystem
    }
}

/// Repeatable randomness for tests. A run that uses it is marked "not private".
///
/// ```
/// use mechanisms::{PrivacyRng, Purpose, RandomnessSource, TestRng};
/// let rng = TestRng::from_seed(7);
/// assert_eq!(rng.source(), RandomnessSource::Test);
/// let first = rng.stream(Purpose::Data, 3, 0).next_u64();
/// assert_eq!(first, rng.stream(Purpose::Data, 3, 0).next_u64());
/// assert_ne!(first, rng.stream(Purpose::Data, 4, 0).next_u64());
/// ```
pub struct TestRng {
    root: Key,
}

impl TestRng {
    /// Returns the source with this seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self { root: Key::of_seed(seed) }
    }
}

impl PrivacyRng for TestRng {
    fn stream(&self, purpose: Purpose, step: u64, index: u32) -> Stream {
        derive_stream(&self.root, purpose, step, index)
    }
    fn source(&self) -> RandomnessSource {
        RandomnessSource::Test
    }
}

/// Returns the stream under the key of an address: the root key's keystream at nonce = step, block = (purpose, index).
///
/// ChaCha20 under the root key is a pseudo-random function of (nonce, block), so the 256-bit keys of distinct
/// addresses are independent, and no stream can run into another, whatever its length.
fn derive_stream(root: &Key, purpose: Purpose, step: u64, index: u32) -> Stream {
    let block = (u64::from(purpose as u32) << 32) | u64::from(index);
    Stream::from_key(&root.derive(step, block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_part_of_the_address_changes_the_stream() {
        let rng = TestRng::from_seed(1);
        let mut seen = HashSet::new();
        for purpose in [Purpose::Sampling, Purpose::Window, Purpose::GradientNoise, Purpose::HistogramNoise] {
            for step in [0, 1, 2, u64::from(u32::MAX), u64::MAX] {
                for index in [0, 1, u32::MAX] {
                    let mut stream = rng.stream(purpose, step, index);
                    assert!(
                        seen.insert((stream.next_u64(), stream.next_u64())),
                        "{purpose:?} {step} {index}"
                    );
                }
            }
        }
    }

    #[test]
    fn two_os_keys_differ_and_are_called_private() {
        let (a, b) = (OsRng::new().unwrap(), OsRng::new().unwrap());
        let draw = |rng: &OsRng| rng.stream(Purpose::GradientNoise, 0, 0).next_u64();
        assert_ne!(draw(&a), draw(&b));
        assert!(a.source().is_private());
        assert!(!TestRng::from_seed(0).source().is_private());
    }

    #[test]
    fn processes_that_share_a_key_draw_the_same_numbers_and_others_do_not() {
        let mut first = [0; 32];
        let a = OsRng::shared(|key| first = *key).unwrap();
        let b = OsRng::shared(|key| *key = first).unwrap();
        let own = OsRng::shared(|_| ()).unwrap();
        let draw = |rng: &OsRng| rng.stream(Purpose::GradientNoise, 2, 1).next_u64();
        assert_eq!(draw(&a), draw(&b));
        assert_ne!(draw(&a), draw(&own));
        assert!(b.source().is_private() && first != [0; 32]);
    }

    /// Oracle: ChaCha20 written from its specification in Python (key = seed; nonce 17, counter (3 << 32) | 3 gives the
    /// stream key; then nonce 0, counter 0). A change would break every stored test run.
    #[test]
    fn addressing_is_frozen() {
        let mut stream = TestRng::from_seed(42).stream(Purpose::GradientNoise, 17, 3);
        assert_eq!([stream.next_u64(), stream.next_u64()], FROZEN);
    }
    const FROZEN: [u64; 2] = [15_172_126_199_389_346_436, 17_817_827_693_973_836_620];
}
