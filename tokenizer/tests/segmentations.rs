//! The n best segmentations and random ones: SentencePiece's on its model, and the definition on small ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};
use tokenizer::sentencepiece::{ModelType, Piece, PieceKind, SentencePieceModel};
use tokenizer::{OffsetUnit, Tokenizer};

fn read(bytes: &[u8]) -> Tokenizer {
    Tokenizer::from_sentencepiece(&SentencePieceModel::from_bytes(bytes).unwrap()).unwrap()
}

/// A score, ids, and offsets.
type Row = (f64, Vec<u32>, Vec<(usize, usize)>);

#[test]
fn the_n_best_segmentations_and_their_scores_equal_sentencepiece_s() {
    // Oracle: `NBestEncode` of the sentencepiece that the fixture names: score, ids, offsets in bytes.
    let fixture: Value = serde_json::from_str(include_str!("fixtures/n_best.json")).unwrap();
    let tokenizer = read(include_bytes!("fixtures/small.model"));
    for row in fixture["rows"].as_array().unwrap() {
        let text = row[0].as_str().unwrap();
        let wanted: Vec<Row> = serde_json::from_value(row[1].clone()).unwrap();
        let found = tokenizer.encode_n_best(text, wanted.len(), OffsetUnit::Bytes).unwrap();
        assert_eq!(found.len(), wanted.len(), "{text:?}");
        for (found, (score, ids, offsets)) in found.iter().zip(&wanted) {
            // SentencePiece adds in single precision.
            assert!((found.score - score).abs() < 1e-4 * score.abs().max(1.0), "{text:?}: {}", found.score);
            assert_eq!((&found.encoding.ids, &found.encoding.offsets), (ids, offsets), "{text:?}");
        }
    }
}

const NAMES: [&str; 7] = ["a", "b", "ab", "ba", "aab", "bab", "abab"];

/// A `tokenizer.json` with these scores for [`NAMES`], each text one word; the token `T` is added.
fn small(scores: &[f64]) -> Tokenizer {
    let mut vocab = vec![json!(["<unk>", 0.0])];
    vocab.extend(NAMES.iter().zip(scores).map(|(name, score)| json!([name, score])));
    let file = json!({
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": false},
        "added_tokens": [{"id": 8, "content": "T", "special": true, "normalized": false}],
    });
    Tokenizer::from_json(&file.to_string()).unwrap()
}

/// Every segmentation of a word with its score.
fn all(scores: &[f64], word: &str) -> Vec<(f64, Vec<u32>)> {
    if word.is_empty() {
        return vec![(0.0, Vec::new())];
    }
    let mut found = Vec::new();
    for ((id, name), score) in (1..).zip(NAMES).zip(scores).filter(|((_, name), _)| word.starts_with(*name)) {
        for (rest, mut ids) in all(scores, &word[name.len()..]) {
            ids.insert(0, id);
            found.push((score + rest, ids));
        }
    }
    found
}

proptest! {
    #[test]
    fn the_n_best_are_the_first_of_all_segmentations_by_score(
        word in "[ab]{1,9}",
        scores in prop::array::uniform7(-9.0..-0.1),
        count in 1_usize..40,
    ) {
        let mut wanted = all(&scores, &word);
        wanted.sort_by(|a, b| b.0.total_cmp(&a.0));
        let found = small(&scores).encode_n_best(&word, count, OffsetUnit::Bytes).unwrap();
        prop_assert_eq!(found.len(), wanted.len().min(count));
        let mut ids = BTreeSet::new();
        for (found, (score, _)) in found.iter().zip(&wanted) {
            prop_assert!((found.score - score).abs() < 1e-9);
            // The order of segmentations with one score is open.
            let own = wanted.iter().find(|wanted| wanted.1 == found.encoding.ids).unwrap().0;
            prop_assert!((found.score - own).abs() < 1e-9 && ids.insert(&found.encoding.ids));
        }
    }
}

#[test]
fn added_tokens_and_unknown_text_have_one_form() {
    let tokenizer = small(&[-1.0, -1.5, -2.0, -3.0, -4.0, -4.5, -6.0]);
    let found = tokenizer.encode_n_best("abTéüa", 9, OffsetUnit::Bytes).unwrap();
    let ids: Vec<&[u32]> = found.iter().map(|one| one.encoding.ids.as_slice()).collect();
    // Unknown characters in a row become one token, with the score of each: 10 below the lowest.
    assert_eq!(ids, [&[3, 8, 0, 1][..], &[1, 2, 8, 0, 1]]);
    assert_eq!(found[0].encoding.offsets, [(0, 2), (2, 3), (3, 7), (7, 8)]);
    assert_eq!((found[0].score, found[1].score), (-2.0 - 32.0 - 1.0, -2.5 - 32.0 - 1.0));
    let mut sampler = tokenizer.sampler(1.0, 3).unwrap();
    let drawn = (0..50).map(|_| sampler.encode("abTéüa", OffsetUnit::Bytes));
    assert!(drawn.into_iter().all(|drawn| found.iter().any(|one| one.encoding == drawn)));
}

