//! Byte-pair encoding: applies the merge of lowest rank first, wherever it is in the word.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::BuildHasherDefault;

use super::{Token, WordHasher};
use crate::pretokenize::byte_to_char;
use crate::vocabulary::Vocabulary;

/// The symbols of a word before the first merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Bytes, each written as GPT-2's printable character.
    Bytes,
    /// Characters.
    Characters {
        /// What stands for a character outside the vocabulary; without it such characters are left out.
        unk_token: Option<String>,
        /// Whether unknown characters that touch are one unknown.
        fuse_unk: bool,
        /// Whether an unknown character becomes its bytes, `<0x00>` to `<0xFF>`, if the vocabulary has them.
        byte_fallback: bool,
    },
}

/// Why a vocabulary and merges are inconsistent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BpeError {
    /// A merge whose parts or result are not tokens.
    #[error("merge {index} ({left:?} + {right:?}) needs the token {missing:?}, which the vocabulary lacks")]
    MissingToken {
        /// Its place in the list, from 0.
        index: usize,
        /// Its left part.
        left: String,
        /// Its right part.
        right: String,
        /// What is missing.
        missing: String,
    },
    /// A special role is given to a token that is not there.
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
    ranks: HashMap<u64, (u32, u32), BuildHasherDefault<WordHasher>>,
    /// Ids of single bytes: the alphabet's own, or the ones fallen back to.
    bytes: Box<[Option<u32>; 256]>,
    unk_id: Option<u32>,
}

/// Up to this many symbols, the best merge is found by linear search; above, by a queue.
const SHORT: usize = 48;

fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

impl Bpe {
    /// A model from tokens and merges, most urgent merge first.
    ///
    /// # Errors
    /// If a merge speaks of tokens that are not there, or the unknown token is not.
    pub(crate) fn new(
        vocabulary: Vocabulary,
        merges: Vec<(String, String)>,
        alphabet: Alphabet,
    ) -> Result<Self, BpeError> {
        let mut ranks = HashMap::with_capacity_and_hasher(merges.len(), BuildHasherDefault::default());
        for (index, (left, right)) in merges.iter().enumerate() {
            let id = |token: &str| {
                vocabulary.id(token).ok_or_else(|| BpeError::MissingToken {
                    index,
                    left: left.clone(),
                    right: right.clone(),
                    missing: token.to_owned(),
                })
            };
            let merged = id(&format!("{left}{right}"))?;
            // A pair listed twice keeps its last rank, as in Hugging Face's table.
            ranks.insert(pair(id(left)?, id(right)?), (index as u32, merged));
        }
        let mut bytes = Box::new([None; 256]);
        let mut unk_id = None;
        for byte in 0..=255u8 {
            bytes[usize::from(byte)] = match &alphabet {
                Alphabet::Bytes => vocabulary.id(byte_to_char(byte).encode_utf8(&mut [0; 4])),
                Alphabet::Characters { byte_fallback: true, .. } => vocabulary.id(&super::byte_token(byte)),
                Alphabet::Characters { .. } => None,
            };
        }
        if let Alphabet::Characters { unk_token: Some(token), .. } = &alphabet {
            let id = vocabulary.id(token).ok_or_else(|| BpeError::MissingUnknown { token: token.clone() })?;
            unk_id = Some(id);
        }
        Ok(Self { vocabulary, merges, alphabet, ranks, bytes, unk_id })
    }

    /// Appends the ids of a word to `out`.
    pub(crate) fn encode(&self, word: &str, out: &mut Vec<u32>) {
        let start = out.len();
        self.each_symbol(word, |id, _| out.extend(id));
        if out.len() - start > SHORT {
            self.merge_by_queue(start, out)
        } else {
            self.merge_by_scan(start, out)
        }
    }

    /// What `word` is before the first merge: ids with the bytes they stand for; no id for more of the unknown before.
    #[inline]
    fn each_symbol(&self, word: &str, mut take: impl FnMut(Option<u32>, usize)) {
        let Alphabet::Characters { fuse_unk, .. } = self.alphabet else {
            let ids = word.bytes().filter_map(|byte| self.bytes[usize::from(byte)]);
            return ids.for_each(|id| take(Some(id), 1));
        };
        let mut follows_unknown = false;
        for c in word.chars() {
            let mut buffer = [0; 4];
            let text: &str = c.encode_utf8(&mut buffer);
            let known = self.vocabulary.id(text);
            let fallen_back = known.is_none() && text.bytes().all(|b| self.bytes[usize::from(b)].is_some());
            match (known, self.unk_id) {
                (Some(id), _) => take(Some(id), text.len()),
                (None, _) if fallen_back => {
                    text.bytes().for_each(|b| take(self.bytes[usize::from(b)], 1));
                }
                (None, Some(_)) if fuse_unk && follows_unknown => take(None, text.len()),
                (None, Some(unk)) => take(Some(unk), text.len()),
                (None, None) => {}
            }
            follows_unknown = known.is_none() && !fallen_back;
        }
    }

