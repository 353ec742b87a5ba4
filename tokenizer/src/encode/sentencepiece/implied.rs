//! The merges that the pieces of a BPE model imply: SentencePiece keeps the pieces alone, Hugging Face the merges.

use crate::sentencepiece::{PieceKind, SentencePieceModel};

/// The bytes of merges allowed for each byte of the pieces, beyond [`MARGIN`]. Known models have about ten at most, as
/// their pieces are short.
const MAX_PER_PIECE: usize = 100;
const MARGIN: usize = 1 << 20;

/// Returns all merges of two pieces into an ordinary piece, by falling score of the result, in time in proportion to
/// the pieces and the merges. Pieces are distinct.
///
/// # Errors
/// The number of a piece, if the merges up to it have more bytes than [`MAX_PER_PIECE`] allows: pieces of one letter, of two of them, of three …
/// have as many merges as letters in all, each as long as its piece.
pub(crate) fn implied_merges(model: &SentencePieceModel) -> Result<Vec<(&str, &str)>, usize> {
    let texts: Vec<&str> = model.pieces.iter().map(|piece| piece.text.as_str()).collect();
    let is_merged = |at: &usize| model.pieces[*at].kind == PieceKind::Normal;
    let mut order: Vec<usize> = (0..texts.len()).filter(is_merged).collect();
    order.sort_by(|&a, &b| model.pieces[b].score.total_cmp(&model.pieces[a].score));
    let mut merges = Vec::new();
    each_cut(&texts, &order, |piece, cut| merges.push(texts[piece].split_at(cut)))?;
    Ok(merges)
}

/// Hands each way to cut one of the texts `order` into two of the texts to `take`: the text's place, and the length of the first
/// part.
///
/// # Errors
/// As [`implied_merges`].
pub(super) fn each_cut(
    texts: &[&str],
    order: &[usize],
    mut take: impl FnMut(usize, usize),
) -> Result<(), usize> {
    let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    let mirrored: Vec<Vec<u8>> = bytes.iter().map(|text| text.iter().rev().copied().collect()).collect();
    let before = beginnings(&bytes);
    let after = beginnings(&mirrored.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let of_all: usize = texts.iter().map(|text| text.len()).sum();
    let mut left = of_all.saturating_mul(MAX_PER_PIECE).saturating_add(MARGIN);
    for &place in order {
        let length = texts[place].len();
        for &cut in &before[place] {
            if after[place].binary_search(&(length - cut)).is_ok() {
                left = left.checked_sub(length).ok_or(place)?;
                take(place, cut);
            }
        }
    }
    Ok(())
}

/// Returns, for each text, the lengths of the shorter texts with which it begins, from the shortest on. The empty text
/// is left out.
fn beginnings(texts: &[&[u8]]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_unstable_by_key(|&at| texts[at]);
    let mut all = vec![Vec::new(); texts.len()];
    // Each text in this list begins with the one before it.
    let mut open: Vec<&[u8]> = Vec::new();
    for at in order {
        while open.pop_if(|beginning| !texts[at].starts_with(beginning)).is_some() {}
        all[at] = open.iter().map(|beginning| beginning.len()).filter(|length| *length > 0).collect();
        open.push(texts[at]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentencepiece::{ModelType, Piece};

    fn model(pieces: impl IntoIterator<Item = (String, PieceKind)>) -> SentencePieceModel {
        let piece =
            |(at, (text, kind)): (u16, (String, PieceKind))| Piece { text, score: -f32::from(at), kind };
        SentencePieceModel::new((0..).zip(pieces).map(piece).collect(), ModelType::Bpe)
    }

    /// Finds the merges by trying each cut: the oracle.
    fn tried(model: &SentencePieceModel) -> Vec<(&str, &str)> {
        let known = |part: &str| model.pieces.iter().any(|piece| piece.text == part);
        let merged = model.pieces.iter().filter(|piece| piece.kind == PieceKind::Normal);
        let cuts = |piece: &'_ Piece| piece.text.char_indices().skip(1).map(|(at, _)| at).collect::<Vec<_>>();
        let ways = merged.flat_map(|piece| cuts(piece).into_iter().map(|at| piece.text.split_at(at)));
        ways.filter(|(left, right)| known(left) && known(right)).collect()
    }

    #[test]
    fn merges_are_those_that_trying_each_cut_finds() {
        let mut state = 7_u32;
        let mut next = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        let mut found = 0;
        for _ in 0..200 {
            let mut texts = std::collections::BTreeSet::new();
            for _ in 0..40 {
                let letters = 1 + next(6);
                texts.insert(
                    (0..letters).map(|_| ["a", "é", "▁", "😀"][next(4) as usize]).collect::<String>(),
                );
            }
            let kinds = [PieceKind::Normal, PieceKind::Normal, PieceKind::UserDefined, PieceKind::Unused];
            let model = model(texts.into_iter().map(|text| (text, kinds[next(4) as usize])));
            let merges = implied_merges(&model).unwrap();
            assert_eq!(merges, tried(&model));
            found += merges.len();
        }
        assert!(found > 1000, "{found}");
    }

    #[test]
    fn long_pieces_take_no_more_than_their_size_allows() {
        let started = std::time::Instant::now();
        let long = "a".repeat(10_000_000);
        let one = model([("a".to_owned(), PieceKind::Normal), (long.clone() + "b", PieceKind::Normal)]);
        assert_eq!(implied_merges(&one), Ok(Vec::new()));
        // Each shorter text of the same letter: as many merges as letters, of 33 GB in all.
        let all = model((1..5800).map(|length| (long[..length].to_owned(), PieceKind::Normal)));
        assert!(implied_merges(&all).is_err_and(|piece| piece > 100), "refused, but not at once");
        assert!(started.elapsed().as_secs() < 10);
    }
}
