//! Tables, JSON arrays and tagged sentences: any bytes are read or refused, and texts that were written as a table or as an
//! array are read back, one record each.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use dp_tokenizer::corpus::{Source, open};
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("fuzz-tables-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
});

/// The texts of a file with this extension, or the refusal.
fn read(extension: &str, bytes: &[u8]) -> Result<Vec<String>, String> {
    let path = FOLDER.join(format!("a.{extension}"));
    std::fs::write(&path, bytes).expect("a temporary file");
    let records = open(&Source::files([path])).map_err(|refusal| refusal.to_string())?;
    records.map(|record| record.map(|record| record.text).map_err(|refusal| refusal.to_string())).collect()
}

fuzz_target!(|bytes: &[u8]| {
    for extension in ["csv", "tsv", "json", "iob"] {
        if let Err(refusal) = read(extension, bytes) {
            assert!(!refusal.is_empty() && !refusal.contains('\n'), "{refusal}");
        }
    }
    // A zero byte near the beginning would be refused, and a carriage return before a line end belongs to it.
    let texts = String::from_utf8_lossy(bytes).replace(['\0', '\r'], " ");
    let texts: Vec<&str> = texts.split('|').collect();
    let rows: String = texts.iter().map(|text| format!("0,\"{}\"\n", text.replace('"', "\"\""))).collect();
    assert_eq!(read("csv", format!("n,text\n{rows}").as_bytes()), Ok(texts.iter().map(|&t| t.to_owned()).collect()));
    let array = serde_json::to_string_pretty(&texts).expect("strings");
    assert_eq!(read("json", array.as_bytes()), Ok(texts.iter().map(|&t| t.to_owned()).collect()));
});