    /// The same with the places of the tokens. Characters that are left out take no place, as in tokenizers.
    pub(crate) fn tokens(&self, word: &str, out: &mut Vec<Token>) {
        let mut ids = Vec::new();
        self.encode(word, &mut ids);
        let mut symbols: Vec<(u32, usize)> = Vec::new();
        self.each_symbol(word, |id, length| match (id, symbols.last_mut()) {
            (Some(id), _) => symbols.push((id, length)),
            (None, Some(last)) => last.1 += length,
            (None, None) => {}
        });
        let (mut at, mut start) = (0, 0);
        for id in ids {
            let is_merged = symbols.get(at).is_some_and(|symbol| symbol.0 != id);
            // Only characters that have tokens merge.
            let count =
                if is_merged { self.vocabulary.token(id).map_or(1, |t| t.chars().count()) } else { 1 };
            let end = start + symbols.iter().skip(at).take(count).map(|symbol| symbol.1).sum::<usize>();
            out.push(Token { id, start, end });
            (at, start) = (at + count, end);
        }
    }

    /// Merges the symbols from `start` on by looking for the lowest rank each time, leftmost first.
    fn merge_by_scan(&self, start: usize, out: &mut Vec<u32>) {
        const NEVER: (u32, u32) = (u32::MAX, 0);
        let mut merges = [NEVER; SHORT];
        let merge_at = |symbols: &[u32], at: usize| match symbols.get(at..at + 2) {
            Some(two) => self.ranks.get(&pair(two[0], two[1])).copied().unwrap_or(NEVER),
            None => NEVER,
        };
        let mut count = out.len() - start;
        for (at, merge) in merges.iter_mut().enumerate().take(count) {
            *merge = merge_at(&out[start..], at);
        }
        while let Some((at, merge)) = (0..count).map(|i| (i, merges[i])).min_by_key(|(_, merge)| merge.0) {
            if merge.0 == NEVER.0 {
                break;
            }
            out[start + at] = merge.1;
            out.remove(start + at + 1);
            merges.copy_within(at + 2..count, at + 1);
            count -= 1;
            merges[at] = merge_at(&out[start..], at);
            if at > 0 {
                merges[at - 1] = merge_at(&out[start..], at - 1);
            }
        }
    }

    /// The same with a queue over a linked list: n log n, for words without end.
    fn merge_by_queue(&self, start: usize, out: &mut Vec<u32>) {
        const GONE: u32 = u32::MAX;
        let mut symbols = out.split_off(start);
        let count = symbols.len();
        let mut next: Vec<usize> = (1..=count).collect();
        let mut previous: Vec<usize> = (0..count).map(|i| i.wrapping_sub(1)).collect();
        let mut queue = BinaryHeap::new();
        let propose = |symbols: &[u32], left: usize, right: usize, queue: &mut BinaryHeap<_>| {
            let Some((&a, &b)) = symbols.get(left).zip(symbols.get(right)) else { return };
            if let Some(&(rank, merged)) = self.ranks.get(&pair(a, b)) {
                queue.push(Reverse((rank, left, a, b, merged)));
            }
        };
        for left in 0..count {
            propose(&symbols, left, left + 1, &mut queue);
        }
        while let Some(Reverse((_, left, a, b, merged))) = queue.pop() {
            let right = next[left];
            // A proposal is stale once one of its symbols has merged with another.
            if symbols[left] != a || symbols.get(right) != Some(&b) {
                continue;
            }
            symbols[left] = merged;
            symbols[right] = GONE;
            next[left] = next[right];
            if let Some(back) = previous.get_mut(next[right]) {
                *back = left;
            }
            propose(&symbols, left, next[left], &mut queue);
            propose(&symbols, previous[left], left, &mut queue);
        }
        out.extend(symbols.into_iter().filter(|id| *id != GONE));
    }

    /// The id of the unknown token, if there is one.
    pub(crate) fn unk_id(&self) -> Option<u32> {
        self.unk_id
    }

    /// Whether `<0x00>` to `<0xFF>` stand for the bytes of unknown characters.
    pub(crate) fn falls_back_to_bytes(&self) -> bool {
        matches!(self.alphabet, Alphabet::Characters { byte_fallback: true, .. })
    }

    /// The tokens.
    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The merges, most urgent first.
    pub(crate) fn merges(&self) -> &[(String, String)] {
        &self.merges
    }

