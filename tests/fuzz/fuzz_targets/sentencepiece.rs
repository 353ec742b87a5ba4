//! SentencePiece's `.model`.
#![no_main]

use dp_tokenizer::Tokenizer;
use dp_tokenizer::format::sentencepiece::SentencePieceModel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = SentencePieceModel::from_bytes(bytes) {
        let _ = Tokenizer::from_sentencepiece(&file);
    }
});
