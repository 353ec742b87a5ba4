//! Tokenizers of the structure of well-known models encode and decode here as in Hugging Face's library; see
//! `fixtures/README.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use serde_json::{Value, json};
use tokenizer::{Encoding, OffsetUnit, Tokenizer};

fn fixture() -> Value {
    serde_json::from_str(include_str!("fixtures/models.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn ids_offsets_and_texts_equal_hugging_face_s_for_the_structure_of_each_model() {
    // Oracle: the tokenizers version that the fixture names; its rows are ids, offsets, ids with special tokens, text.
    let fixture = fixture();
    let texts: Vec<&str> = fixture["texts"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mut differing = Vec::new();
    for case in fixture["cases"].as_array().unwrap() {
        let tokenizer = Tokenizer::from_json(&case["file"].to_string())
            .unwrap_or_else(|error| panic!("{}: {error}", case["name"]));
        // The written file is read the same.
        let again = Tokenizer::from_json(&tokenizer.to_json()).unwrap();
        for tokenizer in [&tokenizer, &again] {
            let mut encoder = tokenizer.encoder();
            for (text, row) in texts.iter().zip(case["rows"].as_array().unwrap()) {
                let found = encoder.encode_with_offsets(text, OffsetUnit::Characters);
                let offsets: Vec<u32> =
                    found.offsets.iter().flat_map(|(from, to)| [*from as u32, *to as u32]).collect();
                let decoded = tokenizer.decode(&found.ids);
                let ids = Encoding { ids: encoder.encode(text), offsets: Vec::new() };
                let same = [
                    found.ids == numbers(&row[0]),
                    ids.ids == found.ids,
                    offsets == numbers(&row[1]),
                    tokenizer.post_process(ids).ids == numbers(&row[2]),
                    row[3] == *decoded,
                ];
                if same.contains(&false) {
                    differing.push(format!("{} {text:?}: {same:?}; ids {:?}", case["name"], found.ids));
                }
            }
        }
    }
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
    assert!(fixture["cases"].as_array().unwrap().len() >= 37);
}

/// Prepend scheme `first` marks each word whose place starts where the input does: none after a blank that the normalizer
/// dropped, and all words that it made of the first character.
#[test]
fn words_are_marked_by_their_place_in_the_input() {
    let tokens = ["<unk>", "abc", "▁abc", "▁d", "7", "▁7", "▁⁄", "▁8", "▁", "T"];
    let vocab: serde_json::Map<String, Value> =
        (0..).zip(tokens).map(|(id, token)| (token.to_owned(), json!(id))).collect();
    let first = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true});
    let digits = json!({"type": "Digits", "individual_digits": true});
    let both = json!({"type": "Sequence", "pretokenizers": [digits, first]});
    let strip = json!({"type": "Strip", "strip_left": true, "strip_right": true});
    // Oracle: tokenizers 0.23.3.
    for (normalizer, pre_tokenizer, is_normalized, text, want) in [
        (&strip, &first, true, "abc d", vec!["▁abc", "▁d"]),
        (&strip, &first, true, "  abc d", vec!["abc", "▁d"]),
        (&strip, &first, true, "  abcT d", vec!["abc", "T", "▁d"]),
        (&Value::Null, &first, false, "Tabc d", vec!["T", "abc", "▁d"]),
        (&json!({"type": "NFKC"}), &both, false, "⅞ 7", vec!["▁7", "▁⁄", "▁8", "▁", "7"]),
    ] {
        let added = json!([{"id": 9, "content": "T", "normalized": is_normalized, "special": true}]);
        let file = json!({
            "added_tokens": added, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer,
            "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"},
        });
        let tokenizer = Tokenizer::from_json(&file.to_string()).unwrap();
        let found = tokenizer.encode_with_offsets(text, OffsetUnit::Bytes);
        let named: Vec<&str> = found.ids.iter().filter_map(|id| tokenizer.token(*id)).collect();
        assert_eq!((named, &tokenizer.encode(text)), (want, &found.ids), "{text:?}");
    }
}

