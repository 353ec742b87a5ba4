//! Small vocabularies made by other tools encode here as there; see `fixtures/README.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use proptest::prelude::*;
use serde_json::Value;
use tokenizer::format::{gpt2, vocab_txt};
use tokenizer::normalize::BertNormalizer;
use tokenizer::sentencepiece::SentencePieceModel;
use tokenizer::{OffsetUnit, Tokenizer};

const MODEL: &[u8] = include_bytes!("fixtures/small.model");

fn expected() -> Value {
    serde_json::from_str(include_str!("fixtures/expected.json")).unwrap()
}

fn bert() -> Tokenizer {
    let vocabulary = vocab_txt::read(include_bytes!("fixtures/vocab.txt")).unwrap();
    Tokenizer::bert(vocabulary, BertNormalizer::uncased()).unwrap()
}

fn gpt2() -> Tokenizer {
    let vocabulary = gpt2::read_vocab(include_bytes!("fixtures/vocab.json")).unwrap();
    Tokenizer::gpt2(vocabulary, gpt2::read_merges(include_bytes!("fixtures/merges.txt")).unwrap()).unwrap()
}

fn sentencepiece() -> Tokenizer {
    Tokenizer::from_sentencepiece(&SentencePieceModel::from_bytes(MODEL).unwrap()).unwrap()
}

fn check(tokenizer: &Tokenizer, tool: &str) {
    let expected = expected();
    let texts: Vec<String> = serde_json::from_value(expected["texts"].clone()).unwrap();
    let wanted: Vec<Vec<u32>> = serde_json::from_value(expected[tool].clone()).unwrap();
    assert!(texts.len() > 20 && texts.len() == wanted.len());
    let mut encoder = tokenizer.encoder();
    for (text, ids) in texts.iter().zip(&wanted) {
        assert_eq!(&encoder.encode(text), ids, "{tool}: {text:?}");
    }
}

#[test]
fn ids_and_offsets_equal_hugging_face_s_for_each_kind_and_normalizer() {
    // Oracle: `Encoding.offsets` of the tokenizers version that the fixture names.
    let expected: Value = serde_json::from_str(include_str!("fixtures/offsets.json")).unwrap();
    let cases = expected["cases"].as_array().unwrap();
    assert!(cases.len() >= 15);
    for case in cases {
        let base = match case["base"].as_str().unwrap() {
            "unigram" => include_str!("fixtures/unigram.json").to_owned(),
            "bert" => bert().to_json(),
            _ => gpt2().to_json(),
        };
        let mut file: Value = serde_json::from_str(&base).unwrap();
        for (key, value) in case["changed"].as_object().unwrap() {
            file[key] = value.clone();
        }
        let tokenizer = Tokenizer::from_json(&file.to_string()).unwrap();
        let mut encoder = tokenizer.encoder();
        for row in case["texts"].as_array().unwrap() {
            let text = row["text"].as_str().unwrap();
            let ids: Vec<u32> = serde_json::from_value(row["ids"].clone()).unwrap();
            let offsets: Vec<(usize, usize)> = serde_json::from_value(row["offsets"].clone()).unwrap();
            let found = encoder.encode_with_offsets(text, OffsetUnit::Characters);
            let changed = &case["changed"];
            assert_eq!(encoder.encode(text), ids, "{changed}: {text:?}");
            assert_eq!((&found.ids, &found.offsets), (&ids, &offsets), "{changed}: {text:?}");
            if changed["post_processor"]["trim_offsets"] != true {
                let bytes = tokenizer.encode_with_offsets(text, OffsetUnit::Bytes).offsets;
                let characters = bytes.iter().map(|(from, to)| (count(text, *from), count(text, *to)));
                assert_eq!(characters.collect::<Vec<_>>(), offsets, "{changed}: {text:?}");
            }
        }
    }
}

fn count(text: &str, bytes: usize) -> usize {
    text[..bytes].chars().count()
}

#[test]
fn bert_ids_equal_hugging_face_s() {
    check(&bert(), "bert");
    check(&Tokenizer::from_json(&bert().to_json()).unwrap(), "bert");
}

#[test]
fn gpt2_ids_equal_hugging_face_s_and_every_text_comes_back() {
    check(&gpt2(), "gpt2");
    check(&Tokenizer::from_json(&gpt2().to_json()).unwrap(), "gpt2");
    for text in expected()["texts"].as_array().unwrap().iter().filter_map(Value::as_str) {
        assert_eq!(gpt2().decode(&gpt2().encode(text)), text);
    }
}

#[test]
fn sentencepiece_ids_and_texts_equal_its_own() {
    check(&sentencepiece(), "sentencepiece");
    let expected = expected();
    let decoded = expected["sentencepiece_decoded"].as_array().unwrap();
    for (ids, text) in expected["sentencepiece"].as_array().unwrap().iter().zip(decoded) {
        let ids: Vec<u32> = serde_json::from_value(ids.clone()).unwrap();
        assert_eq!(sentencepiece().decode(&ids), text.as_str().unwrap());
    }
}

