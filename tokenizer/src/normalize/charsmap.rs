//! SentencePiece's precompiled character map: a double-array trie of replacements.

use std::borrow::Cow;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation;

use super::Normalize;
use crate::FormatError;
use crate::aligned_text::{AlignedText, Change};

/// A map from character sequences to their normal form, as in a SentencePiece `.model` (`nmt_nfkc`, …).
///
/// Layout: byte length of the trie (u32, little endian), the trie (darts-clone units of 32 bits), then the replacements, each
/// terminated by a zero byte. The value of a leaf is the offset of its replacement.
///
/// # References
/// Kudo and Richardson 2018, <https://arxiv.org/abs/1808.06226>, section 3.3.
#[derive(Clone, PartialEq, Eq)]
pub struct Charsmap {
    units: Vec<u32>,
    replacements: Vec<u8>,
    /// Whether each ASCII character stays as it is when it is alone.
    plain: [bool; 128],
}

impl std::fmt::Debug for Charsmap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Charsmap({} units)", self.units.len())
    }
}

/// The most bytes that may replace a character and its marks. Unicode's longest compatibility form has 33.
const MAX_REPLACEMENT_BYTES: usize = 1024;

impl Charsmap {
    /// Reads the map; an empty blob is the identity.
    ///
    /// # Errors
    /// If the stated length of the trie does not fit the blob.
    pub fn from_bytes(blob: &[u8]) -> Result<Self, FormatError> {
        if blob.is_empty() {
            return Ok(Self { units: Vec::new(), replacements: Vec::new(), plain: [true; 128] });
        }
        let refused = |reason| FormatError::malformed("precompiled_charsmap", 0, reason);
        let (head, rest) =
            blob.split_first_chunk::<4>().ok_or_else(|| refused("shorter than its 4-byte length field"))?;
        let size = u32::from_le_bytes(*head) as usize;
        if !size.is_multiple_of(4) || size > rest.len() {
            return Err(refused("the trie's stated length is no multiple of 4 or exceeds the data"));
        }
        let (trie, replacements) = rest.split_at(size);
        if replacements.split(|byte| *byte == 0).any(|one| one.len() > MAX_REPLACEMENT_BYTES) {
            return Err(refused("a replacement is longer than 1024 bytes"));
        }
        let units = trie.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let mut map = Self { units, replacements: replacements.to_vec(), plain: [true; 128] };
        for byte in 0..128 {
            let is_key = map.matches(&[byte]).next().is_some();
            map.plain[usize::from(byte)] = !is_key;
        }
        Ok(map)
    }

    pub(super) fn read(part: &Value) -> Result<Arc<dyn Normalize>, FormatError> {
        let blob = part["precompiled_charsmap"].as_str().and_then(|blob| BASE64_STANDARD.decode(blob).ok());
        let refused = || FormatError::inconsistent("normalizer.precompiled_charsmap is not base64");
        Ok(Arc::new(Self::from_bytes(&blob.ok_or_else(refused)?)?))
    }

