//! Compares merging with its definition.

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
        let rank = |i: usize| bpe.merges().position(|(l, r)| l == symbols[i] && r == symbols[i + 1]);
        let best = (0..symbols.len().saturating_sub(1)).filter_map(|i| Some((rank(i)?, i))).min();
        let Some((_, at)) = best else { return symbols };
        let right = symbols.remove(at + 1);
        symbols[at].push_str(&right);
    }
}

/// A random but well-formed table of merges over a, b, c.
fn table(picks: &[(usize, usize)]) -> Bpe {
    rotated_table(picks, 0)
}

/// A table whose first merges come last: parts of merges are then made later than they are merged.
fn rotated_table(picks: &[(usize, usize)], by: usize) -> Bpe {
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
    let by = by.checked_rem(merges.len()).unwrap_or(0);
    merges.rotate_left(by);
    Bpe::new(Vocabulary::new(tokens).unwrap(), merges, Alphabet::Bytes).unwrap()
}

proptest! {
    #[test]
    fn merging_equals_the_definition(picks: Vec<(usize, usize)>, word in "[abc]{0,140}") {
        let bpe = table(&picks);
        let want: Vec<u32> = by_definition(&bpe, &word).iter().map(|t| bpe.vocabulary.id(t).unwrap()).collect();
        let symbols: Vec<u32> = word.bytes().filter_map(|b| bpe.bytes[usize::from(b)]).collect();
        let mut merged = [&[7], symbols.as_slice()].concat();
        bpe.merge(1, &mut merged);
        prop_assert_eq!(&merged[1..], &want);
    }

    /// What is found is right. In another order of merges than that of training, less is found.
    #[test]
    fn longest_tokens_first_are_the_tokens_of_merging(
        picks in prop::collection::vec((0..60_usize, 0..60_usize), 0..60),
        by in prop_oneof![Just(0_usize), 1..60_usize],
        words in prop::collection::vec("[abc]{1,127}", 1..9),
    ) {
        let bpe = rotated_table(&picks, by);
        let tables = bpe.tables().unwrap();
        for word in words {
            let (mut want, mut found) = (Vec::new(), vec![7]);
            bpe.each_symbol(&word, |id, _| want.push(id));
            bpe.merge(0, &mut want);
            let rank = |left, right| bpe.table.find(left, right).map(|merge| merge.0);
            let is_found = tables.encode(word.as_bytes(), rank, &mut found);
            prop_assert!(!is_found || found[1..] == want, "{:?} {:?}", found, want);
            prop_assert!(is_found || found == [7], "{:?}", found);
        }
    }
}

#[test]
fn tables_take_over_from_merging_with_the_same_ids() {
    let bpe = table(&[(0, 1), (3, 2), (4, 4), (0, 0), (5, 3)]);
    let mut words: Vec<String> =
        (0..200).map(|n: u32| format!("{n:b}").repeat(3).replace('0', "ab").replace('1', "c")).collect();
    words.extend((1..99).map(|length| "a".repeat(length)));
    let ids = || {
        words
            .iter()
            .map(|word| {
                let mut ids = Vec::new();
                bpe.encode(word, &mut ids);
                ids
            })
            .collect::<Vec<_>>()
    };
    let merged = ids();
    let tables = bpe.longest_first.get().and_then(Option::as_deref).expect("enough was merged");
    let rank = |left, right| bpe.table.find(left, right).map(|merge| merge.0);
    assert!(
        words.iter().all(|word| word.len() > 127 || tables.encode(word.as_bytes(), rank, &mut Vec::new()))
    );
    assert_eq!(ids(), merged);
    let want: Vec<Vec<String>> = words.iter().map(|word| by_definition(&bpe, word)).collect();
    let texts: Vec<Vec<String>> = merged
        .iter()
        .map(|ids| ids.iter().map(|id| bpe.vocabulary.token(*id).unwrap().to_owned()).collect())
        .collect();
    assert_eq!(texts, want);
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
    tokens.extend((0..=255).map(crate::vocabulary::byte_token));
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
    let refused = Bpe::new(vocabulary.clone(), vec![("a".into(), "b".into())], Alphabet::Bytes).unwrap_err();
    assert!(refused.to_string().contains("\"ab\""));
    let unk = Alphabet::Characters { unk_token: Some("?".into()), fuse_unk: false, byte_fallback: false };
    assert!(matches!(Bpe::new(vocabulary, vec![], unk), Err(BpeError::MissingUnknown { .. })));
}

