//! SentencePiece's models, bit for bit: unigram by the best path over the whole text in single precision, BPE, words and
//! characters.

use std::collections::HashMap;

use super::sentencepiece_merge::{Candidate, characters, merge};
use super::{DoubleArray, Token, byte_token};
use crate::format::FormatError;
use crate::format::sentencepiece::{ModelType, Piece, PieceKind, SentencePieceModel};
use crate::tokenizer::BLANK;

/// Score of an unknown character below that of the worst piece.
const UNKNOWN_PENALTY: f32 = 10.0;
/// A sum beyond this, of either sign, is taken from itself and from all that are open.
const RESET: f32 = 100_000.0;
const UNREACHED: u32 = u32::MAX;

/// Finds pieces as SentencePiece does.
///
/// Scores add up over the *whole* text in `f32`. Rounding then grows with the text, and decides between paths of
/// nearly equal score: cutting at spaces first, or adding in `f64`, gives other ids now and then. Where a sum passes
/// [`RESET`] the sums around it start anew from nought.
///
/// # References
/// Kudo 2018, <https://arxiv.org/abs/1804.10959>; SentencePiece 0.2.3, `unigram::Model::EncodeOptimized`.
pub(crate) struct SentencePiece {
    model: SentencePieceModel,
    trie: DoubleArray,
    /// For each key of the trie: its piece's id and score.
    found: Vec<(u32, Score)>,
    ids: DoubleArray,
    /// What BPE merges into; empty for the others.
    merged: HashMap<String, Candidate>,
    /// The user's symbols.
    of_user: DoubleArray,
    unk_id: u32,
    unk_score: f32,
    bytes: Option<Box<[u32; 256]>>,
}

#[derive(Clone, Copy)]
enum Score {
    Learned(f32),
    OfUser,
}

#[derive(Clone, Copy)]
struct Best {
    score: f32,
    start: u32,
    id: u32,
}

impl SentencePiece {
    /// # Errors
    /// If a piece occurs twice, or the unknown piece or a byte's piece is missing.
    pub(crate) fn new(model: SentencePieceModel) -> Result<Self, FormatError> {
        let refused = |at: usize, reason: &'static str| {
            FormatError::malformed("SentencePiece .model", at as u64, reason)
        };
        let names: Vec<&str> = model.pieces.iter().map(|p| p.text.as_str()).collect();
        let mut seen = std::collections::HashSet::new();
        if let Some(at) = names.iter().position(|name| !seen.insert(*name)) {
            return Err(refused(at, "this piece occurs a second time"));
        }
        let unknown = model.pieces.iter().position(|p| p.kind == PieceKind::Unknown);
        let unk_id = unknown.ok_or_else(|| refused(0, "it has no piece of type unknown"))? as u32;
        let ids = DoubleArray::new(&names);
        let mut bytes = None;
        if model.byte_fallback {
            let mut table = Box::new([0; 256]);
            for byte in 0..=255u8 {
                let id = ids.get(byte_token(byte).as_bytes());
                table[usize::from(byte)] =
                    id.ok_or_else(|| refused(0, "byte_fallback needs <0x00> to <0xFF>"))?;
            }
            bytes = Some(table);
        }
        let (mut keys, mut found) = (Vec::new(), Vec::new());
        let mut min_score = f32::MAX;
        for (id, piece) in (0u32..).zip(&model.pieces) {
            let score = match piece.kind {
                PieceKind::Normal => Score::Learned(piece.score),
                PieceKind::UserDefined => Score::OfUser,
                _ => continue,
            };
            if piece.kind == PieceKind::Normal {
                min_score = min_score.min(piece.score);
            }
            keys.push(piece.text.as_str());
            found.push((id, score));
        }
        let trie = DoubleArray::new(&keys);
        let unk_score = min_score - UNKNOWN_PENALTY;
        let merged = if model.model_type == ModelType::Bpe { candidates(&model) } else { HashMap::new() };
        let is_of_user = |piece: &&Piece| piece.kind == PieceKind::UserDefined;
        let symbols: Vec<&str> = model.pieces.iter().filter(is_of_user).map(|p| p.text.as_str()).collect();
        let of_user = DoubleArray::new(&symbols);
        Ok(Self { trie, found, ids, merged, of_user, unk_id, unk_score, bytes, model })
    }

    pub(crate) fn model(&self) -> &SentencePieceModel {
        &self.model
    }

    pub(crate) fn id(&self, piece: &str) -> Option<u32> {
        self.ids.get(piece.as_bytes())
    }

    pub(crate) fn unk_id(&self) -> u32 {
        self.unk_id
    }

    /// Appends the ids of a normalised text to `out`.
    pub(crate) fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let first = out.len();
        self.each_piece(text, |start, end, id| match &self.bytes {
            Some(bytes) if id == self.unk_id => {
                out.extend(text.as_bytes()[start..end].iter().map(|b| bytes[usize::from(*b)]));
            }
            // Unknowns that touch are one.
            _ if id == self.unk_id && out[first..].last() == Some(&id) => {}
            _ => out.push(id),
        });
    }

    /// The same with the places of the tokens; of the bytes of unknown text the last has its place, the others its start.
    pub(crate) fn tokens(&self, text: &str, out: &mut Vec<Token>) {
        let first = out.len();
        self.each_piece(text, |start, end, id| match (&self.bytes, out[first..].last_mut()) {
            (Some(bytes), _) if id == self.unk_id => {
                let ids = text.as_bytes()[start..end].iter().map(|b| bytes[usize::from(*b)]);
                out.extend(ids.map(|id| Token { id, start, end: start }));
                if let Some(last) = out.last_mut() {
                    last.end = end;
                }
            }
            (_, Some(last)) if id == self.unk_id && last.id == id => last.end = end,
            _ => out.push(Token { id, start, end }),
        });
    }

    /// The pieces of a normalised text in order: start, end, id.
    fn each_piece(&self, text: &str, mut take: impl FnMut(usize, usize, u32)) {
        let mut look_up = |start: usize, end: usize| {
            take(start, end, self.id(&text[start..end]).unwrap_or(self.unk_id));
        };
        match self.model.model_type {
            ModelType::Unigram => {
                self.best_path(text).into_iter().rev().for_each(|(s, e, id)| take(s, e, id))
            }
            ModelType::Bpe => merge(text, &self.merged, &self.of_user, &mut look_up),
            ModelType::Char => {
                characters(text, &self.of_user).for_each(|(start, end, _)| look_up(start, end));
            }
            ModelType::Word => {
                let mut start = 0;
                let cuts = text.match_indices(BLANK).map(|(at, _)| at).filter(|at| *at > 0);
                for end in cuts.chain((!text.is_empty()).then_some(text.len())) {
                    look_up(start, end);
                    start = end;
                }
            }
        }
    }

    /// The pieces of the best path, the last one first.
    fn best_path(&self, text: &str) -> Vec<(usize, usize, u32)> {
        let best = self.search(text);
        let mut path = Vec::new();
        let mut end = text.len();
        while end > 0 {
            let Best { start, id, .. } = best[end];
            path.push((start as usize, end, id));
            end = start as usize;
        }
        path
    }

    fn search(&self, text: &str) -> Vec<Best> {
        let mut best = vec![Best { score: 0.0, start: UNREACHED, id: self.unk_id }; text.len() + 1];
        let mut furthest = 0;
        for (start, c) in text.char_indices() {
            let so_far = start_anew(&mut best[start..=furthest.max(start)]);
            let mut propose = |end: usize, score: f32, id: u32| {
                let total = score + so_far;
                furthest = furthest.max(end);
                if best[end].start == UNREACHED || total > best[end].score {
                    best[end] = Best { score: total, start: start as u32, id };
                }
            };
            let mut is_known = false;
            self.trie.prefixes(&text.as_bytes()[start..], |length, key| {
                let (id, score) = self.found[key as usize];
                let score = match score {
                    Score::Learned(score) => score,
                    // Above every learned score, and one long symbol above several short ones.
                    Score::OfUser => (0.1 * (length as f64 - 1.0)) as f32,
                };
                propose(start + length, score, id);
                is_known |= length == c.len_utf8();
            });
            if !is_known {
                propose(start + c.len_utf8(), self.unk_score, self.unk_id);
            }
        }
        best
    }
}

