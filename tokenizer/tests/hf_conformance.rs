//! Ids and texts as HF tokenizers gives them; the fixture names the version and how it was made.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use serde_json::Value;
use tokenizer::Tokenizer;

const TOKENIZER: &str = include_str!("fixtures/unigram.json");
const EXPECTED: &str = include_str!("fixtures/unigram_expected.json");

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn every_id_and_text_is_the_one_hf_tokenizers_gives() {
    let tokenizer = Tokenizer::from_json(TOKENIZER).unwrap();
    let expected: Value = serde_json::from_str(EXPECTED).unwrap();
    let cases = expected["encode"].as_array().unwrap();
    assert!(cases.len() > 15);
    for case in cases {
        let text = case["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode(text), ids(&case["ids"]), "{text:?}");
    }
    for case in cases.iter().chain(expected["decode"].as_array().unwrap()) {
        assert_eq!(tokenizer.decode(&ids(&case["ids"])), case["decoded"].as_str().unwrap());
    }
}

#[test]
fn a_tokenizer_written_and_read_again_is_the_same_to_the_byte() {
    let once = Tokenizer::from_json(TOKENIZER).unwrap().to_json();
    assert_eq!(Tokenizer::from_json(&once).unwrap().to_json(), once);
    let (a, b): (Value, Value) =
        (serde_json::from_str(&once).unwrap(), serde_json::from_str(TOKENIZER).unwrap());
    assert_eq!(a, b);
}

#[test]
fn decoding_gives_back_any_text_without_a_literal_mark() {
    let tokenizer = Tokenizer::from_json(TOKENIZER).unwrap();
    let mut encoder = tokenizer.encoder();
    // Every character of Unicode, in runs of 200.
    let all: Vec<char> = (0..=0x10FFFF_u32).filter_map(char::from_u32).filter(|&c| c != '\u{2581}').collect();
    for run in all.chunks(200) {
        let text: String = run.iter().collect();
        assert_eq!(tokenizer.decode(&encoder.encode(&text)), text);
    }
}
