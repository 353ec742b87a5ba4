//! The unigram language model: the segmentation with the highest total score, by the Viterbi algorithm over bytes.

use super::{DoubleArray, Edge, Encode, Token};
use crate::vocabulary::byte_token;

/// The score of an unknown character, relative to the lowest score of a piece, as in SentencePiece and HF tokenizers.
const UNKNOWN_PENALTY: f64 = 10.0;

/// A unigram model: pieces with log probabilities.
///
/// Scores are added in `f64` in text order, and ties go to the path found first, as in HF tokenizers, so that ids agree exactly.
pub(crate) struct Unigram {
    pieces: Vec<(String, f64)>,
    /// The scores of the pieces, close together in memory.
    scores: Vec<f64>,
    trie: DoubleArray,
    unknown_id: Option<u32>,
    unknown_score: f64,
    /// The ids of `<0x00>`…`<0xFF>`, where the model falls back to bytes.
    bytes: Option<Box<[u32; 256]>>,
}

#[derive(Clone, Copy)]
struct Best {
    score: f64,
    start: u32,
    id: u32,
}

const UNREACHED: u32 = u32::MAX;
const START: Best = Best { score: 0.0, start: UNREACHED, id: UNREACHED };
/// Words below this many bytes are segmented without an allocation.
const SHORT: usize = 40;

impl Unigram {
    /// Returns a model over these pieces; `None` if byte fallback is asked for and a byte's token is missing, or if
    /// `unknown_id` names no piece.
    pub(crate) fn new(
        pieces: Vec<(String, f64)>,
        unknown_id: Option<u32>,
        byte_fallback: bool,
    ) -> Option<Self> {
        let names: Vec<&str> = pieces.iter().map(|p| p.0.as_str()).collect();
        let trie = DoubleArray::new(&names);
        let mut bytes = None;
        if byte_fallback {
            let mut ids = Box::new([0; 256]);
            for byte in 0..=255_u8 {
                ids[byte as usize] = trie.get(byte_token(byte).as_bytes())?;
            }
            bytes = Some(ids);
        }
        if unknown_id.is_some_and(|id| id as usize >= pieces.len()) {
            return None;
        }
        let lowest = pieces.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        let scores = pieces.iter().map(|piece| piece.1).collect();
        Some(Self { unknown_score: lowest - UNKNOWN_PENALTY, pieces, scores, trie, unknown_id, bytes })
    }

    pub(crate) fn pieces(&self) -> &[(String, f64)] {
        &self.pieces
    }

    /// Passes the pieces of the best path to `take`, from the last to the first: start, end, and the id, or `None` for
    /// unknown text. Unknown characters in a row are one piece.
    fn walk_back(&self, text: &[u8], mut take: impl FnMut(usize, usize, Option<u32>)) {
        let (mut few, mut many);
        let best = if text.len() < SHORT {
            few = [START; SHORT];
            &mut few[..=text.len()]
        } else {
            many = vec![START; text.len() + 1];
            many.as_mut_slice()
        };
        self.search(text, best);
        let mut end = text.len();
        let mut unknown_end = None;
        while end > 0 {
            let step = best[end];
            if step.id == UNREACHED {
                unknown_end.get_or_insert(end);
            } else {
                if let Some(to) = unknown_end.take() {
                    take(end, to, None);
                }
                take(step.start as usize, end, Some(step.id));
            }
            end = step.start as usize;
        }
        if let Some(to) = unknown_end {
            take(0, to, None);
        }
    }

    /// Writes to `best`, for each byte at which a character ends, the last piece of the best path to it.
    fn search(&self, text: &[u8], best: &mut [Best]) {
        let mut at = 0;
        while at < text.len() {
            let so_far = best[at].score;
            let width = char_width(text[at]);
            let mut character_known = false;
            self.trie.prefixes(&text[at..], |length, id| {
                let score = self.scores[id as usize] + so_far;
                let target = &mut best[at + length];
                if target.start == UNREACHED || score > target.score {
                    *target = Best { score, start: at as u32, id };
                }
                character_known |= length == width;
            });
            if !character_known {
                let score = self.unknown_score + so_far;
                let target = &mut best[at + width];
                if target.start == UNREACHED || score > target.score {
                    *target = Best { score, start: at as u32, id: UNREACHED };
                }
            }
            at += width;
        }
    }
}

