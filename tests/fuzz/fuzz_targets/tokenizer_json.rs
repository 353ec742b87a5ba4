//! Hugging Face's `tokenizer.json`.
#![no_main]

use dp_tokenizer::Tokenizer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(tokenizer) = Tokenizer::from_json(text) {
        let _ = tokenizer.to_json();
    }
});
