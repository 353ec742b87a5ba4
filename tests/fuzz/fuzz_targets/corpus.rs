//! Corpora: JSON lines, plain and compressed. The first byte chooses the file's name.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use dp_tokenizer::corpus::{Source, open};
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("fuzz-corpus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let names = ["a.txt", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.txt.gz", "a.txt.zst"];
    let path = FOLDER.join(names[*choice as usize % names.len()]);
    std::fs::write(&path, rest).expect("a temporary file");
    if let Ok(records) = open(&Source::files([path])) {
        // A small file may unpack to a large one.
        for record in records.take(1000) {
            let _ = record;
        }
    }
});
