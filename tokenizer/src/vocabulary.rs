//! Tokens and their ids.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::byte_alphabet::byte_to_char;

/// Distinct tokens. The id of a token is its position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    tokens: Vec<String>,
    /// An open hash table: in each used slot, the upper half of a token's hash over its id plus 1. Half of the slots or more are free,
    /// so that a search ends. A map from strings would hold each token a second time.
    slots: Vec<u64>,
}

/// A token is listed under two ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("token {token:?} of id {second} is also id {first}; each token may occur once")]
pub struct DuplicateToken {
    /// The token.
    pub token: String,
    /// The first id of the token.
    pub first: u32,
    /// The second id of the token.
    pub second: u32,
}

/// Returns the name of the token of a byte.
#[must_use]
pub fn byte_token(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}

fn hash(token: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(token.as_bytes());
    hasher.finish()
}

impl Vocabulary {
    /// Returns a vocabulary from the tokens in order of id.
    ///
    /// ```
    /// let vocabulary = tokenizer::Vocabulary::new(vec!["a".into(), "b".into()])?;
    /// assert_eq!(vocabulary.id("b"), Some(1));
    /// # Ok::<(), tokenizer::DuplicateToken>(())
    /// ```
    ///
    /// # Errors
    /// If a token occurs twice.
    pub fn new(tokens: Vec<String>) -> Result<Self, DuplicateToken> {
        let mut slots = vec![0; (2 * tokens.len()).next_power_of_two()];
        for (second, token) in (0_u32..).zip(&tokens) {
            let hash = hash(token);
            match find(&slots, &tokens, token, hash) {
                Ok(first) => return Err(DuplicateToken { token: token.clone(), first, second }),
                Err(free) => slots[free] = hash >> 32 << 32 | u64::from(second + 1),
            }
        }
        Ok(Self { tokens, slots })
    }

    /// Returns the id of `token`.
    pub fn id(&self, token: &str) -> Option<u32> {
        if self.tokens.is_empty() {
            return None;
        }
        find(&self.slots, &self.tokens, token, hash(token)).ok()
    }

    /// Returns the id of the token that spells `bytes` in GPT-2's alphabet.
    pub(crate) fn id_of_bytes(&self, bytes: &[u8]) -> Option<u32> {
        const SHORT: usize = 64;
        let mut spelt = [0; 2 * SHORT];
        let Some(room) = bytes.len().checked_mul(2).and_then(|length| spelt.get_mut(..length)) else {
            return self.id(&bytes.iter().map(|byte| byte_to_char(*byte)).collect::<String>());
        };
        let mut length = 0;
        for byte in bytes {
            length += byte_to_char(*byte).encode_utf8(&mut room[length..]).len();
        }
        self.id(std::str::from_utf8(&room[..length]).ok()?)
    }

    /// Replaces `ids` by the ids of `tokens`. The table is far larger than a processor's cache, and reading the places of all
    /// tokens first takes a third of the time of as many calls of [`Self::id`].
    pub(crate) fn ids_of(&self, tokens: &[&str], ids: &mut Vec<Option<u32>>) {
        const AT_ONCE: usize = 32;
        ids.clear();
        for tokens in tokens.chunks(AT_ONCE).filter(|_| !self.is_empty()) {
            let (mut hashes, mut slots, mut starts) = ([0; AT_ONCE], [0; AT_ONCE], [0; AT_ONCE]);
            for (token, hash_of) in tokens.iter().zip(&mut hashes) {
                *hash_of = hash(token);
            }
            for (hash, slot) in hashes.iter().zip(&mut slots) {
                *slot = self.slots[*hash as usize & (self.slots.len() - 1)];
            }
            for (slot, start) in slots.iter().zip(&mut starts) {
                let token = self.tokens.get((*slot as u32).wrapping_sub(1) as usize);
                *start = token.and_then(|token| token.bytes().next()).unwrap_or(0);
            }
            std::hint::black_box(&starts);
            ids.extend(
                tokens
                    .iter()
                    .zip(hashes)
                    .map(|(token, hash)| find(&self.slots, &self.tokens, token, hash).ok()),
            );
        }
        ids.resize(tokens.len(), None);
    }

    /// Returns the token of `id`.
    pub fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize).map(String::as_str)
    }

    /// Returns all tokens in order of id.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

/// Returns the id of a token with this hash, or else the free slot where its search ends.
#[inline]
fn find(slots: &[u64], tokens: &[String], token: &str, hash: u64) -> Result<u32, usize> {
    let last = slots.len() - 1;
    let mut at = hash as usize & last;
    while slots[at] != 0 {
        let id = slots[at] as u32 - 1;
        if slots[at] >> 32 == hash >> 32 && tokens[id as usize] == token {
            return Ok(id);
        }
        at = (at + 1) & last;
    }
    Err(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_found_and_no_other_text() {
        let tokens: Vec<String> = (0..5000).map(|n| format!("{n:x}")).collect();
        let vocabulary = Vocabulary::new(tokens.clone()).unwrap();
        let others: Vec<String> = (0..5000).map(|n| format!("{n:x} ")).collect();
        let names: Vec<&str> = tokens.iter().chain(&others).map(String::as_str).collect();
        let want: Vec<Option<u32>> = (0..5000).map(Some).chain([None; 5000]).collect();
        assert_eq!(names.iter().map(|name| vocabulary.id(name)).collect::<Vec<_>>(), want);
        let mut ids = vec![Some(7)];
        vocabulary.ids_of(&names, &mut ids);
        assert_eq!(ids, want);
        Vocabulary::default().ids_of(&names, &mut ids);
        assert_eq!(ids, [None; 10_000]);
        assert_eq!(Vocabulary::default().id(""), None);
    }
}
