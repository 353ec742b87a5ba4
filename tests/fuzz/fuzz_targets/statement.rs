//! `privacy.json`, as `dp-tokenizer inspect` reads and tells it.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// What the statement's code takes from its command line.
mod output {
    use sha2::{Digest, Sha256};

    pub fn sha256_hex(bytes: &[u8]) -> String {
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[path = "../../../dp-tokenizer/src/cli/statement.rs"]
mod statement;

fuzz_target!(|bytes: &[u8]| {
    let told = statement::in_words(&statement::parse(bytes));
    assert!(!told.is_empty());
});
