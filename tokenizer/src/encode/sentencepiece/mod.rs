//! SentencePiece's models, bit for bit: unigram by the best path over the whole text in single precision, BPE, words and
//! characters.

mod implied;
mod merge;
mod symbols;

use std::collections::HashMap;
use std::ops::Range;

use super::{DoubleArray, Edge, Encode, Token, WordCache};
use crate::FormatError;
use crate::pretokenize::{METASPACE, MarkCuts, next_mark};
use crate::sentencepiece::{ModelType, Piece, PieceKind, SentencePieceModel};
use crate::short_key::{SHORT_BYTES, short_key};
use crate::vocabulary::byte_token;
pub(crate) use implied::implied_merges;
use merge::{Candidate, characters, merge};
use symbols::PieceMerges;

/// The score of an unknown character, relative to the lowest score of a piece.
const UNKNOWN_PENALTY: f32 = 10.0;
/// The largest sum, of either sign. A larger one is subtracted from itself and from all open sums.
const RESET: f32 = 100_000.0;
const UNREACHED: u32 = u32::MAX;

/// Finds pieces as SentencePiece does.
///
/// Scores are added over the *whole* text in `f32`. Rounding errors grow with the text and decide between paths of nearly
/// equal score: splitting at spaces first, or adding in `f64`, sometimes gives other ids. When a sum exceeds [`RESET`], the
/// open sums restart from 0.
///
/// If no piece crosses a blank, a word depends on the text before it only through the sum of scores, and on this sum only
/// through rounding. If the best path of a word leads all others by more than any rounding error, the sum is not needed:
/// [`SentencePiece::sure_pieces`].
///
/// # References
/// Kudo 2018, <https://arxiv.org/abs/1804.10959>; SentencePiece 0.2.3, `unigram::Model::EncodeOptimized`.
pub(crate) struct SentencePiece {
    model: SentencePieceModel,
    trie: DoubleArray,
    /// For each key of the trie, the id and score of its piece.
    found: Vec<(u32, f32)>,
    /// The scores of the pieces, by id.
    scores: Vec<f32>,
    /// A bound on the score sum of a word of [`SHORT_BYTES`], of either sign; `None` where words cannot be encoded one
    /// by one.
    reach: Option<f32>,
    ids: DoubleArray,
    /// The pieces that BPE can merge into; empty for other models.
    merged: HashMap<String, Candidate>,
    /// The merges of BPE, where its pieces alone decide on them.
    merges: Option<PieceMerges>,
    /// The user-defined symbols.
    of_user: DoubleArray,
    unk_id: u32,
    unk_score: f32,
    bytes: Option<Box<[u32; 256]>>,
}

#[derive(Clone, Copy)]
struct Best {
    score: f32,
    start: u32,
    id: u32,
}