/// The sum of the first of the open places, which `open` holds, after taking it from all if it has grown too large.
fn start_anew(open: &mut [Best]) -> f32 {
    let offset = open[0].score;
    if offset.abs() <= RESET {
        return offset;
    }
    for (at, best) in open.iter_mut().enumerate() {
        if at == 0 || best.start != UNREACHED {
            best.score -= offset;
        }
    }
    0.0
}

/// The pieces that BPE merges into.
fn candidates(model: &SentencePieceModel) -> HashMap<String, Candidate> {
    let kinds = [PieceKind::Normal, PieceKind::UserDefined, PieceKind::Unused];
    let found = (0u32..).zip(&model.pieces).filter(|(_, piece)| kinds.contains(&piece.kind));
    let candidate = |piece: &Piece| Candidate { score: piece.score, unused: piece.kind == PieceKind::Unused };
    found.map(|(_, piece)| (piece.text.clone(), candidate(piece))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(byte_fallback: bool, text: &str) -> Vec<u32> {
        let piece = |text: &str, score, kind| Piece { text: text.to_owned(), score, kind };
        let mut pieces = vec![
            piece("<unk>", 0.0, PieceKind::Unknown),
            piece("a", -1.0, PieceKind::Normal),
            piece("b", -1.0, PieceKind::Normal),
            piece("ab", -1.5, PieceKind::Normal),
            piece("bb", -0.1, PieceKind::Unused),
            piece("aba", -99.0, PieceKind::UserDefined),
        ];
        pieces.extend((0..=255).map(|b| piece(&byte_token(b), 0.0, PieceKind::Byte)));
        let mut model = SentencePieceModel::new(pieces, ModelType::Unigram);
        model.byte_fallback = byte_fallback;
        let mut ids = Vec::new();
        SentencePiece::new(model).unwrap().encode(text, &mut ids);
        ids
    }

    #[test]
    fn kinds_of_pieces_are_told_apart() {
        assert_eq!(encode(false, "abb"), [3, 2], "an unused piece is not found");
        assert_eq!(encode(false, "aba"), [5], "a user's symbol is, whatever its score");
        assert_eq!(encode(false, "<unk>a"), [0, 1], "nor is the name of a special piece: its characters are");
        assert_eq!(encode(false, "aéüb"), [1, 0, 2], "unknowns that touch are one");
        assert_eq!(encode(true, "éa"), [6 + 0xC3, 6 + 0xA9, 1]);
        assert!(encode(true, "").is_empty());
    }
}