    /// What words are made of.
    pub(crate) fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn merges_are_applied_by_rank() {
        let vocabulary = Vocabulary::new(["h", "e", "y", "he"].map(str::to_owned).to_vec()).unwrap();
        let bpe = Bpe::new(vocabulary, vec![("h".into(), "e".into())], Alphabet::Bytes).unwrap();
        let mut ids = Vec::new();
        bpe.encode("hey", &mut ids);
        assert_eq!(ids, [3, 2]);
    }

    /// The definition: while any two neighbors can merge, merge the pair of lowest rank, leftmost first.
    fn by_definition(bpe: &Bpe, word: &str) -> Vec<String> {
        let mut symbols: Vec<String> = word.chars().map(String::from).collect();
        loop {
            let rank =
                |i: usize| bpe.merges.iter().position(|(l, r)| *l == symbols[i] && *r == symbols[i + 1]);
            let best = (0..symbols.len().saturating_sub(1)).filter_map(|i| Some((rank(i)?, i))).min();
            let Some((_, at)) = best else { return symbols };
            let right = symbols.remove(at + 1);
            symbols[at].push_str(&right);
        }
    }

    /// A random but well-formed table of merges over a, b, c.
    fn table(picks: &[(usize, usize)]) -> Bpe {
        let mut tokens: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        let mut merges: Vec<(String, String)> = Vec::new();
        for (left, right) in picks {
            let two = (tokens[left % tokens.len()].clone(), tokens[right % tokens.len()].clone());
            let merged = format!("{}{}", two.0, two.1);
            if !merges.contains(&two) && merged.len() < 9 {
                if !tokens.contains(&merged) {
                    tokens.push(merged);
                }
                merges.push(two);
            }
        }
        Bpe::new(Vocabulary::new(tokens).unwrap(), merges, Alphabet::Bytes).unwrap()
    }

    proptest! {
        #[test]
        fn both_ways_of_merging_equal_the_definition(picks: Vec<(usize, usize)>, word in "[abc]{0,48}") {
            let bpe = table(&picks);
            let want: Vec<u32> = by_definition(&bpe, &word).iter().map(|t| bpe.vocabulary.id(t).unwrap()).collect();
            let symbols: Vec<u32> = word.bytes().filter_map(|b| bpe.bytes[usize::from(b)]).collect();
            let mut scanned = [&[7], symbols.as_slice()].concat();
            let mut queued = scanned.clone();
            bpe.merge_by_scan(1, &mut scanned);
            bpe.merge_by_queue(1, &mut queued);
            prop_assert_eq!(&scanned[1..], &want);
            prop_assert_eq!(&queued[1..], &want);
        }
    }

    #[test]
    fn a_megabyte_without_a_blank_is_encoded() {
        let bpe = table(&[(0, 0), (3, 3), (4, 4)]);
        let mut ids = Vec::new();
        bpe.encode(&"a".repeat(1 << 20), &mut ids);
        assert_eq!(ids, vec![bpe.vocabulary.id("aaaaaaaa").unwrap(); 1 << 17]);
    }

    fn characters(byte_fallback: bool, fuse_unk: bool) -> Vec<u32> {
        let mut tokens = vec!["<unk>".to_owned(), "a".to_owned()];
        tokens.extend((0..=255).map(crate::encode::byte_token));
        let alphabet = Alphabet::Characters { unk_token: Some("<unk>".to_owned()), fuse_unk, byte_fallback };
        let bpe = Bpe::new(Vocabulary::new(tokens).unwrap(), Vec::new(), alphabet).unwrap();
        let mut ids = Vec::new();
        bpe.encode("aéüa", &mut ids);
        ids
    }

    #[test]
    fn unknown_characters_become_unknowns_or_bytes() {
        assert_eq!(characters(false, false), [1, 0, 0, 1]);
        assert_eq!(characters(false, true), [1, 0, 1]);
        assert_eq!(characters(true, false), [1, 2 + 0xC3, 2 + 0xA9, 2 + 0xC3, 2 + 0xBC, 1]);
    }

    #[test]
    fn merges_that_do_not_fit_the_vocabulary_are_refused() {
        let vocabulary = Vocabulary::new(vec!["a".to_owned(), "b".to_owned()]).unwrap();
        let refused =
            Bpe::new(vocabulary.clone(), vec![("a".into(), "b".into())], Alphabet::Bytes).unwrap_err();
        assert!(refused.to_string().contains("\"ab\""));
        let unk = Alphabet::Characters { unk_token: Some("?".into()), fuse_unk: false, byte_fallback: false };
        assert!(matches!(Bpe::new(vocabulary, vec![], unk), Err(BpeError::MissingUnknown { .. })));
    }
}
