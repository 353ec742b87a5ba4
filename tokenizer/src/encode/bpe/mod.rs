//! Byte-pair encoding: applies the merge of lowest rank first, wherever it is in the word.

mod merge;

use std::ops::Range;

use super::{Encode, Token, WordCache};
use crate::byte_alphabet::{byte_to_char, char_to_byte};
use crate::pretokenize::{METASPACE, MarkCuts, next_mark};
use crate::short_key::SHORT_BYTES;
use crate::vocabulary::{Vocabulary, byte_token};
use rustc_hash::{FxBuildHasher, FxHashMap};

/// The symbols of a word before the first merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Bytes, each written as GPT-2's printable character.
    Bytes,
    /// Characters.
    Characters {
        /// The token for a character outside the vocabulary. Without it, such characters are left out.
        unk_token: Option<String>,
        /// Whether unknown characters in a row become one token.
        fuse_unk: bool,
        /// Whether an unknown character becomes its bytes, `<0x00>` to `<0xFF>`, if the vocabulary has them.
        byte_fallback: bool,
    },
}

/// Rules of BPE that few vocabularies have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WordRules {
    /// Whether a word that is a token becomes that token, whatever the merges.
    pub(crate) ignore_merges: bool,
    /// The prefix of the symbols inside a word.
    pub(crate) continuing_prefix: String,
    /// The suffix of the last symbol of a word.
    pub(crate) word_suffix: String,
}

/// The reason why a vocabulary and merges are inconsistent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BpeError {
    /// A merge whose parts or result are not tokens.
    #[error("merge {index} ({left:?} + {right:?}) needs the token {missing:?}, which the vocabulary lacks")]
    MissingToken {
        /// The place of the merge in the list, from 0.
        index: usize,
        /// The left part.
        left: String,
        /// The right part.
        right: String,
        /// The part or result that is not a token.
        missing: String,
    },
    /// The unknown token is not in the vocabulary.
    #[error("the unknown token {token:?} is not in the vocabulary; add it, or state none")]
    MissingUnknown {
        /// The token.
        token: String,
    },
}

/// A byte-pair encoding: tokens and merges by rank.
///
/// # References
/// Sennrich, Haddow, Birch 2016, <https://arxiv.org/abs/1508.07909>.
#[derive(Clone, Debug)]
pub(crate) struct Bpe {
    vocabulary: Vocabulary,
    merges: Vec<(String, String)>,
    alphabet: Alphabet,
    /// Pair of ids → rank and id of the merged token.
    ranks: FxHashMap<u64, (u32, u32)>,
    /// Ids of the tokens of single bytes: those of the alphabet, or those for byte fallback.
    bytes: Box<[Option<u32>; 256]>,
    unk_id: Option<u32>,
    rules: WordRules,
    /// The ids of tokens by the bytes of the words that they are; empty unless `ignore_merges` is set.
    whole: FxHashMap<Box<[u8]>, u32>,
    mark_cuts: Option<MarkCuts>,
}

fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

impl Bpe {
    /// Returns a model over tokens and merges, with the merge of lowest rank first.
    ///
    /// # Errors
    /// If a merge or the unknown token names a token that the vocabulary lacks.
    pub(crate) fn new(
        vocabulary: Vocabulary,
        merges: Vec<(String, String)>,
        alphabet: Alphabet,
    ) -> Result<Self, BpeError> {
        Self::with_rules(vocabulary, merges, alphabet, WordRules::default())
    }

