//! `privacy.json`, as `dp-tokenizer inspect` reads and tells it.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../dp-tokenizer/src/cli/statement.rs"]
mod statement;

fuzz_target!(|bytes: &[u8]| {
    let told = statement::in_words(&statement::parse(bytes));
    assert!(!told.is_empty());
});