#[test]
fn sentencepiece_models_of_every_kind_encode_and_decode_as_there() {
    let expected: Value = serde_json::from_str(include_str!("fixtures/sentencepiece_kinds.json")).unwrap();
    let texts: Vec<String> = serde_json::from_value(expected["texts"].clone()).unwrap();
    let models: [(&str, &[u8]); 3] = [
        ("bpe", include_bytes!("fixtures/bpe.model")),
        ("word", include_bytes!("fixtures/word.model")),
        ("char", include_bytes!("fixtures/char.model")),
    ];
    for (kind, bytes) in models {
        let model = SentencePieceModel::from_bytes(bytes).unwrap();
        let tokenizer = Tokenizer::from_sentencepiece(&model).unwrap();
        let written = SentencePieceModel::from_bytes(&model.to_bytes()).unwrap();
        let again = Tokenizer::from_sentencepiece(&written).unwrap();
        let wanted: Vec<Vec<u32>> = serde_json::from_value(expected[kind].clone()).unwrap();
        assert!(texts.len() > 20 && texts.len() == wanted.len());
        for (at, (text, ids)) in texts.iter().zip(&wanted).enumerate() {
            assert_eq!(&tokenizer.encode(text), ids, "{kind}: {text:?}");
            assert_eq!(&again.encode(text), ids, "{kind}, written again: {text:?}");
            let decoded = expected[format!("{kind}_decoded")][at].as_str().unwrap();
            assert_eq!(tokenizer.decode(ids), decoded, "{kind}: {text:?}");
        }
    }
}

/// The texts are those of SentencePiece 0.2.3.
#[test]
fn spaces_before_all_text_are_dropped_as_sentencepiece_does() {
    let (unknown, begin, blank, bar) = (0, 1, 261, 262);
    let decoded = [
        (vec![blank, blank, bar], "|"),
        (vec![begin, blank, bar], "|"),
        (vec![blank, blank], ""),
        (vec![bar, blank], "| "),
        (vec![unknown, blank, bar], " \u{2047}   |"),
    ];
    for (ids, text) in decoded {
        assert_eq!(sentencepiece().decode(&ids), text, "{ids:?}");
    }
}

#[test]
fn a_rewritten_model_encodes_the_same() {
    let bytes = SentencePieceModel::from_bytes(MODEL).unwrap().to_bytes();
    let rewritten = SentencePieceModel::from_bytes(&bytes).unwrap();
    check(&Tokenizer::from_sentencepiece(&rewritten).unwrap(), "sentencepiece");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn mutated_models_encode_or_are_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
        text in "(\\PC|[ \u{2581}Aé\u{301}\n])*",
    ) {
        let mut bytes = MODEL.to_vec();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(tokenizer) = SentencePieceModel::from_bytes(&bytes).and_then(|m| Tokenizer::from_sentencepiece(&m)) {
            let ids = tokenizer.encode(&text);
            let _ = tokenizer.decode(&ids);
        }
    }

    #[test]
    fn mutated_json_encodes_or_is_refused(
        which in 0usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[\"{}\\[\\]:,0-9a-z#]"), 0..4),
        text in "(\\PC|[ \u{2581}Aé\u{301}\n])*",
    ) {
        let json = [bert(), gpt2(), sentencepiece()][which].to_json();
        let mut characters: Vec<char> = json.chars().collect();
        for (at, with) in changes {
            let at = at.index(characters.len());
            characters[at] = with.chars().next().unwrap();
        }
        let json: String = characters.into_iter().collect();
        if let Ok(tokenizer) = Tokenizer::from_json(&json) {
            let ids = tokenizer.encode(&text);
            let _ = tokenizer.decode(&ids);
        }
    }

    #[test]
    fn byte_level_decoding_undoes_encoding(text in "(\\PC|[ \t\n'])*") {
        prop_assert_eq!(gpt2().decode(&gpt2().encode(&text)), text);
    }
}

/// A `.model` can rewrite decoded text by rules of its own.
#[test]
fn decoded_text_is_rewritten_by_the_denormalization_rules_of_a_model() {
    let file = SentencePieceModel::from_bytes(include_bytes!("fixtures/denormalized.model")).unwrap();
    let tokenizer = Tokenizer::from_sentencepiece(&file).unwrap();
    // Oracle: sentencepiece 0.2.3. The rules of the fixture: A and B become small and ß becomes ss; decoding makes every a
    // large, ss to ß, and three dots to one, and drops a space before a dot.
    for (text, decoded) in [
        ("A glass of water ... and a class .", "A glAß of wAter... And A clAß."),
        ("Bass straße", "bAß strAße"),
        ("  spaces  . here ", "spAces. here"),
        ("日本 aé ss", "日本 Aé ß"),
        ("", ""),
    ] {
        let ids = tokenizer.encode(text);
        assert_eq!(tokenizer.decode(&ids), decoded, "{text:?}");
        // Rules that look at what follows keep a stream from showing text too soon.
        let mut stream = tokenizer.decode_stream();
        let streamed: String = ids.iter().map(|id| stream.push(*id)).collect();
        assert_eq!(streamed + &stream.finish(), decoded, "{text:?}");
    }
    assert_eq!(tokenizer.decode(&[0, 7]), " \u{2047} \u{4}");
    let json = Tokenizer::from_json(&tokenizer.to_json()).unwrap();
    assert!(tokenizer.difference(&json).is_some_and(|difference| difference.contains("no counterpart")));
    // The rules are part of what is written.
    let mut plain = file.clone();
    plain.denormalizer = None;
    let plain = Tokenizer::from_sentencepiece(&plain).unwrap();
    assert_eq!(plain.decode(&plain.encode("Bass straße")), "bass strasse");
    let again =
        Tokenizer::from_sentencepiece(&SentencePieceModel::from_bytes(&file.to_bytes()).unwrap()).unwrap();
    assert_eq!(again.decode(&again.encode("Bass ...")), "bAß...");
}
