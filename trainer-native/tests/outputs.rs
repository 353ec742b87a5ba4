//! What is made of a finished run: the report, the export, TensorBoard's file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{Bench, stderr, tiny};

fn trainer(arguments: &[&str], run: &Path) -> Output {
    let (command, options) = arguments.split_first().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    program.arg(command).arg(run).args(options).output().unwrap()
}

fn refused(output: &Output, code: i32, words: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    assert!(stderr(output).contains(words), "{}", stderr(output));
}

#[test]
fn a_finished_run_is_written_up_and_exported_and_an_altered_one_is_not() {
    let bench = Bench::new(&tiny());
    bench.model("run", &["--test-key", "5"]);
    let run = bench.path("run");
    let certificate: serde_json::Value =
        serde_json::from_slice(&std::fs::read(run.join("certificate.json")).unwrap()).unwrap();
    let upper = certificate["guarantee"]["epsilon"]["upper"].as_f64().unwrap().to_string();

    let output = trainer(&["report"], &run);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains(&upper) && page.contains("NOT PRIVATE"));
    assert_eq!(page.matches("<svg").count(), 4, "ε, perplexity, learning rate and noise-to-batch ratio");
    assert!(!page.contains("<script"), "the page runs nothing");

    for (dtype, share) in [("f32", 1.0), ("bf16", 0.5), ("f16", 0.5)] {
        let out = bench.path(dtype);
        let output = trainer(&["export", "--dtype", dtype, "--out", out.to_str().unwrap()], &run);
        assert!(output.status.success(), "{}", stderr(&output));
        let size = |folder: &Path| std::fs::metadata(folder.join("model.safetensors")).unwrap().len() as f64;
        assert!((size(&out) / size(&run) - share).abs() < 0.2);
        let card = std::fs::read_to_string(out.join("README.md")).unwrap();
        assert!(card.contains(&upper) && card.contains("NOT PRIVATE"));
        refused(&trainer(&["export", "--out", out.to_str().unwrap()], &run), 2, "is not empty");
    }

    std::fs::write(run.join("config.json"), "{}").unwrap();
    refused(&trainer(&["report"], &run), 1, "config.json");
    let out = bench.path("after");
    refused(&trainer(&["export", "--out", out.to_str().unwrap()], &run), 1, "config.json");
    assert!(!out.exists());
}
