//! What tests of the command line and of files share.

#![allow(dead_code, reason = "each test uses a part")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

pub mod parquet;
#[path = "../../../tests/src/program.rs"]
mod program;

/// The command line, with `input` as its standard input.
pub fn run(arguments: &[&str], input: &str) -> Output {
    program::run(env!("CARGO_BIN_EXE_dp-tokenizer"), arguments, input)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// A new folder with one file.
pub fn folder_with(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, text).unwrap();
    (folder, file)
}