    /// Returns a model with further rules.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn with_rules(
        vocabulary: Vocabulary,
        merges: Vec<(String, String)>,
        alphabet: Alphabet,
        rules: WordRules,
    ) -> Result<Self, BpeError> {
        let mut ranks = FxHashMap::with_capacity_and_hasher(merges.len(), FxBuildHasher);
        for (index, (left, right)) in merges.iter().enumerate() {
            let id = |token: &str| {
                vocabulary.id(token).ok_or_else(|| BpeError::MissingToken {
                    index,
                    left: left.clone(),
                    right: right.clone(),
                    missing: token.to_owned(),
                })
            };
            let inner = right.strip_prefix(&rules.continuing_prefix).unwrap_or(right);
            let merged = id(&format!("{left}{inner}"))?;
            // A pair listed twice keeps its last rank, as in Hugging Face's table.
            ranks.insert(pair(id(left)?, id(right)?), (index as u32, merged));
        }
        let mut bytes = Box::new([None; 256]);
        let mut unk_id = None;
        for byte in 0..=255u8 {
            bytes[usize::from(byte)] = match &alphabet {
                Alphabet::Bytes => vocabulary.id(byte_to_char(byte).encode_utf8(&mut [0; 4])),
                Alphabet::Characters { byte_fallback: true, .. } => vocabulary.id(&byte_token(byte)),
                Alphabet::Characters { .. } => None,
            };
        }
        if let Alphabet::Characters { unk_token: Some(token), .. } = &alphabet {
            let id = vocabulary.id(token).ok_or_else(|| BpeError::MissingUnknown { token: token.clone() })?;
            unk_id = Some(id);
        }
        let mut bpe = Self {
            vocabulary,
            merges,
            alphabet,
            ranks,
            bytes,
            unk_id,
            rules,
            whole: FxHashMap::default(),
            mark_cuts: None,
        };
        bpe.mark_cuts = bpe.find_mark_cuts();
        if bpe.rules.ignore_merges {
            let tokens = (0..).zip(bpe.vocabulary.tokens());
            bpe.whole = tokens.filter_map(|(id, token)| Some((bpe.spelt(token)?.into(), id))).collect();
        }
        Ok(bpe)
    }

    /// Returns the bytes of the word that `token` is as a whole.
    fn spelt(&self, token: &str) -> Option<Vec<u8>> {
        match self.alphabet {
            Alphabet::Bytes => token.chars().map(char_to_byte).collect(),
            Alphabet::Characters { .. } => Some(token.as_bytes().to_vec()),
        }
    }

    /// Returns the marks (U+2581) before which a text may be cut without a change of its tokens; `None` if it must stay
    /// whole.
    pub(crate) fn mark_cuts(&self) -> Option<MarkCuts> {
        self.mark_cuts
    }

    fn find_mark_cuts(&self) -> Option<MarkCuts> {
        let Alphabet::Characters { unk_token, .. } = &self.alphabet else { return None };
        let has_mark = self.vocabulary.id(METASPACE.encode_utf8(&mut [0; 4])).is_some();
        if self.rules != WordRules::default() || !has_mark {
            return None;
        }
        // If unknown characters are left out, the characters on both sides of one can merge.
        let keeps_unknown = self.unk_id.is_some() || self.bytes.iter().all(Option::is_some);
        let unknown = (0..=255).map(byte_token).chain(unk_token.clone()).collect::<Vec<_>>();
        let (mut cuts, mut token) = (MarkCuts::default(), String::new());
        for (left, right) in &self.merges {
            token.clear();
            token.extend([left.as_str(), right.as_str()]);
            for (at, _) in token.match_indices(METASPACE) {
                let before = token[..at].trim_end_matches(METASPACE);
                let Some(last) = before.chars().next_back().filter(|_| before.len() == at) else { continue };
                // The name of such a token does not end with the character that it stands for.
                let is_unknown = || unknown.iter().any(|token| before.ends_with(token.as_str()));
                if !(keeps_unknown && cuts.forbid_after(last) && !is_unknown()) {
                    return None;
                }
            }
        }
        Some(cuts)
    }

    /// Passes the symbols of `word` before the first merge to `take`: ids, each with the number of bytes it stands for.
    #[inline]
    fn each_symbol(&self, word: &str, mut take: impl FnMut(u32, usize)) {
        let has_affixes = !self.rules.continuing_prefix.is_empty() || !self.rules.word_suffix.is_empty();
        match self.alphabet {
            Alphabet::Bytes if has_affixes => {
                for (at, byte) in word.bytes().enumerate() {
                    let symbol = self.affixed(byte_to_char(byte), at == 0, at + 1 == word.len());
                    if let Some(id) = self.vocabulary.id(&symbol) {
                        take(id, 1);
                    }
                }
            }
            Alphabet::Bytes => {
                let ids = word.bytes().filter_map(|byte| self.bytes[usize::from(byte)]);
                ids.for_each(|id| take(id, 1));
            }
            Alphabet::Characters { fuse_unk, .. } => self.each_character(word, fuse_unk, has_affixes, take),
        }
    }

    /// Does what [`Self::each_symbol`] does, for an alphabet of characters. An unknown token is held back until a known
    /// character or the end of the word, so that it can grow.
    fn each_character(
        &self,
        word: &str,
        fuse_unk: bool,
        has_affixes: bool,
        mut take: impl FnMut(u32, usize),
    ) {
        let mut unknown = None;
        for (at, c) in word.char_indices() {
            let (mut buffer, length) = ([0; 4], c.len_utf8());
            let text: &str = c.encode_utf8(&mut buffer);
            let known = match has_affixes {
                true => self.vocabulary.id(&self.affixed(c, at == 0, at + length == word.len())),
                false => self.vocabulary.id(text),
            };
            if let Some(id) = known {
                unknown.take().into_iter().for_each(|(unk, length)| take(unk, length));
                take(id, length);
            } else if text.bytes().all(|b| self.bytes[usize::from(b)].is_some()) {
                text.bytes().filter_map(|b| self.bytes[usize::from(b)]).for_each(|id| take(id, 1));
            } else if let Some(unk) = self.unk_id {
                unknown = match unknown {
                    Some((unk, before)) if fuse_unk => Some((unk, before + length)),
                    before => {
                        before.into_iter().for_each(|(unk, length)| take(unk, length));
                        Some((unk, length))
                    }
                };
            }
        }
        unknown.into_iter().for_each(|(unk, length)| take(unk, length));
    }

    /// Returns a character with the prefix or suffix that its place in the word requires.
    fn affixed(&self, c: char, is_first: bool, is_last: bool) -> String {
        let prefix = if is_first { "" } else { &self.rules.continuing_prefix };
        let suffix = if is_last { &self.rules.word_suffix } else { "" };
        format!("{prefix}{c}{suffix}")
    }

    /// Appends the tokens with these ids, which were merged from the symbols of `word`, with their places.
    fn place(&self, word: &str, ids: &[u32], out: &mut Vec<Token>) {
        let mut symbols: Vec<(u32, usize)> = Vec::new();
        self.each_symbol(word, |id, length| symbols.push((id, length)));
        let (mut at, mut start) = (0, 0);
        for &id in ids {
            let is_merged = symbols.get(at).is_some_and(|symbol| symbol.0 != id);
            // Only characters with tokens of their own merge, so a merged token has one symbol per character.
            let count =
                if is_merged { self.vocabulary.token(id).map_or(1, |t| self.symbols_of(t, at)) } else { 1 };
            let end = start + symbols.iter().skip(at).take(count).map(|symbol| symbol.1).sum::<usize>();
            out.push(Token { id, start, end });
            (at, start) = (at + count, end);
        }
    }

    /// Returns the number of symbols that were merged into `token`, which stands at symbol `at`.
    fn symbols_of(&self, token: &str, at: usize) -> usize {
        let token =
            if at > 0 { token.strip_prefix(&self.rules.continuing_prefix).unwrap_or(token) } else { token };
        token.strip_suffix(&self.rules.word_suffix).unwrap_or(token).chars().count()
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Returns the merges, lowest rank first.
    pub(crate) fn merges(&self) -> &[(String, String)] {
        &self.merges
    }

    pub(crate) fn rules(&self) -> &WordRules {
        &self.rules
    }

    pub(crate) fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }
}