/// A tokenizer that turns blanks into marks, with these merges over a few characters.
fn with_marks(merges: &[(&str, &str)], unk_token: Option<&str>, other_tokens: &[&str]) -> crate::Tokenizer {
    let characters = ["<unk>", "▁", ">", "<", "/", "a", "é"].map(str::to_owned);
    let merged = merges.iter().map(|(left, right)| format!("{left}{right}"));
    let tokens =
        characters.into_iter().chain(other_tokens.iter().map(|token| (*token).to_owned())).chain(merged);
    let vocab: serde_json::Map<_, _> = tokens.zip(0..).map(|(token, id)| (token, id.into())).collect();
    let model = serde_json::json!({"type": "BPE", "unk_token": unk_token, "vocab": vocab, "merges": merges});
    let normalizer = serde_json::json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    let file = serde_json::json!({"model": model, "normalizer": normalizer});
    crate::Tokenizer::from_json(&file.to_string()).unwrap()
}

fn bpe_of(tokenizer: &crate::Tokenizer) -> &Bpe {
    let crate::encode::Model::Bpe(bpe) = &tokenizer.model else { panic!("a BPE") };
    bpe
}

/// Merges as in Gemma 3, where one joins a mark to the character before it.
const JOINING: [(&str, &str); 7] =
    [("▁", "▁"), ("▁", "<"), ("▁<", "/"), ("a", "a"), ("▁", "a"), (">", "▁</"), ("▁▁", "▁</")];

proptest! {
    #[test]
    fn a_text_that_is_cut_before_marks_has_the_tokens_of_the_whole(text in "(> ?</|[>< /aé☃▁]|a{5,20})*") {
        let tokenizer = with_marks(&JOINING, Some("<unk>"), &[]);
        let bpe = bpe_of(&tokenizer);
        prop_assert!(bpe.mark_cuts.is_some());
        let marked = text.replace(' ', "▁");
        let (mut whole, mut in_parts) = (Vec::new(), Vec::new());
        bpe.encode(&marked, &mut whole);
        bpe.encode_cached(&marked, 0..marked.len(), &mut WordCache::default(), &mut in_parts);
        prop_assert_eq!(&tokenizer.encode(&text), &whole);
        prop_assert_eq!(in_parts, whole);
    }
}

#[test]
fn a_text_stays_whole_where_a_merge_may_reach_over_any_mark() {
    let has_cuts = |merges: &[_], unk_token, tokens: &[&str]| {
        bpe_of(&with_marks(merges, unk_token, tokens)).mark_cuts.is_some()
    };
    assert!(has_cuts(&JOINING, Some("<unk>"), &[]));
    assert!(has_cuts(&JOINING[..5], None, &[]));
    // If the unknown character is left out, ">☃ </" has the merge.
    assert!(!has_cuts(&JOINING, None, &[]));
    assert!(!has_cuts(&[("é", "▁")], Some("<unk>"), &[]));
    assert!(!has_cuts(&[("<unk>", "▁")], Some("<unk>"), &[]));
    assert!(!has_cuts(&[("a", "<0xE2>"), ("a<0xE2>", "▁")], Some("<unk>"), &["<0xE2>"]));
    assert!(!has_cuts(&[(">", "▁"), ("<0xE2>", "▁")], Some("<unk>"), &["<0xE2>"]));
}