    /// The blob that [`Charsmap::from_bytes`] reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.units.is_empty() && self.replacements.is_empty() {
            return Vec::new();
        }
        let mut blob = Vec::with_capacity(4 + self.units.len() * 4 + self.replacements.len());
        blob.extend(((self.units.len() * 4) as u32).to_le_bytes());
        blob.extend(self.units.iter().flat_map(|u| u.to_le_bytes()));
        blob.extend(&self.replacements);
        blob
    }

    /// Returns length and replacement of every key that `text` starts with, shortest first.
    fn matches<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (usize, &'a str)> {
        let mut base = self.root();
        // The walk ends at the first byte that no key goes on with, not at the end of the text.
        let walk = text.iter().enumerate().map_while(move |(i, &byte)| {
            let (next, is_key) = self.step(base?, byte)?;
            base = Some(next);
            let leaf = self.units.get(next).filter(|_| is_key);
            Some(leaf.and_then(|leaf| Some((i + 1, self.replacement((leaf & 0x7FFF_FFFF) as usize)?))))
        });
        walk.flatten()
    }

    /// Returns where the children of the root are; `None` in a map without keys.
    fn root(&self) -> Option<usize> {
        self.units.first().map(|root| child_base(0, *root))
    }

    /// Returns where the children of the child for `byte` are, and whether a key ends at that child.
    fn step(&self, base: usize, byte: u8) -> Option<(usize, bool)> {
        let node = base ^ usize::from(byte);
        let unit = *self.units.get(node).filter(|unit| **unit & 0x8000_00FF == u32::from(byte))?;
        Some((child_base(node, unit), unit >> 8 & 1 == 1))
    }

    fn replacement(&self, offset: usize) -> Option<&str> {
        let tail = self.replacements.get(offset..)?;
        let end = tail.iter().position(|b| *b == 0).unwrap_or(tail.len());
        std::str::from_utf8(&tail[..end]).ok()
    }

    /// Whether this ASCII character stays as it is wherever another one, or nothing, follows it.
    pub(crate) fn stays_before_ascii(&self, byte: u8) -> bool {
        match self.root().and_then(|root| self.step(root, byte)) {
            None => true,
            Some((base, is_key)) => !is_key && !(0..128).any(|next| self.step(base, next).is_some()),
        }
    }

    /// The longest key that `text` starts with, as (length, replacement).
    pub(crate) fn longest_match<'a>(&'a self, text: &'a [u8]) -> Option<(usize, &'a str)> {
        // Every match lies within the trie's depth, so this ends long before the text does.
        self.matches(text).last()
    }

    /// Replaces by longest match from the left, as SentencePiece does.
    pub fn normalize(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let taken = match self.longest_match(rest.as_bytes()).filter(|(n, _)| rest.is_char_boundary(*n)) {
                Some((length, replacement)) => {
                    out.push_str(replacement);
                    length
                }
                None => {
                    out.push(first);
                    first.len_utf8()
                }
            };
            rest = &rest[taken..];
        }
        out
    }

    /// Replaces grapheme by grapheme, as Hugging Face's `Precompiled` normalizer does.
    ///
    /// Differs from [`Charsmap::normalize`] where a key spans graphemes or is longer than five bytes, and in that
    /// the *shortest* key at a place is taken: `tokenizer.json` files are to be read the way they are elsewhere.
    pub(crate) fn normalize_graphemes<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.plain_start(text.as_bytes()) == text.len() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len() + text.len() / 8);
        self.each_grapheme(text, |same, _, new| {
            out.push_str(same);
            out.push_str(new);
        });
        Cow::Owned(out)
    }

    /// Returns the number of bytes at the start that stay as they are, each a grapheme by itself. In ASCII every
    /// character is one, except a return with its newline, and a character before something outside ASCII.
    fn plain_start(&self, text: &[u8]) -> usize {
        let is_plain = |b: &u8| *b != b'\r' && self.plain.get(usize::from(*b)) == Some(&true);
        let plain = text.iter().take_while(|b| is_plain(b)).count();
        match text.get(plain) {
            Some(next) if !next.is_ascii() => plain.saturating_sub(1),
            _ => plain,
        }
    }

    /// Passes stretches that stay as they are to `take`, each with the old and new form of the grapheme after it. A
    /// grapheme that is no key as a whole is passed character by character.
    fn each_grapheme<'a>(&'a self, text: &'a str, mut take: impl FnMut(&'a str, &'a str, &'a str)) {
        let mut rest = text;
        while !rest.is_empty() {
            // A plain character before another one is a grapheme by itself.
            let plain = self.plain_start(rest.as_bytes());
            let (same, others) = rest.split_at(plain);
            let Some(grapheme) = others.graphemes(true).next() else { return take(same, "", "") };
            rest = &others[grapheme.len()..];
            let whole = (grapheme.len() < 6).then(|| self.shortest_match(grapheme)).flatten();
            if let Some(new) = whole {
                take(same, grapheme, new);
                continue;
            }
            take(same, "", "");
            for (at, c) in grapheme.char_indices() {
                let old = &grapheme[at..at + c.len_utf8()];
                take("", old, self.shortest_match(old).unwrap_or(old));
            }
        }
    }

    fn shortest_match<'a>(&'a self, text: &'a str) -> Option<&'a str> {
        self.matches(text.as_bytes()).next().map(|(_, replacement)| replacement)
    }
}

