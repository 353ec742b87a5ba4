//! SentencePiece's `.model`.
#![no_main]

use tokenizer::Tokenizer;
use tokenizer::sentencepiece::SentencePieceModel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = SentencePieceModel::from_bytes(bytes) else { return };
    let _ = SentencePieceModel::from_bytes(&file.to_bytes()).expect("what was written is read");
    let Ok(tokenizer) = Tokenizer::from_sentencepiece(&file) else { return };
    let ids = tokenizer.encode("A word, ▁and 1 ünïcode 語 \u{0}");
    let _ = tokenizer.decode(&ids);
});
