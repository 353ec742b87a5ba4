//! Digests of text, which do not depend on how many ranks read it.

use sha2::{Digest, Sha256};

use super::{Answer, LabelledRecord};
use durable::hex;

/// Adds the number of bytes and then the bytes, so that no two lists of parts look alike.
pub(super) fn add(digest: &mut Sha256, part: &[u8]) {
    digest.update((part.len() as u64).to_le_bytes());
    digest.update(part);
}

/// Adds all parts of a record except its unit.
pub(super) fn add_record(digest: &mut Sha256, record: &LabelledRecord) {
    add(digest, record.text.as_bytes());
    digest.update((record.words.len() as u64).to_le_bytes());
    record.words.iter().for_each(|word| add(digest, word.as_bytes()));
    digest.update([u8::from(record.second.is_some())]);
    add(digest, record.second.as_deref().unwrap_or_default().as_bytes());
    match &record.answer {
        Answer::Labels(labels) => {
            let bytes: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
            digest.update([0]);
            add(digest, &bytes);
        }
        Answer::Text(text) => {
            digest.update([1]);
            add(digest, text.as_bytes());
        }
    }
}

/// Returns the SHA-256 of a record without its unit.
pub(super) fn sha256_of_record(record: &LabelledRecord) -> [u8; 32] {
    let mut digest = Sha256::new();
    add_record(&mut digest, record);
    digest.finalize().into()
}

/// Returns the SHA-256 of a stretch of text, and of whether its record begins and ends with it.
pub(super) fn sha256_of_text(text: &str, begins_record: bool, ends_record: bool) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update([u8::from(begins_record) << 1 | u8::from(ends_record)]);
    digest.update(text);
    digest.finalize().into()
}

/// The digest of a sequence. That of two sequences in a row follows from theirs, so that each rank digests its own share.
///
/// It is a polynomial whose coefficients are the items, evaluated at four fixed places of the field of 2⁶¹ − 1, as in the string
/// search of Rabin and Karp. Sequences of SHA-256 values that differ by accident have equal digests with a probability of about 2⁻²⁴⁰.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sequence {
    values: [u64; 4],
    items: u64,
}

const PRIME: u64 = (1 << 61) - 1;

/// Where the polynomial is evaluated: the first initial values of SHA-512, modulo 2⁶¹.
const PLACES: [u64; 4] = [0x0a09e667f3bcc908, 0x1b67ae8584caa73b, 0x1c6ef372fe94f82b, 0x054ff53a5f1d36f1];

fn product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    sum((product & u128::from(PRIME)) as u64, (product >> 61) as u64)
}

/// Adds two numbers of at most 2⁶¹ − 1.
fn sum(a: u64, b: u64) -> u64 {
    (a + b) % PRIME
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut power = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = product(power, base);
        }
        base = product(base, base);
        exponent >>= 1;
    }
    power
}

impl Sequence {
    const BYTES: usize = 40;

    fn push(&mut self, item: [u64; 4]) {
        self.append(&Self { values: item.map(|value| value % PRIME), items: 1 });
    }

    fn append(&mut self, next: &Self) {
        for ((value, place), own) in self.values.iter_mut().zip(PLACES).zip(next.values) {
            *value = sum(product(*value, power(place, next.items)), own);
        }
        self.items += next.items;
    }

    fn to_bytes(self) -> Vec<u8> {
        self.values.into_iter().chain([self.items]).flat_map(u64::to_le_bytes).collect()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        let mut numbers =
            bytes.chunks_exact(8).map(|eight| eight.try_into().map_or(0, u64::from_le_bytes)).chain([0; 5]);
        let mut next = || numbers.next().unwrap_or(0);
        Self { values: [next(), next(), next(), next()], items: next() }
    }
}

/// The digest of a text and of its division into units, as private as the text. It does not depend on the number of ranks or on
/// the layout of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ContentDigest {
    texts: Sequence,
    units: Sequence,
}

impl ContentDigest {
    /// Adds a stretch of text or a record by its SHA-256. Its unit is added by [`Self::push_unit`].
    pub fn push(&mut self, sha256: [u8; 32]) {
        self.texts.push(std::array::from_fn(|word| {
            sha256[8 * word..8 * word + 8].try_into().map_or(0, u64::from_le_bytes)
        }));
    }

    /// Adds the unit of the next stretch or record.
    pub fn push_unit(&mut self, unit: u64) {
        self.units.push([unit; 4]);
    }

    /// Adds the text that follows.
    pub fn append(&mut self, next: &Self) {
        self.texts.append(&next.texts);
        self.units.append(&next.units);
    }

    /// Returns the digest as a message to other ranks.
    pub fn to_bytes(self) -> Vec<u8> {
        [self.texts.to_bytes(), self.units.to_bytes()].concat()
    }

    /// Reads a message that [`Self::to_bytes`] made.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let (texts, units) = bytes.split_at(Sequence::BYTES.min(bytes.len()));
        Self { texts: Sequence::of_bytes(texts), units: Sequence::of_bytes(units) }
    }

    /// Returns the SHA-256 of a key, of this digest, and of a token file's digest if there is one.
    pub fn keyed(self, key: &[u8], tokens: Option<&[u8]>) -> String {
        let mut digest = Sha256::new();
        add(&mut digest, key);
        digest.update(self.to_bytes());
        add(&mut digest, tokens.unwrap_or_default());
        hex(&digest.finalize())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(texts: &[(u64, String)]) -> ContentDigest {
        let mut digest = ContentDigest::default();
        for (unit, text) in texts {
            digest.push(sha256_of_text(text, true, true));
            digest.push_unit(*unit);
        }
        digest
    }

    proptest! {
        #[test]
        fn a_text_has_one_digest_however_it_is_divided(
            texts in prop::collection::vec((0_u64..9, "[ab]{0,2}"), 0..20),
            cuts in prop::collection::vec(0_usize..20, 0..4),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(texts.len())).collect();
            cuts.sort_unstable();
            let mut divided = ContentDigest::default();
            let mut begin = 0;
            for end in cuts.into_iter().chain([texts.len()]) {
                let part = of(&texts[begin..end]);
                divided.append(&ContentDigest::of_bytes(&part.to_bytes()));
                begin = end;
            }
            prop_assert_eq!(divided, of(&texts));
        }

        /// Another text, another order or another unit gives another digest.
        #[test]
        fn another_text_has_another_digest(
            one in prop::collection::vec((0_u64..3, "[ab]{0,2}"), 0..8),
            other in prop::collection::vec((0_u64..3, "[ab]{0,2}"), 0..8),
            swap: prop::sample::Index,
        ) {
            prop_assert_eq!(one == other, of(&one) == of(&other));
            prop_assert_eq!(one == other, of(&one).keyed(b"key", None) == of(&other).keyed(b"key", None));
            let mut swapped = one.clone();
            if !one.is_empty() {
                swapped.swap(0, swap.index(one.len()));
            }
            prop_assert_eq!(swapped == one, of(&swapped) == of(&one));
        }
    }

    #[test]
    fn the_digest_depends_on_its_key_and_on_a_token_file() {
        let digest = of(&[(0, "a".to_owned())]);
        let all = [
            digest.keyed(b"a", None),
            digest.keyed(b"b", None),
            digest.keyed(b"a", Some(&[0; 32])),
            digest.keyed(b"a", Some(&[1; 32])),
        ];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    }
}