impl SentencePiece {
    /// Returns the model in a `.model` file.
    ///
    /// # Errors
    /// If a piece occurs twice, the unknown piece or a byte's piece is missing, or BPE pieces can be cut in too many places.
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
        let (mut keys, mut found, mut scores) = (Vec::new(), Vec::new(), vec![0.0; model.pieces.len()]);
        let mut min_score = f32::MAX;
        for (id, piece) in (0u32..).zip(&model.pieces) {
            let score = match piece.kind {
                PieceKind::Normal => piece.score,
                // These scores lie above every learned score, and a long symbol above several short ones.
                PieceKind::UserDefined => (0.1 * (piece.text.len() as f64 - 1.0)) as f32,
                _ => continue,
            };
            if piece.kind == PieceKind::Normal {
                min_score = min_score.min(score);
            }
            keys.push(piece.text.as_str());
            found.push((id, score));
            scores[id as usize] = score;
        }
        let trie = DoubleArray::new(&keys);
        let unk_score = min_score - UNKNOWN_PENALTY;
        let largest = scores.iter().fold(unk_score.abs(), |largest, score| largest.max(score.abs()));
        let over_blanks = |name: &&str| name.char_indices().any(|(at, c)| at > 0 && c == METASPACE);
        let cuts_at_blanks = model.model_type == ModelType::Unigram && !keys.iter().any(over_blanks);
        let reach = Some((SHORT_BYTES + 1) as f32 * largest).filter(|reach| cuts_at_blanks && *reach < RESET);
        let (mut merged, mut merges) = (HashMap::new(), None);
        if model.model_type == ModelType::Bpe {
            merges = PieceMerges::new(&model, &ids).map_err(|at| {
                refused(at, "the pieces up to this one can be cut in two in too many places")
            })?;
            merged = candidates(&model);
        }
        let is_of_user = |piece: &&Piece| piece.kind == PieceKind::UserDefined;
        let symbols: Vec<&str> = model.pieces.iter().filter(is_of_user).map(|p| p.text.as_str()).collect();
        let of_user = DoubleArray::new(&symbols);
        Ok(Self { trie, found, scores, reach, ids, merged, merges, of_user, unk_id, unk_score, bytes, model })
    }

    pub(crate) fn model(&self) -> &SentencePieceModel {
        &self.model
    }

    /// Appends the id of a piece. The ids of the text begin at `first` in `out`.
    fn push(&self, piece: &str, id: u32, first: usize, out: &mut Vec<u32>) {
        match &self.bytes {
            Some(bytes) if id == self.unk_id => out.extend(piece.bytes().map(|b| bytes[usize::from(b)])),
            // Unknown pieces in a row become one token.
            _ if id == self.unk_id && out[first..].last() == Some(&id) => {}
            _ => out.push(id),
        }
    }

    /// Whether the sum before a word is so small that no sum within the word, of up to [`SHORT_BYTES`], is reset. False
    /// where words cannot be encoded one by one.
    fn is_far_from_reset(&self, sum: f32) -> bool {
        self.reach.is_some_and(|reach| sum.abs() + reach <= RESET)
    }

    /// Returns the sum after these pieces.
    fn add(&self, sum: f32, ids: &[u32]) -> f32 {
        ids.iter().fold(sum, |sum, id| self.scores[*id as usize] + sum)
    }

    /// Appends the pieces of a word of at most [`SHORT_BYTES`] if they are the same after every sum that is far from a
    /// reset; else returns false.
    ///
    /// Sums of f32 below 2¹⁷ are rounded by at most 2⁻⁸. After n characters, the sum of any path is off by at most
    /// n·2⁻⁸. So a path is the one found if each of its steps leads the next best to the same place by more than n·2⁻⁷.
    fn sure_pieces(&self, word: &str, out: &mut Vec<u32>) -> bool {
        /// The exact sum, the lead over the second best, and the start and id of the last piece.
        type Step = (f64, f64, usize, u32);
        const NOWHERE: Step = (f64::NEG_INFINITY, 0.0, 0, 0);
        let mut steps = [NOWHERE; SHORT_BYTES + 1];
        let Some(steps) = steps.get_mut(..=word.len()) else { return false };
        steps[0].0 = 0.0;
        for (start, c) in word.char_indices() {
            let before = steps[start].0;
            self.tokens_from(word, start, c, |end, score, id| {
                let (sum, step) = (before + f64::from(score), &mut steps[end]);
                *step = match sum - step.0 {
                    by if by > 0.0 => (sum, by, start, id),
                    by => (step.0, step.1.min(-by), step.2, step.3),
                };
            });
        }
        let margin = word.len() as f64 / 128.0;
        let (first, mut end) = (out.len(), word.len());
        while end > 0 {
            let (_, lead, start, id) = steps[end];
            if !(lead > margin && id != self.unk_id) {
                out.truncate(first);
                return false;
            }
            out.push(id);
            end = start;
        }
        out[first..].reverse();
        true
    }

    /// Appends the ids of a word that stands after the score sum `sum`, and returns the sum after the word. The ids of
    /// the text begin at `first` in `out`.
    fn encode_after(&self, sum: f32, word: &str, first: usize, out: &mut Vec<u32>) -> f32 {
        let best = self.search(sum, word);
        self.each_on_path(&best, word.len(), |start, end, id| self.push(&word[start..end], id, first, out));
        best[word.len()].score
    }

    /// Appends a token. The tokens of the text begin at `first` in `out`. Of the byte tokens of unknown text, the last
    /// has the place of the text, and the others are empty places at its start.
    fn push_token(&self, text: &str, token: Token, first: usize, out: &mut Vec<Token>) {
        let Token { id, start, end } = token;
        match (&self.bytes, out[first..].last_mut()) {
            (Some(bytes), _) if id == self.unk_id => {
                let ids = text.as_bytes()[start..end].iter().map(|b| bytes[usize::from(*b)]);
                out.extend(ids.map(|id| Token { id, start, end: start }));
                if let Some(last) = out.last_mut() {
                    last.end = end;
                }
            }
            (_, Some(last)) if id == self.unk_id && last.id == id => last.end = end,
            _ => out.push(token),
        }
    }

    /// Passes the pieces of a normalized text to `take`, in order: start, end, id.
    fn each_piece(&self, text: &str, mut take: impl FnMut(usize, usize, u32)) {
        let mut look_up = |start: usize, end: usize| {
            take(start, end, self.id(&text[start..end]).unwrap_or(self.unk_id));
        };
        match self.model.model_type {
            ModelType::Unigram => self.each_on_path(&self.search(0.0, text), text.len(), take),
            ModelType::Bpe => match &self.merges {
                Some(merges) => {
                    merges.each(text, &self.model, &self.ids, &self.of_user, self.unk_id, take);
                }
                None => merge(text, &self.merged, &self.of_user, &mut || false, &mut look_up),
            },
            ModelType::Char => {
                characters(text, &self.of_user).for_each(|(start, end, _)| look_up(start, end));
            }
            ModelType::Word => {
                let mut start = 0;
                let cuts = text.match_indices(METASPACE).map(|(at, _)| at).filter(|at| *at > 0);
                for end in cuts.chain((!text.is_empty()).then_some(text.len())) {
                    look_up(start, end);
                    start = end;
                }
            }
        }
    }

    /// Passes the pieces of the best path to `end` to `take`, from the first to the last.
    fn each_on_path(&self, best: &[Best], mut end: usize, mut take: impl FnMut(usize, usize, u32)) {
        let mut path = Vec::new();
        while end > 0 {
            let Best { start, id, .. } = best[end];
            path.push((start as usize, end, id));
            end = start as usize;
        }
        path.into_iter().rev().for_each(|(start, end, id)| take(start, end, id));
    }

    fn search(&self, sum: f32, text: &str) -> Vec<Best> {
        let mut best = vec![Best { score: 0.0, start: UNREACHED, id: self.unk_id }; text.len() + 1];
        best[0].score = sum;
        let mut furthest = 0;
        for (start, c) in text.char_indices() {
            let so_far = start_anew(&mut best[start..=furthest.max(start)]);
            self.tokens_from(text, start, c, |end, score, id| {
                let total = score + so_far;
                furthest = furthest.max(end);
                if best[end].start == UNREACHED || total > best[end].score {
                    best[end] = Best { score: total, start: start as u32, id };
                }
            });
        }
        best
    }

    /// Proposes every token that begins at `start`, where the character `c` stands, with its end, score and id. The
    /// unknown token stands for a character that is no token.
    #[inline(always)]
    fn tokens_from(&self, text: &str, start: usize, c: char, mut propose: impl FnMut(usize, f32, u32)) {
        let mut is_known = false;
        self.trie.prefixes(&text.as_bytes()[start..], |length, key| {
            let (id, score) = self.found[key as usize];
            propose(start + length, score, id);
            is_known |= length == c.len_utf8();
        });
        if !is_known {
            propose(start + c.len_utf8(), self.unk_score, self.unk_id);
        }
    }
}

