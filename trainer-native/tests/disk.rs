//! A full disk leaves a run that can resume, and no partial file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::process::Command;

use common::{Bench, stderr, tiny};
use training::verify::verify_run;

/// A limit on file sizes simulates a full disk: a write fails in the middle, with its own error.
#[test]
fn a_full_disk_is_one_clear_line_and_the_run_goes_on_to_the_same_weights() {
    let bench = Bench::new(&tiny());
    let whole = bench.model("whole", &["--test-key", "5"]);
    let mut stopped = 0;
    // Limits in blocks of 512 bytes: in the header, the tokenizer, several ledger lines, the
    // checkpoint and the model.
    for blocks in [1, 2, 10, 20, 30, 36, 40, 64] {
        let out = format!("full{blocks}");
        let script = format!(
            "ulimit -f {blocks}; exec '{}' --plan '{}' --out '{}' --test-key 5",
            env!("CARGO_BIN_EXE_trainer-native"),
            bench.path("plan.json").display(),
            bench.path(&out).display()
        );
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{blocks} blocks: {}", stderr(&output));
        let message = stderr(&output);
        let last = message.lines().last().unwrap();
        assert!(last.contains("free some space") && last.contains("--resume"), "{last}");
        for entry in std::fs::read_dir(bench.path(&out)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.ends_with(".tmp"), "{blocks} blocks left {name}");
        }
        stopped += 1;
        assert_eq!(bench.model(&out, &bench.resumed(&out, &["--test-key", "5"])), whole, "{blocks} blocks");
        verify_run(&bench.path(&out)).unwrap();
    }
    assert_eq!(stopped, 8);
}
