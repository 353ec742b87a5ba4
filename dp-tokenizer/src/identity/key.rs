//! The key of fingerprints.

use mechanisms::{MechanismError, OsRng, PrivacyRng, Purpose};

use super::letters::ends_word;
use super::{RUN_WORDS, WORD_LETTERS};

/// The most letters of a run.
const MAX_LETTERS: usize = RUN_WORDS as usize * WORD_LETTERS as usize;

/// A key of fingerprints. Under one key, equal letters have equal fingerprints. Different letters have different ones,
/// except with a probability of about 2⁻⁶⁰.
#[derive(Clone)]
pub struct Key {
    /// The base of the polynomial, which is odd.
    base: u64,
    secret: u64,
    powers: Vec<u64>,
    /// The value of each ASCII character: that of a letter or a digit, [`DROPPED`], or [`BLANK`].
    ascii: [u64; 128],
}

pub(super) const DROPPED: u64 = 0;
pub(super) const BLANK: u64 = 1;

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// Returns the key of two random words.
    #[must_use]
    pub fn new(words: [u64; 2]) -> Self {
        let [base, secret] = words.map(|word| mix(word ^ 0x9E37_79B9_7F4A_7C15));
        let base = base | 1;
        let mut key =
            Self { base, secret, powers: Vec::with_capacity(MAX_LETTERS + 1), ascii: [DROPPED; 128] };
        key.powers.extend(
            std::iter::successors(Some(1), |power: &u64| Some(power.wrapping_mul(base)))
                .take(MAX_LETTERS + 1),
        );
        for byte in 0..128_u8 {
            let c = char::from(byte);
            if c.is_ascii_alphanumeric() {
                key.ascii[usize::from(byte)] = key.value(c.to_ascii_lowercase());
            } else if ends_word(c) {
                key.ascii[usize::from(byte)] = BLANK;
            }
        }
        key
    }

    /// Returns a random key.
    ///
    /// # Errors
    /// [`MechanismError`] if the system gives no random bytes.
    pub fn random() -> Result<Self, MechanismError> {
        Self::shared(|_| ())
    }

    /// Returns a random key that `broadcast` replaces by that of one process, so that several processes compare texts
    /// together. No other process may see it.
    ///
    /// # Errors
    /// As [`Self::random`].
    pub fn shared(broadcast: impl FnOnce(&mut [u64; 2])) -> Result<Self, MechanismError> {
        let mut stream = OsRng::new()?.stream(Purpose::Data, 0, 0);
        let mut words = [stream.next_u64(), stream.next_u64()];
        broadcast(&mut words);
        Ok(Self::new(words))
    }

    /// Returns a key that everyone knows, for fingerprints that several processes compare and that stay as private as
    /// the text.
    #[must_use]
    pub fn public() -> Self {
        Self::new([1, 2])
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn secret(&self) -> u64 {
        self.secret
    }

    /// Returns the value of an ASCII character: that of a letter or a digit, [`DROPPED`], or [`BLANK`].
    pub(super) fn ascii(&self, byte: u8) -> u64 {
        self.ascii[usize::from(byte & 127)]
    }

    /// Returns the value of a letter, which is neither [`DROPPED`] nor [`BLANK`].
    pub(super) fn value(&self, c: char) -> u64 {
        mix(u64::from(u32::from(c)) ^ self.secret) | 2
    }

    #[inline]
    pub(super) fn power(&self, exponent: u64) -> u64 {
        match self.powers.get(exponent as usize) {
            Some(power) => *power,
            None => self.large_power(exponent),
        }
    }

    fn large_power(&self, exponent: u64) -> u64 {
        let half = self.power(exponent / 2);
        let square = half.wrapping_mul(half);
        if exponent.is_multiple_of(2) { square } else { square.wrapping_mul(self.base) }
    }
}

/// Mixes all bits (the finalizer of MurmurHash3, a bijection).
pub(super) fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    word = (word ^ (word >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    word ^ (word >> 33)
}

#[cfg(test)]
mod tests {
    use super::super::{Fingerprint, Fingerprints, Passage};
    use super::*;

    /// Returns the fingerprints of a record.
    fn fingerprints(key: &Key) -> Vec<Fingerprint> {
        let mut found = Vec::new();
        Fingerprints::new(key).read(Passage::record("a1 b2 c3"), &mut |one| found.push(one));
        found
    }

    /// An attacker who knows one word of the key, or none, cannot choose letters with equal fingerprints.
    #[test]
    fn all_of_the_key_is_in_the_letters_and_in_the_polynomial() {
        let [one, secret, base] = [[1, 2], [1, 3], [2, 2]].map(Key::new);
        assert!(one.base == secret.base && one.base != base.base && one.base % 2 == 1);
        assert!(one.value('a') != secret.value('a') && one.value('a') == base.value('a'));
        assert_ne!(fingerprints(&one), fingerprints(&base));
        let random = || Key::random().unwrap();
        assert!(fingerprints(&random()) != fingerprints(&random()));
        let (mut drawn, mut shared) = ([0; 2], [0; 2]);
        Key::shared(|words| drawn = *words).unwrap();
        assert_eq!(Key::shared(|words| *words = drawn).unwrap().base, Key::new(drawn).base);
        Key::shared(|words| shared = *words).unwrap();
        assert!(drawn[0] != shared[0] && drawn[1] != shared[1]);
    }
}