impl Encode for Bpe {
    fn kind(&self) -> &'static str {
        "BPE"
    }

    fn encode(&self, word: &str, out: &mut Vec<u32>) {
        if let Some(id) = self.whole.get(word.as_bytes()) {
            return out.push(*id);
        }
        let start = out.len();
        self.each_symbol(word, |id, _| out.push(id));
        self.merge(start, out);
    }

    /// Appends the tokens of `word`. Characters that are left out take no place, as in Hugging Face tokenizers.
    fn tokens(&self, word: &str, out: &mut Vec<Token>) {
        let mut ids = Vec::new();
        self.encode(word, &mut ids);
        if let (Some(_), &[id]) = (self.whole.get(word.as_bytes()), ids.as_slice()) {
            return out.push(Token { id, start: 0, end: word.len() });
        }
        self.place(word, &ids, out);
    }

    fn listed(&self) -> Option<&Vocabulary> {
        Some(&self.vocabulary)
    }

    fn unk_id(&self) -> Option<u32> {
        self.unk_id
    }

    /// Encodes part by part where the text may be cut before marks.
    fn encode_cached(&self, text: &str, place: Range<usize>, cache: &mut WordCache, out: &mut Vec<u32>) {
        let (mut from, end) = (place.start, place.end);
        let mut take = |place: Range<usize>| {
            let part = &text[place.clone()];
            cache.extend_within(text.as_bytes(), place, out, |out| self.encode(part, out));
        };
        if let Some(cuts) = self.mark_cuts {
            while end - from > SHORT_BYTES {
                let next = cuts.end(&text[..end], from, &[METASPACE], next_mark);
                take(from..next);
                from = next;
            }
        }
        if from < end {
            take(from..end);
        }
    }

    fn spells_bytes(&self) -> bool {
        self.alphabet == Alphabet::Bytes
    }

    fn falls_back_to_bytes(&self) -> bool {
        matches!(self.alphabet, Alphabet::Characters { byte_fallback: true, .. })
    }

    /// Appends the tokens of a word. At each step, each possible merge is left out if `drops` says so.
    ///
    /// # References
    /// Provilkov, Emelianenko, Voita 2020, <https://arxiv.org/abs/1910.13267>, algorithm 1.
    fn tokens_with_dropout(&self, word: &str, drops: &mut dyn FnMut() -> bool, out: &mut Vec<Token>) -> bool {
        let mut ids = Vec::new();
        self.each_symbol(word, |id, _| ids.push(id));
        self.merge_by_queue(0, &mut ids, drops);
        self.place(word, &ids, out);
        true
    }
}

#[cfg(test)]
mod tests;
