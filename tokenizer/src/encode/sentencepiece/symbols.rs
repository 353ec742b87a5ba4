//! SentencePiece's BPE over numbered symbols, which gives the pieces of [`super::merge`] in a fraction of its time and memory.

use rustc_hash::FxHashMap;

use super::implied::each_cut;
use super::merge::characters;
use crate::encode::{DoubleArray, Merges};
use crate::pretokenize::{METASPACE, MarkCuts};
use crate::sentencepiece::{PieceKind, SentencePieceModel};

/// Marks the symbol of a user-defined piece that stands in the text, which never merges.
const OF_USER: u32 = 1 << 31;
/// A character that is part of no piece.
const OUTSIDE: u32 = OF_USER - 1;

/// The merges that the pieces of a model allow. The symbol of a piece is its id.
pub(super) struct PieceMerges {
    merges: Merges,
    /// The symbols of characters: of those that are no piece but part of one, numbers after the ids.
    characters: FxHashMap<char, u32>,
    /// The marks before which a text may be cut; `None` if it must stay whole.
    pub(super) cuts: Option<MarkCuts>,
}

impl PieceMerges {
    /// Returns the merges; `None` if there are unused pieces, which are cut up again as the last merge in the whole text made them.
    ///
    /// # Errors
    /// The number of a piece, if the pieces up to it can be cut in two in too many places.
    pub(super) fn new(model: &SentencePieceModel, ids: &DoubleArray) -> Result<Option<Self>, usize> {
        let kinds = [PieceKind::Normal, PieceKind::UserDefined, PieceKind::Unused];
        let is_made = |at: &usize| kinds.contains(&model.pieces[*at].kind);
        let mut made: Vec<usize> = (0..model.pieces.len()).filter(is_made).collect();
        made.sort_by(|&a, &b| (model.pieces[b].score + 0.0).total_cmp(&(model.pieces[a].score + 0.0)));
        let mut texts: Vec<&str> = model.pieces.iter().map(|piece| piece.text.as_str()).collect();
        let mut known = FxHashMap::default();
        for &piece in &made {
            let text = model.pieces[piece].text.as_str();
            for (at, c) in text.char_indices() {
                known.entry(c).or_insert_with(|| {
                    let one = &text[at..at + c.len_utf8()];
                    ids.get(one.as_bytes()).unwrap_or_else(|| {
                        texts.push(one);
                        texts.len() as u32 - 1
                    })
                });
            }
        }
        let symbol =
            |text: &str| ids.get(text.as_bytes()).or_else(|| known.get(&text.chars().next()?).copied());
        let (mut merges, mut rank, mut last) = (Vec::new(), 0, None);
        each_cut(&texts, &made, |piece, cut| {
            let score = model.pieces[piece].score;
            rank += u32::from(last.replace(score).is_some_and(|last| last != score));
            let (left, right) = texts[piece].split_at(cut);
            merges.extend(symbol(left).zip(symbol(right)).map(|pair| (pair, rank, piece as u32)));
        })?;
        let is_cut_up = |piece: &usize| {
            let piece = &model.pieces[*piece];
            piece.kind == PieceKind::Unused && piece.text.chars().nth(1).is_some()
        };
        if made.iter().any(is_cut_up) {
            return Ok(None);
        }
        let mut cuts = ids.get(METASPACE.encode_utf8(&mut [0; 4]).as_bytes()).map(|_| MarkCuts::default());
        for piece in made {
            cuts = cuts.and_then(|cuts| cuts.without_those_inside(texts[piece]));
        }
        Ok(Some(Self { merges: Merges::new(merges.into_iter()), characters: known, cuts }))
    }

    /// Passes the pieces of `text` to `take`: start, end, id. An unknown character has the id `unknown`.
    pub(super) fn each(
        &self,
        text: &str,
        model: &SentencePieceModel,
        ids: &DoubleArray,
        of_user: &DoubleArray,
        unknown: u32,
        mut take: impl FnMut(usize, usize, u32),
    ) {
        let symbol = |(start, end, is_of_user)| {
            let text: &str = &text[start..end];
            match text.chars().next() {
                _ if is_of_user => ids.get(text.as_bytes()).map(|id| id | OF_USER),
                Some(c) => self.characters.get(&c).copied().or_else(|| ids.get(text.as_bytes())),
                None => None,
            }
        };
        let mut symbols: Vec<u32> =
            characters(text, of_user).map(|part| symbol(part).unwrap_or(OUTSIDE)).collect();
        let first = |id: u32| {
            let piece = model.pieces.get(id as usize)?;
            self.characters.get(&piece.text.chars().next()?).copied()
        };
        self.merges.merge(0, &mut symbols, || Some(first));
        let mut start = 0;
        for symbol in symbols {
            let id = symbol & !OF_USER;
            let (id, length) = match model.pieces.get(id as usize) {
                Some(piece) => (id, piece.text.len()),
                None => (unknown, text[start..].chars().next().map_or(0, char::len_utf8)),
            };
            take(start, start + length, id);
            start += length;
        }
    }
}
