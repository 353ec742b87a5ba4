//! Tests of what a release leaves behind that was paid for and not finished.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use serde_json::Value;

mod common;
use common::{path, run, succeed, text};

/// A release is paid for when its noise is drawn: what stops the program after that leaves a record that says so.
#[test]
fn a_release_that_is_stopped_before_its_tokenizer_is_written_leaves_a_record_of_what_it_spent() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("v");
    let record = out.join("privacy.json");
    let train = ["train", "--embedded", "--epsilon", "8", "--delta", "1e-6", "--out", path(&out)];
    let stopped = || {
        let mut training = std::process::Command::new(env!("CARGO_BIN_EXE_dp-tokenizer"));
        let training = training.args(train).arg("--overwrite").stderr(std::process::Stdio::null());
        let mut training = training.stdout(std::process::Stdio::null()).spawn().unwrap();
        while !record.exists() {
            assert!(training.try_wait().unwrap().is_none(), "it ended without a record");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        training.kill().unwrap();
        training.wait().unwrap();
        let is_unwritten = !out.join("tokenizer.json").exists();
        let privacy: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
        std::fs::rename(&record, dir.path().join("record.json")).unwrap();
        is_unwritten.then_some(privacy)
    };
    // On a machine that is not stalled, training takes long enough for the first attempt.
    let privacy = (0..5).find_map(|_| stopped()).unwrap();
    std::fs::rename(dir.path().join("record.json"), &record).unwrap();
    assert_eq!(privacy["outcome"], "the budget is spent, and no tokenizer was written");
    assert!(privacy["epsilon"]["upper"].as_f64().unwrap() <= 8.0 && privacy["event"].is_object());
    let inspect = || {
        let done = run(&["inspect", "--tokenizer", path(&out)], "");
        text(&done.stdout) + &text(&done.stderr)
    };
    assert!(inspect().contains("a release whose tokenizer was not written; what it spent counts"));
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures/small.model");
    std::fs::copy(other, out.join("small.model")).unwrap();
    assert!(inspect().contains("the privacy.json beside it is of another tokenizer"));
    // The next release replaces this record by its own.
    succeed(&[&train[..], &["--overwrite"]].concat(), "");
    let privacy: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    assert!(privacy["outcome"].is_null() && privacy["tokenizer_sha256"].is_string());
    // A fault that would stop a release after it is paid for is refused before.
    std::fs::remove_file(out.join("tokenizer.json")).unwrap();
    std::fs::create_dir(out.join("tokenizer.json")).unwrap();
    let refused = run(&[&train[..], &["--overwrite"]].concat(), "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("tokenizer.json is a folder"), "{}", text(&refused.stderr));
    assert!(std::fs::read(&record).unwrap().len() > 100, "the earlier record stays");
}
