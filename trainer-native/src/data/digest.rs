//! A digest of the training text.

use sha2::{Digest, Sha256};

use super::Units;
use crate::durable::hex;

impl Units {
    /// SHA-256 of `key`, then of every unit with its text, in order. It is as private as the text to whoever has the key.
    pub(crate) fn keyed_digest(&self, key: &[u8]) -> String {
        let mut digest = Sha256::new();
        digest.update((key.len() as u64).to_le_bytes());
        digest.update(key);
        for text in self.texts.for_mechanism() {
            let marks = u64::from(text.begins_record) << 1 | u64::from(text.ends_record);
            for number in [text.piece.unit, marks, text.piece.text.len() as u64] {
                digest.update(number.to_le_bytes());
            }
            digest.update(text.piece.text.as_bytes());
        }
        if let Some(tokens) = &self.tokens {
            digest.update(tokens.for_mechanism().sha256());
        }
        hex(&digest.finalize())
    }
}