/// Ids with their probabilities.
type Probabilities = BTreeMap<Vec<u32>, f64>;

const DRAWS: u32 = 40_000;

/// Whether draws of a text agree with probabilities: Pearson's χ² over all segmentations, those that are rare together, below
/// the bound that it exceeds with probability 1e-6 (Laurent and Massart 2000, lemma 1).
fn agrees(tokenizer: &Tokenizer, alpha: f64, text: &str, probabilities: &Probabilities) -> bool {
    let sum: f64 = probabilities.values().sum();
    assert!((sum - 1.0).abs() < 1e-9 && probabilities.len() > 2, "{probabilities:?}");
    let mut sampler = tokenizer.sampler(alpha, 11).unwrap();
    let mut counts: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
    for _ in 0..DRAWS {
        *counts.entry(sampler.encode(text, OffsetUnit::Bytes).ids).or_default() += 1.0;
    }
    if counts.keys().any(|ids| !probabilities.contains_key(ids)) {
        return false;
    }
    let (mut rare, mut cells) = ((0.0, 0.0), Vec::new());
    for (ids, probability) in probabilities {
        let cell = (counts.get(ids).copied().unwrap_or(0.0), probability * f64::from(DRAWS));
        if cell.1 < 20.0 { rare = (rare.0 + cell.0, rare.1 + cell.1) } else { cells.push(cell) }
    }
    cells.extend((rare.1 >= 20.0).then_some(rare));
    let statistic: f64 = cells.iter().map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    let (degrees, x) = (cells.len() as f64 - 1.0, 1e6_f64.ln());
    statistic < degrees + 2.0 * (degrees * x).sqrt() + 2.0 * x
}

#[test]
fn unigram_samples_have_the_probabilities_of_the_lattice() {
    let scores = [-1.0, -1.5, -2.0, -3.0, -4.0, -4.5, -5.0];
    let tokenizer = small(&scores);
    let exact = |alpha: f64| -> Probabilities {
        let weights: Vec<_> =
            all(&scores, "ababaab").into_iter().map(|(score, ids)| (ids, (alpha * score).exp())).collect();
        let sum: f64 = weights.iter().map(|weight| weight.1).sum();
        weights.into_iter().map(|(ids, weight)| (ids, weight / sum)).collect()
    };
    for alpha in [0.0, 0.3, 1.0] {
        assert!(agrees(&tokenizer, alpha, "ababaab", &exact(alpha)), "{alpha}");
        assert!(!agrees(&tokenizer, alpha + 0.1, "ababaab", &exact(alpha)), "{alpha}");
    }
    let draw = |seed| {
        let mut sampler = tokenizer.sampler(0.0, seed).unwrap();
        (0..20).map(|_| sampler.encode("ababaab", OffsetUnit::Bytes).ids).collect::<Vec<_>>()
    };
    assert!(draw(5) == draw(5) && draw(5) != draw(6));
    // The same holds where the probability of a whole text is far below the smallest number.
    let long = "ababaab".repeat(2000);
    let ids = tokenizer.sampler(0.5, 1).unwrap().encode(&long, OffsetUnit::Bytes).ids;
    assert!(tokenizer.decode(&ids).replace(' ', "") == long);
    let greedy = tokenizer.sampler(1e9, 1).unwrap().encode(&long, OffsetUnit::Bytes).ids;
    assert!(greedy == tokenizer.encode(&long));
}

const MERGES: [(&str, &str); 5] = [("a", "b"), ("b", "a"), ("ab", "a"), ("ab", "ab"), ("a", "ba")];
const TOKENS: [&str; 7] = ["a", "b", "ab", "ba", "aba", "abab", "<unk>"];

fn ids_of(symbols: &[&str]) -> Vec<u32> {
    symbols.iter().map(|symbol| TOKENS.iter().position(|token| token == symbol).unwrap() as u32).collect()
}

/// The definition of dropout: at each step each possible merge is left out with probability `p`, and the first of the others
/// is made; the word ends when all are left out.
fn with_dropout<'a>(symbols: &[&'a str], word: &'a str, p: f64, weight: f64, out: &mut Probabilities) {
    let place = |at: usize| symbols[..at].iter().map(|symbol| symbol.len()).sum::<usize>();
    let rank = |at: usize| MERGES.iter().position(|merge| *merge == (symbols[at], symbols[at + 1]));
    let mut possible: Vec<(usize, usize)> =
        (0..symbols.len() - 1).filter_map(|at| Some((rank(at)?, at))).collect();
    possible.sort_unstable();
    let mut rest = weight;
    for (_, at) in possible {
        let mut merged = symbols.to_vec();
        merged.splice(at..at + 2, [&word[place(at)..place(at + 2)]]);
        with_dropout(&merged, word, p, rest * (1.0 - p), out);
        rest *= p;
    }
    *out.entry(ids_of(symbols)).or_default() += rest;
}

