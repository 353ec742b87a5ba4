//! Post-processors of a `tokenizer.json`: what is read adds only tokens of the vocabulary, with offsets for each.
#![no_main]

use tokenizer::{OffsetUnit, Tokenizer};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|part: &str| {
    let Ok(part) = serde_json::from_str::<Value>(part) else { return };
    let file = json!({
        "post_processor": part,
        "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1, "b": 2}, "unk_token": "<unk>"},
    });
    let Ok(tokenizer) = Tokenizer::from_json(&file.to_string()) else { return };
    let plain = tokenizer.encode_with_offsets("a", OffsetUnit::Bytes);
    let found = tokenizer.post_process(plain);
    assert_eq!(found.ids.len(), found.offsets.len());
    assert!(found.ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()));
    let again = Tokenizer::from_json(&tokenizer.to_json()).expect("what was written is read");
    assert_eq!(again.post_process(again.encode_with_offsets("a", OffsetUnit::Bytes)), found);
});
