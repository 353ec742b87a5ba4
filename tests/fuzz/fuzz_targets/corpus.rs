//! Corpora of text, JSON lines and counts, plain and compressed, told apart by their first bytes.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use dp_tokenizer::corpus::{Source, open, read_counts};
use dp_tokenizer::count::Words;
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("fuzz-corpus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let packed = match bytes {
        [0x1f, 0x8b, ..] => ".gz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ".zst",
        _ => "",
    };
    for kind in ["txt", "jsonl"] {
        let path = FOLDER.join(format!("a.{kind}{packed}"));
        std::fs::write(&path, bytes).expect("a temporary file");
        if let Ok(records) = open(&Source::files([path.clone()])) {
            // A small file may unpack to a large one.
            for record in records.take(1000) {
                if let Err(refusal) = record {
                    assert!(!refusal.to_string().is_empty());
                }
            }
        }
        if kind == "txt"
            && let Ok(counts) = read_counts(&[path], Words::ByClass)
        {
            assert!(counts.iter().all(|(_, count)| *count > 0.0));
        }
    }
});