impl Encode for SentencePiece {
    fn kind(&self) -> &'static str {
        match self.model.model_type {
            ModelType::Unigram => "unigram",
            ModelType::Bpe => "BPE",
            ModelType::Word => "word",
            ModelType::Char => "char",
        }
    }

    fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let first = out.len();
        self.each_piece(text, |start, end, id| self.push(&text[start..end], id, first, out));
    }

    fn tokens(&self, text: &str, out: &mut Vec<Token>) {
        let first = out.len();
        self.each_piece(text, |start, end, id| self.push_token(text, Token { id, start, end }, first, out));
    }

    fn len(&self) -> usize {
        self.model.pieces.len()
    }

    fn token(&self, id: u32) -> Option<&str> {
        self.model.pieces.get(id as usize).map(|piece| piece.text.as_str())
    }

    fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(token.as_bytes())
    }

    fn unk_id(&self) -> Option<u32> {
        Some(self.unk_id)
    }

    /// Encodes word by word, each with the score sum of the words before it. Most words do not depend on that sum and
    /// are cached.
    fn encode_cached(&self, text: &str, place: Range<usize>, cache: &mut WordCache, out: &mut Vec<u32>) {
        // Where words cannot be encoded one by one, only the whole text gives the pieces.
        if self.reach.is_none() {
            let cuts = self.merges.as_ref().and_then(|merges| merges.cuts);
            return MarkCuts::each_part(cuts, text, place, |place| {
                let part = &text[place.clone()];
                cache.extend_within(text.as_bytes(), place, out, |out| self.encode(part, out));
            });
        }
        let (text, bytes) = (&text[place.clone()], &text.as_bytes()[place]);
        let (first, mut from, mut sum) = (out.len(), 0, 0.0);
        while from < bytes.len() {
            let (end, start) = (next_mark(text, from + 1), out.len());
            let mut is_known = false;
            if end - from <= SHORT_BYTES && self.is_far_from_reset(sum) {
                let key = short_key(bytes, from, end - from);
                is_known = cache.recall(key, out);
                if !is_known && self.sure_pieces(&text[from..end], out) {
                    cache.remember(key, &out[start..]);
                    is_known = true;
                }
            }
            sum = match is_known {
                true => self.add(sum, &out[start..]),
                false => self.encode_after(sum, &text[from..end], first, out),
            };
            from = end;
        }
    }

    fn surface(&self, id: u32) -> Option<&str> {
        let piece = self.model.pieces.get(id as usize)?;
        match piece.kind {
            PieceKind::Unknown => Some(&self.model.unk_surface),
            PieceKind::Control => None,
            _ => Some(&piece.text),
        }
    }

    fn falls_back_to_bytes(&self) -> bool {
        self.model.byte_fallback
    }

    fn edges(&self, text: &str) -> Option<Vec<Edge>> {
        if self.model.model_type != ModelType::Unigram {
            return None;
        }
        let mut edges = Vec::new();
        for (start, c) in text.char_indices() {
            self.tokens_from(text, start, c, |end, score, id| {
                edges.push(Edge { start, end, id: Some(id), score: score.into() });
            });
        }
        Some(edges)
    }

    fn tokens_of_path(&self, text: &str, path: &[Edge], out: &mut Vec<Token>) {
        let first = out.len();
        for &Edge { start, end, id, .. } in path {
            self.push_token(text, Token { id: id.unwrap_or(self.unk_id), start, end }, first, out);
        }
    }

    fn tokens_with_dropout(&self, text: &str, drops: &mut dyn FnMut() -> bool, out: &mut Vec<Token>) -> bool {
        if self.model.model_type != ModelType::Bpe {
            return false;
        }
        let first = out.len();
        merge(text, &self.merged, &self.of_user, drops, &mut |start, end| {
            let id = self.id(&text[start..end]).unwrap_or(self.unk_id);
            self.push_token(text, Token { id, start, end }, first, out);
        });
        true
    }
}

/// Returns the first of the open sums. If it is too large, it is subtracted from all of them, and 0 is returned.
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

/// The pieces that BPE merges can form.
fn candidates(model: &SentencePieceModel) -> HashMap<String, Candidate> {
    let kinds = [PieceKind::Normal, PieceKind::UserDefined, PieceKind::Unused];
    let found = (0u32..).zip(&model.pieces).filter(|(_, piece)| kinds.contains(&piece.kind));
    let candidate = |piece: &Piece| Candidate { score: piece.score, unused: piece.kind == PieceKind::Unused };
    found.map(|(_, piece)| (piece.text.clone(), candidate(piece))).collect()
}

#[cfg(test)]
mod tests;
