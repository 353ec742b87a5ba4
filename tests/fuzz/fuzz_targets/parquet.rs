//! Corpora in parquet files: text and users from columns.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use dp_tokenizer::corpus::{Files, Source, open};
use libfuzzer_sys::fuzz_target;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    // The reader answers a panic of its library with a refusal; libFuzzer's hook would end the program before. A panic
    // that nobody answers still ends it.
    std::panic::set_hook(Box::new(|_| {}));
    std::env::temp_dir().join(format!("fuzz-{}.parquet", std::process::id()))
});

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("a temporary file");
    for user in [None, Some("user".to_owned())] {
        let mut files = Files::of([FILE.clone()]);
        files.user_field = user;
        let Ok(records) = open(&Source::Files(files)) else { continue };
        // A small file may state a large number of rows.
        for record in records.take(1000) {
            if let Err(refusal) = record {
                assert!(!refusal.to_string().is_empty());
            }
        }
    }
});
