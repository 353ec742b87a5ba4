//! Functions that tests of the command line and of files share.

#![allow(dead_code, reason = "each test uses a part")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

pub mod parquet;
#[path = "../../../tests/src/program.rs"]
mod program;

/// Runs the command line, with `input` as its standard input.
pub fn run(arguments: &[&str], input: &str) -> Output {
    program::run(env!("CARGO_BIN_EXE_dp-tokenizer"), arguments, input)
}

/// Returns what the command line prints, where it must succeed.
pub fn succeed(arguments: &[&str], input: &str) -> String {
    let done = run(arguments, input);
    assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
    text(&done.stdout)
}

/// Returns the one line with which the command line must refuse.
pub fn refusal(arguments: &[&str], input: &str) -> String {
    let done = run(arguments, input);
    let message = text(&done.stderr);
    assert_eq!((done.status.code(), message.lines().count()), (Some(2), 1), "{arguments:?}: {message}");
    message
}

pub fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
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

/// Returns a new folder with one file.
pub fn folder_with(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, text).unwrap();
    (folder, file)
}
