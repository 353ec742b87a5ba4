//! Byte-pair encoding: applies the merge of lowest rank first, wherever it is in the word.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Encode, LongestFirst, Merges, Token, WordCache};
use crate::byte_alphabet::{byte_to_char, char_to_byte};
use crate::pretokenize::{METASPACE, MarkCuts};
use crate::vocabulary::{Vocabulary, byte_token};

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

/// Words of more bytes than this are found faster by tables than by merging.
const FEW_BYTES: usize = 16;
/// The bytes of such words, for each token of the vocabulary, after which tables are made: that takes about as long as the merging so
/// far.
const MERGED_BYTES: usize = 16;

/// The number of merges that are read at a time.
const MERGES_AT_ONCE: usize = 64;

/// A byte-pair encoding: tokens and merges by rank.
///
/// # References
/// Sennrich, Haddow, Birch 2016, <https://arxiv.org/abs/1508.07909>.
#[derive(Debug)]
pub(crate) struct Bpe {
    vocabulary: Vocabulary,
    /// The two parts of each merge, by rank.
    merges: Vec<(u32, u32)>,
    alphabet: Alphabet,
    table: Merges,
    /// Ids of the tokens of single bytes: those of the alphabet, or those for byte fallback.
    bytes: Box<[Option<u32>; 256]>,
    unk_id: Option<u32>,
    rules: WordRules,
    mark_cuts: Option<MarkCuts>,
    /// The number of bytes of the longest token.
    longest: usize,
    /// The bytes of words of more than [`FEW_BYTES`] that were merged so far.
    merged_bytes: AtomicUsize,
    /// Tables that find tokens without merging, made once they are worth it; `None` if the model's rules do not allow them.
    longest_first: OnceLock<Option<Box<LongestFirst>>>,
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
        let merges = merges.into_iter().map(|(left, right)| (left.into(), right.into()));
        Self::with_rules(vocabulary, merges, alphabet, WordRules::default())
    }

    /// Returns a model with further rules.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn with_rules<'a>(
        vocabulary: Vocabulary,
        merges: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
        alphabet: Alphabet,
        rules: WordRules,
    ) -> Result<Self, BpeError> {
        let mut bytes = Box::new([None; 256]);
        for byte in 0..=255u8 {
            bytes[usize::from(byte)] = match &alphabet {
                Alphabet::Bytes => vocabulary.id(byte_to_char(byte).encode_utf8(&mut [0; 4])),
                Alphabet::Characters { byte_fallback: true, .. } => vocabulary.id(&byte_token(byte)),
                Alphabet::Characters { .. } => None,
            };
        }
        let mut unk_id = None;
        if let Alphabet::Characters { unk_token: Some(token), .. } = &alphabet {
            let id = vocabulary.id(token).ok_or_else(|| BpeError::MissingUnknown { token: token.clone() })?;
            unk_id = Some(id);
        }
        let table = Merges::default();
        let mut bpe = Self {
            vocabulary,
            merges: Vec::new(),
            alphabet,
            table,
            bytes,
            unk_id,
            rules,
            mark_cuts: None,
            longest: 0,
            merged_bytes: AtomicUsize::new(0),
            longest_first: OnceLock::new(),
        };
        bpe.longest = bpe.vocabulary.tokens().iter().map(String::len).max().unwrap_or(0);
        bpe.add_merges(merges)?;
        Ok(bpe)
    }

    fn add_merges<'a>(
        &mut self,
        mut merges: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    ) -> Result<(), BpeError> {
        let (mut cuts, mut token, mut made) = (self.mark_cuts_of_no_merge(), String::new(), Vec::new());
        let (mut ids, mut last) = (Vec::new(), 0);
        loop {
            let some: Vec<_> = merges.by_ref().take(MERGES_AT_ONCE).collect();
            if some.is_empty() {
                break;
            }
            let parts: Vec<&str> = some.iter().flat_map(|(left, right)| [&**left, &**right]).collect();
            self.vocabulary.ids_of(&parts, &mut ids);
            for ((left, right), two) in some.iter().zip(ids.chunks(2)) {
                let missing = |missing: &str| BpeError::MissingToken {
                    index: made.len(),
                    left: left.clone().into_owned(),
                    right: right.clone().into_owned(),
                    missing: missing.to_owned(),
                };
                token.clear();
                token.push_str(left);
                token.push_str(right.strip_prefix(&*self.rules.continuing_prefix).unwrap_or(right));
                // Merges into one token mostly follow each other, and those into the next one come next.
                let near = [last, last + 1].into_iter().find(|id| self.vocabulary.token(*id) == Some(&token));
                last = near.or_else(|| self.vocabulary.id(&token)).ok_or_else(|| missing(&token))?;
                let &[Some(left_id), Some(right_id)] = two else {
                    return Err(missing(if two[0].is_none() { left } else { right }));
                };
                made.push(last);
                self.merges.push((left_id, right_id));
                cuts = cuts.and_then(|cuts| self.without_marks_inside(cuts, &token));
            }
        }
        self.mark_cuts = cuts;
        // A pair listed twice keeps its last rank, as in Hugging Face's table.
        let ranked = self.merges.iter().zip(made).zip(0..).map(|((pair, made), rank)| (*pair, rank, made));
        self.table = Merges::new(ranked);
        Ok(())
    }

    /// Returns the marks (U+2581) before which a text may be cut without a change of its tokens; `None` if it must stay
    /// whole.
    pub(crate) fn mark_cuts(&self) -> Option<MarkCuts> {
        self.mark_cuts
    }

    /// Returns the cuts of a vocabulary without merges; `None` if a text must stay whole for another reason.
    fn mark_cuts_of_no_merge(&self) -> Option<MarkCuts> {
        let is_plain = self.alphabet != Alphabet::Bytes && self.rules == WordRules::default();
        let has_mark = || self.vocabulary.id(METASPACE.encode_utf8(&mut [0; 4])).is_some();
        (is_plain && has_mark()).then(MarkCuts::default)
    }

    /// Returns `cuts` without those that would cut a merged token; `None` if that cannot be told.
    fn without_marks_inside(&self, cuts: MarkCuts, token: &str) -> Option<MarkCuts> {
        // Few tokens have a mark behind another character.
        if !token.trim_start_matches(METASPACE).contains(METASPACE) {
            return Some(cuts);
        }
        let mut unknown: Vec<String> = (0..=255).map(byte_token).collect();
        unknown.extend(self.unk_id.and_then(|id| self.vocabulary.token(id)).map(str::to_owned));
        // The name of such a token does not end with the character that it stands for.
        let names_unknown = |(at, _)| unknown.iter().any(|unknown| token[..at].ends_with(unknown));
        // If unknown characters are left out, the characters on both sides of one can merge.
        let is_known = !self.drops_characters() && !token.match_indices(METASPACE).any(names_unknown);
        is_known.then(|| cuts.without_those_inside(token)).flatten()
    }

    /// Returns the id of the token that `word` is as a whole.
    fn whole(&self, word: &str) -> Option<u32> {
        match self.alphabet {
            _ if !self.rules.ignore_merges => None,
            Alphabet::Bytes if word.len() > self.longest => None,
            Alphabet::Bytes => self.vocabulary.id_of_bytes(word.as_bytes()),
            Alphabet::Characters { .. } => self.vocabulary.id(word),
        }
    }

    /// Whether no merge has a token as a part that stands for text which it does not spell.
    fn merges_spell_text(&self) -> bool {
        let fallback: Vec<u32> = match self.alphabet {
            Alphabet::Bytes => Vec::new(),
            Alphabet::Characters { .. } => self.bytes.iter().flatten().chain(&self.unk_id).copied().collect(),
        };
        let mut parts = self.merges.iter().flat_map(|(left, right)| [left, right]);
        self.rules.continuing_prefix.is_empty()
            && self.rules.word_suffix.is_empty()
            && (fallback.is_empty() || !parts.any(|part| fallback.contains(part)))
    }

    /// Appends the ids of `word` by tables, if they are worth it and find them.
    fn encode_longest_first(&self, word: &str, out: &mut Vec<u32>) -> bool {
        let tables = match self.longest_first.get() {
            Some(tables) => tables,
            None if word.len() <= FEW_BYTES => return false,
            None => {
                let merged = self.merged_bytes.fetch_add(word.len(), Ordering::Relaxed);
                if merged < MERGED_BYTES * self.vocabulary.len() {
                    return false;
                }
                self.longest_first.get_or_init(|| self.tables())
            }
        };
        let rank = |left, right| self.table.find(left, right).map(|merge| merge.0);
        tables.as_ref().is_some_and(|tables| tables.encode(word.as_bytes(), rank, out))
    }

    fn tables(&self) -> Option<Box<LongestFirst>> {
        if self.alphabet != Alphabet::Bytes || !self.merges_spell_text() {
            return None;
        }
        let bytes = self.vocabulary.tokens().iter().map(|token| {
            let bytes: Option<Vec<u8>> = token.chars().map(char_to_byte).collect();
            bytes.filter(|bytes| bytes.len() < 128).unwrap_or_default()
        });
        let rank = |left, right| self.table.find(left, right).map(|merge| merge.0);
        let merges =
            self.merges.iter().map(|pair| (*pair, self.table.find(pair.0, pair.1).map_or(0, |m| m.1)));
        Some(Box::new(LongestFirst::new(bytes.collect(), self.bytes.iter().flatten().copied(), merges, rank)))
    }

    /// Returns the id of the first symbol of a merged token.
    fn first_symbol(&self, token: u32) -> Option<u32> {
        let first = self.vocabulary.token(token)?.chars().next()?;
        self.vocabulary.id(first.encode_utf8(&mut [0; 4]))
    }

    /// Merges the symbols from `start` on.
    fn merge(&self, start: usize, out: &mut Vec<u32>) {
        let first = || self.merges_spell_text().then_some(|token| self.first_symbol(token));
        self.table.merge(start, out, first);
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
    pub(crate) fn merges(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        let token = |id: u32| self.vocabulary.token(id).unwrap_or_default();
        self.merges.iter().map(move |(left, right)| (token(*left), token(*right)))
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
        if let Some(id) = self.whole(word) {
            return out.push(id);
        }
        if self.encode_longest_first(word, out) {
            return;
        }
        let start = out.len();
        self.each_symbol(word, |id, _| out.push(id));
        self.merge(start, out);
    }

    /// Appends the tokens of `word`. Characters that are left out take no place, as in Hugging Face tokenizers.
    fn tokens(&self, word: &str, out: &mut Vec<Token>) {
        let mut ids = Vec::new();
        self.encode(word, &mut ids);
        if let (Some(id), 1) = (self.whole(word), ids.len()) {
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
        MarkCuts::each_part(self.mark_cuts, text, place, |place| {
            let part = &text[place.clone()];
            cache.extend_within(text.as_bytes(), place, out, |out| self.encode(part, out));
        });
    }

    fn spells_bytes(&self) -> bool {
        self.alphabet == Alphabet::Bytes
    }

    fn falls_back_to_bytes(&self) -> bool {
        matches!(self.alphabet, Alphabet::Characters { byte_fallback: true, .. })
    }

    fn drops_characters(&self) -> bool {
        self.unk_id.is_none() && !self.bytes.iter().all(Option::is_some)
    }

    /// Appends the tokens of a word. At each step, each possible merge is left out if `drops` says so.
    ///
    /// # References
    /// Provilkov, Emelianenko, Voita 2020, <https://arxiv.org/abs/1910.13267>, algorithm 1.
    fn tokens_with_dropout(&self, word: &str, drops: &mut dyn FnMut() -> bool, out: &mut Vec<Token>) -> bool {
        let mut ids = Vec::new();
        self.each_symbol(word, |id, _| ids.push(id));
        self.table.merge_by_queue(0, &mut ids, drops);
        self.place(word, &ids, out);
        true
    }
}

#[cfg(test)]
mod tests;
