//! Hugging Face's `tokenizer.json`: what is read encodes, and is written as it was.
#![no_main]

use tokenizer::Tokenizer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(tokenizer) = Tokenizer::from_json(text) else { return };
    let ids = tokenizer.encode("A word, ▁and 1 ünïcode 語 \u{0}");
    let _ = tokenizer.decode(&ids);
    let written = tokenizer.to_json();
    let again = Tokenizer::from_json(&written).expect("what was written is read");
    assert_eq!(again.to_json(), written);
});