impl Encode for Unigram {
    fn kind(&self) -> &'static str {
        "unigram"
    }

    fn encode(&self, word: &str, out: &mut Vec<u32>) {
        let text = word.as_bytes();
        let first = out.len();
        self.walk_back(text, |start, end, id| match (id, &self.bytes) {
            (Some(id), _) => out.push(id),
            (None, Some(ids)) => out.extend(text[start..end].iter().rev().map(|&b| ids[b as usize])),
            (None, None) => out.extend(self.unknown_id),
        });
        out[first..].reverse();
    }

    /// Appends the tokens of `word`. The byte tokens of a stretch of unknown text all have the place of the stretch.
    fn tokens(&self, word: &str, out: &mut Vec<Token>) {
        let text = word.as_bytes();
        let first = out.len();
        self.walk_back(text, |start, end, id| {
            let mut push = |id| out.push(Token { id, start, end });
            match (id, &self.bytes) {
                (Some(id), _) => push(id),
                (None, Some(ids)) => text[start..end].iter().rev().for_each(|&b| push(ids[b as usize])),
                (None, None) => self.unknown_id.into_iter().for_each(push),
            }
        });
        out[first..].reverse();
    }

    fn len(&self) -> usize {
        self.pieces.len()
    }

    fn token(&self, id: u32) -> Option<&str> {
        self.pieces.get(id as usize).map(|piece| piece.0.as_str())
    }

    fn id(&self, token: &str) -> Option<u32> {
        self.trie.get(token.as_bytes())
    }

    fn unk_id(&self) -> Option<u32> {
        self.unknown_id
    }

    fn falls_back_to_bytes(&self) -> bool {
        self.bytes.is_some()
    }

    /// Returns the edges of `word`. Those of unknown characters have no id.
    fn edges(&self, word: &str) -> Option<Vec<Edge>> {
        let (text, mut edges) = (word.as_bytes(), Vec::new());
        for (start, c) in word.char_indices() {
            let mut character_known = false;
            self.trie.prefixes(&text[start..], |length, id| {
                edges.push(Edge {
                    start,
                    end: start + length,
                    id: Some(id),
                    score: self.scores[id as usize],
                });
                character_known |= length == c.len_utf8();
            });
            if !character_known {
                edges.push(Edge { start, end: start + c.len_utf8(), id: None, score: self.unknown_score });
            }
        }
        Some(edges)
    }

    fn tokens_of_path(&self, word: &str, path: &[Edge], out: &mut Vec<Token>) {
        for edges in path.chunk_by(|a, b| a.id.is_none() && b.id.is_none()) {
            let (start, end) = (edges[0].start, edges[edges.len() - 1].end);
            let mut push = |id| out.push(Token { id, start, end });
            match (edges[0].id, &self.bytes) {
                (Some(id), _) => push(id),
                (None, Some(ids)) => word[start..end].bytes().for_each(|b| push(ids[usize::from(b)])),
                (None, None) => self.unknown_id.into_iter().for_each(push),
            }
        }
    }
}

/// Returns the length in bytes of the UTF-8 character that starts with this byte.
#[inline]
fn char_width(first: u8) -> usize {
    match first {
        0..=0x7F => 1,
        0x80..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn model(pieces: &[(&str, f64)], bytes: bool) -> Unigram {
        let mut all = vec![("<unk>".to_owned(), 0.0)];
        all.extend(pieces.iter().map(|&(p, s)| (p.to_owned(), s)));
        if bytes {
            all.extend((0..=255).map(|b| (byte_token(b), -1000.0)));
        }
        Unigram::new(all, Some(0), bytes).unwrap()
    }

    fn encode(model: &Unigram, word: &str) -> Vec<String> {
        let mut ids = vec![];
        model.encode(word, &mut ids);
        ids.iter().map(|&id| model.pieces()[id as usize].0.clone()).collect()
    }

    #[test]
    fn unknown_characters_become_one_unknown_or_their_bytes() {
        let pieces = [("a", -1.0), ("b", -2.0), ("ab", -2.5)];
        assert_eq!(encode(&model(&pieces, false), "abéüa"), ["ab", "<unk>", "a"]);
        assert_eq!(encode(&model(&pieces, true), "éab"), ["<0xC3>", "<0xA9>", "ab"]);
        assert_eq!(encode(&model(&pieces, false), "é"), ["<unk>"]);
        assert!(encode(&model(&pieces, false), "").is_empty());
    }

    /// Returns the score of every segmentation of `word` into pieces, as an oracle.
    fn all_scores(pieces: &[(&str, f64)], word: &str) -> Vec<f64> {
        if word.is_empty() {
            return vec![0.0];
        }
        let starts = pieces.iter().filter(|(p, _)| word.starts_with(p));
        starts
            .flat_map(|(p, s)| all_scores(pieces, &word[p.len()..]).into_iter().map(move |rest| rest + s))
            .collect()
    }

    proptest! {
        #[test]
        fn the_segmentation_found_has_the_highest_score(word in "[ab]{1,9}", scores in prop::array::uniform6(-9.0..-0.1)) {
            let names = ["a", "b", "ab", "ba", "aab", "bab"];
            let pieces: Vec<(&str, f64)> = names.into_iter().zip(scores).collect();
            let model = model(&pieces, false);
            let found: f64 = encode(&model, &word).iter().map(|p| pieces.iter().find(|q| q.0 == p).unwrap().1).sum();
            let best = all_scores(&pieces, &word).into_iter().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!((found - best).abs() < 1e-9, "{} against {}", found, best);
        }
    }
}
