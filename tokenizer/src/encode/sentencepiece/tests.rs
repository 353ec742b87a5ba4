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

/// Words one by one, remembered or not, give what a search over the whole text gives: with scores that lie close
/// together, in texts whose sums grow to a reset and beyond.
#[test]
fn words_one_by_one_give_the_path_of_the_whole_text() {
    let names = ["▁", "a", "b", "ab", "ba", "▁a", "▁ab", "aba", "▁b", "bb", "bba", "▁aba", "abab"];
    let mut state = 7_u32;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    let (mut sure, mut searched) = (0, 0);
    for round in 0..12 {
        let piece = |text: &str, score, kind| Piece { text: text.to_owned(), score, kind };
        let mut pieces = vec![piece("<unk>", 0.0, PieceKind::Unknown)];
        let letters = [next(2000), next(2000), next(2000)].map(|n| -0.5 - n as f32 / 63.7);
        for name in names {
            let of = |c| letters["▁ab".chars().position(|letter| letter == c).unwrap_or(0)];
            // The distance from the sum of the letters: so small that rounding hides it, or large.
            let apart = if next(2) == 0 { (next(201) as f32 - 100.0) * 1e-5 } else { next(9) as f32 - 4.0 };
            let apart = if name.chars().count() == 1 { 0.0 } else { apart };
            pieces.push(piece(name, name.chars().map(of).sum::<f32>() + apart, PieceKind::Normal));
        }
        pieces.push(piece("bab", 0.0, PieceKind::UserDefined));
        let model = SentencePiece::new(SentencePieceModel::new(pieces, ModelType::Unigram)).unwrap();
        assert!(model.reach.is_some());
        let length = if round == 0 { 60_000 } else { 2000 };
        let text: String = (0..length)
            .map(|_| {
                ["▁", "a", "b", "b", "a", "ab", "▁a", if round % 3 == 0 { "é" } else { "ba" }]
                    [next(8) as usize]
            })
            .collect();
        let whole = {
            let mut ids = Vec::new();
            model.encode(&text, &mut ids);
            ids
        };
        let (mut ids, mut sum, mut from) = (Vec::new(), 0.0, 0);
        for end in text.match_indices(METASPACE).map(|(at, _)| at).skip(1).chain([text.len()]) {
            let (start, word) = (ids.len(), &text[from..end]);
            sum = match model.is_far_from_reset(sum) && model.sure_pieces(word, &mut ids) {
                true => {
                    sure += 1;
                    model.add(sum, &ids[start..])
                }
                false => {
                    searched += 1;
                    model.encode_after(sum, word, 0, &mut ids)
                }
            };
            from = end;
        }
        assert!(ids == whole, "{round}");
    }
    assert!(sure > 1000 && searched > 1000, "{sure} {searched}");
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

/// The pieces of a BPE by merges of numbered symbols, cut at marks and with words remembered, are those that merging by the text of
/// pieces finds: with equal scores, user-defined symbols, characters that are no piece, and pieces that no merge makes.
#[test]
fn merges_of_symbols_give_the_pieces_of_merges_by_text() {
    let mut state = 7_u32;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    let (letters, mut cut, mut merged) = (["▁", "a", "b", "é", "c", "▁▁", " "], 0, 0);
    for round in 0..300 {
        let mut texts = std::collections::BTreeSet::new();
        while texts.len() < 25 {
            let word: String = (0..=next(4)).map(|_| letters[next(4) as usize]).collect();
            // In most rounds, marks open pieces, as in models of words.
            let inner = word.trim_start_matches('▁');
            if round % 3 == 0 || !inner.contains('▁') {
                texts.insert(word);
            }
        }
        texts.insert("▁".to_owned());
        let kinds = [PieceKind::Normal, PieceKind::Normal, PieceKind::Normal, PieceKind::UserDefined];
        let mut pieces = vec![Piece { text: "<unk>".to_owned(), score: 0.0, kind: PieceKind::Unknown }];
        pieces.extend(texts.into_iter().map(|text| {
            let kind = kinds[next(4) as usize];
            Piece { text, score: -(next(12) as f32), kind }
        }));
        let model = SentencePiece::new(SentencePieceModel::new(pieces, ModelType::Bpe)).unwrap();
        for _ in 0..20 {
            let text: String = (0..next(90)).map(|_| letters[next(7) as usize]).collect();
            let (mut want, mut found, mut remembered) = (Vec::new(), Vec::new(), Vec::new());
            merge(&text, &model.merged, &model.of_user, &mut || false, &mut |start, end| {
                let id = model.id(&text[start..end]).unwrap_or(model.unk_id);
                model.push(&text[start..end], id, 0, &mut want);
            });
            model.encode(&text, &mut found);
            model.encode_cached(&text, 0..text.len(), &mut WordCache::default(), &mut remembered);
            assert_eq!((&found, &remembered), (&want, &want), "{round} {text}");
            merged += usize::from(found.len() < text.chars().count());
        }
        cut += usize::from(model.merges.is_some_and(|merges| merges.cuts.is_some()));
    }
    assert!(cut > 100 && merged > 1000, "{cut} {merged}");
}
