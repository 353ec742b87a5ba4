//! `verify` accepts only what a run wrote.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::PathBuf;

use common::{Bench, tiny_with_vocabulary};
use training::RunError;
use training::verify::verify_run;

fn finished() -> (Bench, PathBuf) {
    let bench = Bench::new(&tiny_with_vocabulary());
    bench.model("run", &["--test-key", "5"]);
    let run = bench.path("run");
    (bench, run)
}

#[test]
fn one_flipped_bit_in_any_file_fails_verification() {
    let (_bench, run) = finished();
    verify_run(&run).unwrap();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&run)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.metadata().unwrap().len() > 0)
        .collect();
    files.sort();
    assert_eq!(files.len(), 12, "{files:?}");
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    for trial in 0..200 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let path = &files[trial % files.len()];
        let original = std::fs::read(path).unwrap();
        let mut bytes = original.clone();
        let index = (state >> 16) as usize % bytes.len();
        bytes[index] ^= 1 << (state >> 61);
        std::fs::write(path, &bytes).unwrap();
        let refused = verify_run(&run);
        assert!(refused.is_err(), "{} byte {index} was flipped unseen", path.display());
        std::fs::write(path, &original).unwrap();
    }
    verify_run(&run).unwrap();
}

#[test]
fn removed_lines_and_files_fail_verification() {
    let (_bench, run) = finished();
    let path = run.join("ledger.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for removed in 0..lines.len() {
        let kept: String =
            lines.iter().enumerate().filter(|(index, _)| *index != removed).map(|(_, line)| *line).collect();
        std::fs::write(&path, kept).unwrap();
        assert!(matches!(verify_run(&run), Err(RunError::Verification(_))), "line {removed}");
    }
    std::fs::write(&path, &text).unwrap();
    verify_run(&run).unwrap();
    std::fs::remove_file(run.join("model.safetensors")).unwrap();
    assert!(verify_run(&run).is_err());
}

/// A certificate with another ε is refused by name.
#[test]
fn the_command_says_what_failed_and_exits_1() {
    let (_bench, run) = finished();
    let path = run.join("certificate.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"upper\": ", "\"upper\": 0")).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_trainer-native"))
        .arg("verify")
        .arg(&run)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(common::stderr(&output).contains("certificate.json"));
    assert!(output.stdout.is_empty());
}
