//! BERT's `vocab.txt`; GPT-2's `vocab.json` and, after the first empty line, `merges.txt`.
#![no_main]

use tokenizer::Tokenizer;
use tokenizer::format::{gpt2, vocab_txt};
use tokenizer::normalize::BertNormalizer;
use libfuzzer_sys::fuzz_target;

fn used(tokenizer: &Tokenizer) {
    let ids = tokenizer.encode("A word, and 1 ünïcode 語 \u{0}");
    let _ = tokenizer.decode(&ids);
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(vocabulary) = vocab_txt::read(bytes)
        && let Ok(tokenizer) = Tokenizer::bert(vocabulary, BertNormalizer::uncased())
    {
        used(&tokenizer);
    }
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    if let Ok(vocabulary) = gpt2::read_vocab(&bytes[..end])
        && let Ok(merges) = gpt2::read_merges(bytes.get(end + 2..).unwrap_or_default())
        && let Ok(tokenizer) = Tokenizer::gpt2(vocabulary, merges)
    {
        used(&tokenizer);
    }
});
