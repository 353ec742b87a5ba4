//! BERT's `vocab.txt`, GPT-2's `vocab.json` and `merges.txt`.
#![no_main]

use dp_tokenizer::format::{gpt2, vocab_txt};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = vocab_txt::read(bytes);
    let _ = gpt2::read_vocab(bytes);
    let _ = gpt2::read_merges(bytes);
});