/// SentencePiece's rule: merges wait in an agenda, and one that is left out does not return. The agenda holds rank, place in
/// the word, and the length of both parts.
fn dropped_for_good(
    parts: &BTreeMap<usize, usize>,
    agenda: &[(usize, usize, usize)],
    p: f64,
    weight: f64,
    word: &str,
    out: &mut Probabilities,
) {
    let fits = |(_, at, length): (usize, usize, usize)| {
        let left = parts.get(&at).copied().unwrap_or(0);
        let right = parts.get(&(at + left)).copied().unwrap_or(0);
        left > 0 && right > 0 && left + right == length
    };
    let mut agenda: Vec<_> = agenda.iter().copied().filter(|pair| fits(*pair)).collect();
    agenda.sort_unstable();
    let Some(first) = agenda.first().copied() else {
        let symbols: Vec<&str> = parts.iter().map(|(at, length)| &word[*at..at + length]).collect();
        *out.entry(ids_of(&symbols)).or_default() += weight;
        return;
    };
    agenda.remove(0);
    dropped_for_good(parts, &agenda, p, weight * p, word, out);
    let (_, at, length) = first;
    let mut merged = parts.clone();
    merged.remove(&(at + parts[&at]));
    merged.insert(at, length);
    let before = merged.range(..at).next_back().map(|(before, size)| (*before, size + length));
    let after = merged.get(&(at + length)).map(|size| (at, size + length));
    for (at, length) in before.into_iter().chain(after) {
        if let Some(rank) = TOKENS.iter().position(|token| *token == &word[at..at + length]) {
            agenda.push((rank, at, length));
        }
    }
    dropped_for_good(&merged, &agenda, p, weight * (1.0 - p), word, out);
}

#[test]
fn bpe_samples_have_the_probabilities_of_merges_left_out_at_each_step() {
    let vocab: BTreeMap<&str, usize> = TOKENS.into_iter().zip(0..).collect();
    let file = json!({"model": {"type": "BPE", "vocab": vocab, "merges": MERGES, "unk_token": "<unk>"}});
    let tokenizer = Tokenizer::from_json(&file.to_string()).unwrap();
    let word = "ababa";
    let exact = |p: f64| {
        let mut out = Probabilities::new();
        let symbols: Vec<&str> = (0..word.len()).map(|at| &word[at..=at]).collect();
        with_dropout(&symbols, word, p, 1.0, &mut out);
        out
    };
    for p in [0.2, 0.6] {
        assert!(agrees(&tokenizer, p, word, &exact(p)), "{p}");
        assert!(!agrees(&tokenizer, p + 0.05, word, &exact(p)), "{p}");
    }
    let all = |alpha: f64| tokenizer.sampler(alpha, 0).unwrap().encode(word, OffsetUnit::Bytes);
    assert_eq!(all(0.0).ids, tokenizer.encode(word));
    assert_eq!(all(1.0).ids, ids_of(&["a", "b", "a", "b", "a"]));
    assert_eq!(all(1.0).offsets[1], (1, 2));
}

#[test]
fn bpe_samples_of_a_sentencepiece_model_have_the_probabilities_of_its_own_rule() {
    let pieces = TOKENS.iter().zip(0_u16..).map(|(text, rank)| Piece {
        text: (*text).to_owned(),
        score: -f32::from(rank),
        kind: if *text == "<unk>" { PieceKind::Unknown } else { PieceKind::Normal },
    });
    let mut file = SentencePieceModel::new(pieces.collect(), ModelType::Bpe);
    file.normalizer.add_dummy_prefix = false;
    let tokenizer = Tokenizer::from_sentencepiece(&file).unwrap();
    let word = "ababa";
    let exact = |p: f64| {
        let mut out = Probabilities::new();
        let parts = (0..word.len()).map(|at| (at, 1)).collect();
        let rank = |at: usize| TOKENS.iter().position(|token| *token == &word[at..at + 2]).unwrap();
        let agenda: Vec<_> = (0..word.len() - 1).map(|at| (rank(at), at, 2)).collect();
        dropped_for_good(&parts, &agenda, p, 1.0, word, &mut out);
        out
    };
    for p in [0.2, 0.6] {
        assert!(agrees(&tokenizer, p, word, &exact(p)), "{p}");
        assert!(!agrees(&tokenizer, p + 0.05, word, &exact(p)), "{p}");
    }
}