#[test]
fn marks_are_merged_where_the_text_is_not_cut_between_them() {
    // Oracle: tokenizers 0.23.3 on these files and texts.
    let tokens = ["<unk>", "▁", "▁▁", "a", "b", "▁a", "▁▁a", "ab"];
    let vocab: serde_json::Map<String, Value> =
        (0..).zip(tokens).map(|(id, token): (u32, &str)| (token.to_owned(), id.into())).collect();
    let texts = ["  a", "a  ab", "▁▁a  ", " a"];
    for (split, scheme, wanted) in [
        (true, "always", [&[1, 5][..], &[5, 1, 5, 4], &[1, 5, 1, 1], &[5]]),
        (true, "never", [&[1, 5], &[3, 1, 5, 4], &[1, 5, 1, 1], &[5]]),
        (true, "first", [&[1, 5], &[5, 1, 5, 4], &[1, 5, 1, 1], &[5]]),
        (false, "always", [&[6], &[5, 6, 4], &[6, 2], &[5]]),
        (false, "never", [&[6], &[3, 6, 4], &[6, 2], &[5]]),
        (false, "first", [&[6], &[5, 6, 4], &[6, 2], &[5]]),
    ] {
        let file = json!({
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split},
            "model": {
                "type": "BPE",
                "unk_token": "<unk>",
                "vocab": vocab,
                "merges": [["▁", "▁"], ["▁", "a"], ["▁▁", "a"], ["a", "b"]],
            },
        });
        let tokenizer = Tokenizer::from_json(&file.to_string()).unwrap();
        for (text, ids) in texts.iter().zip(wanted) {
            assert_eq!(tokenizer.encode(text), ids, "{split} {scheme}: {text:?}");
            let places = tokenizer.encode_with_offsets(text, OffsetUnit::Bytes);
            assert_eq!(places.ids, ids, "{split} {scheme}: {text:?}");
        }
    }
}

#[test]
fn added_tokens_behind_a_gap_are_read() {
    // GPT-4o's vocabulary lists its added tokens 199999 and 200018 behind the last id 199997.
    let added = |id: u32| json!({"id": id, "content": format!("<{id}>"), "special": true});
    let mut file = json!({
        "added_tokens": [added(3), added(9)],
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<3>": 3, "<9>": 9}, "merges": []},
    });
    let tokenizer = Tokenizer::from_json(&file.to_string()).unwrap();
    assert_eq!(tokenizer.encode("a<9>b<3>"), [0, 9, 1, 3]);
    assert_eq!((tokenizer.vocab_size(), tokenizer.token(2), tokenizer.token(9)), (10, None, Some("<9>")));
    // Hugging Face's library takes these ids from the vocabulary. From the list of added tokens, they would be 2 and 3.
    let written: serde_json::Value = serde_json::from_str(&tokenizer.to_json()).unwrap();
    assert_eq!(written["model"]["vocab"], file["model"]["vocab"]);
    let again = Tokenizer::from_json(&written.to_string()).unwrap();
    assert_eq!(again.encode("a<9>b<3>"), [0, 9, 1, 3]);
    for other in [
        "[]",
        "1",
        r#"{"model": 1}"#,
        r#"{"model": []}"#,
        r#"{"added_tokens": 1, "model": {"vocab": {"a": 7}}}"#,
    ] {
        assert!(Tokenizer::from_json(other).is_err(), "{other}");
    }
    // A gap among the model's own tokens is refused.
    file["model"]["vocab"]["b"] = json!(2);
    assert!(Tokenizer::from_json(&file.to_string()).err().unwrap().to_string().contains("out of range"));
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let fixture = fixture();
    let file =
        &fixture["cases"].as_array().unwrap().iter().find(|case| case["name"] == "gpt2").unwrap()["file"];
    for (part, value, name) in [
        ("decoder", json!({"type": "CTC", "pad_token": "<pad>"}), "CTC"),
        ("normalizer", json!({"type": "Upside"}), "Upside"),
        ("pre_tokenizer", json!({"type": "FixedLength", "length": 5}), "FixedLength"),
        (
            "pre_tokenizer",
            json!({"type": "Split", "pattern": {"Regex": "(a)\\1"}, "behavior": "Isolated"}),
            "\\1",
        ),
        ("post_processor", json!({"type": "Other"}), "Other"),
    ] {
        let mut file = file.clone();
        file[part] = value;
        let refused = Tokenizer::from_json(&file.to_string()).err().map(|error| error.to_string());
        assert!(refused.as_ref().is_some_and(|error| error.contains(name)), "{name}: {refused:?}");
    }
    let mut file = file.clone();
    file["model"]["dropout"] = json!(0.1);
    assert!(Tokenizer::from_json(&file.to_string()).err().unwrap().to_string().contains("dropout"));
}