impl Normalize for Charsmap {
    fn normalize<'a>(&self, text: &'a str, _: usize) -> Cow<'a, str> {
        self.normalize_graphemes(text)
    }

    fn align(&self, text: &mut AlignedText, _: usize) {
        let mut changes: Vec<Change> = Vec::with_capacity(text.text.len());
        self.each_grapheme(&text.text, |same, old, new| {
            changes.extend(same.chars().map(|c| (c, 0)));
            changes.extend(new.chars().map(|c| (c, 0)));
            let (before, after) = (old.chars().count(), new.chars().count());
            let added = after.saturating_sub(before);
            changes.iter_mut().rev().take(added).for_each(|change| change.1 = 1);
            // Characters dropped before the first one are not counted, as in Hugging Face tokenizers.
            if let Some(last) = changes.last_mut().filter(|_| after < before) {
                last.1 -= (before - after) as isize;
            }
        });
        text.change(changes, 0);
    }

    fn json(&self) -> Value {
        precompiled_json(&self.to_bytes())
    }

    fn charsmap(&self) -> Option<&Charsmap> {
        Some(self)
    }
}

/// Returns the part of a `tokenizer.json` that applies the map in this blob.
pub(crate) fn precompiled_json(blob: &[u8]) -> Value {
    json!({"type": "Precompiled", "precompiled_charsmap": BASE64_STANDARD.encode(blob)})
}

/// Returns the place of the children of `node`: darts-clone's offset, with its flag for large ones.
fn child_base(node: usize, unit: u32) -> usize {
    node ^ (((unit >> 10) << ((unit & 1 << 9) >> 6)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The map of the fixture: its source lies in SentencePiece's own file, 17 rules.
    fn map() -> Charsmap {
        let file = include_bytes!("../../tests/fixtures/small.model");
        let model = crate::sentencepiece::SentencePieceModel::from_bytes(file).unwrap();
        Charsmap::from_bytes(&model.normalizer.precompiled_charsmap).unwrap()
    }

    #[test]
    fn the_longest_key_is_replaced_and_the_rest_kept() {
        // Oracle: the rules the map was compiled from, by SentencePiece.
        assert_eq!(map().normalize("\u{FF21}e\u{301}\u{FB01}x\u{BD}\u{200B}…e"), "Aéfix1/2...e");
        assert_eq!(map().normalize(""), "");
    }

    #[test]
    fn long_texts_take_time_in_proportion() {
        // A million characters outside ASCII: a walk to the end of the text at each would take hours.
        let text = "é…".repeat(500_000);
        assert_eq!(map().normalize(&text), "é...".repeat(500_000));
    }

    #[test]
    fn the_way_for_ascii_equals_the_way_by_graphemes() {
        for c in (0..128u8).map(char::from) {
            for text in [format!("a{c}b"), format!("{c}{c}"), format!("\r{c}")] {
                // A letter outside the map keeps the text from the short way.
                let long = map().normalize_graphemes(&format!("{text} ø")).into_owned();
                assert_eq!(long.strip_suffix(" ø").unwrap(), map().normalize_graphemes(&text), "{text:?}");
            }
        }
    }

    #[test]
    fn blobs_survive_the_round_trip_and_damaged_ones_are_refused_or_harmless() {
        let blob = map().to_bytes();
        assert_eq!(Charsmap::from_bytes(&blob).unwrap(), map());
        assert!(Charsmap::from_bytes(&blob[..3]).is_err() && Charsmap::from_bytes(&blob[..9]).is_err());
        for at in 4..blob.len() {
            let mut broken = blob.clone();
            broken[at] ^= 0xA5;
            let map = Charsmap::from_bytes(&broken).unwrap();
            let _ = (map.normalize("Aé\u{301}\u{FB01}"), map.normalize_graphemes("Aé\u{301}\u{FB01}"));
        }
    }
}
