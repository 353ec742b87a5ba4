//! Several processes with one output, and processes that are killed.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

mod common;
use common::{path, text};

const SECRET: &str = "Zebedee";

fn spawn(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dp-tokenizer"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Both processes used to end with success, and only the statement of one was left.
#[test]
fn of_several_releases_into_one_folder_at_once_one_spends_and_its_statement_stays() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("v");
    let budgets = ["1", "2", "4", "8"];
    let train = |epsilon: &&str| {
        spawn(&[
            "train",
            "--embedded",
            "--vocab-size",
            "400",
            "--delta",
            "1e-6",
            "--epsilon",
            epsilon,
            "--out",
            path(&out),
        ])
    };
    let children: Vec<Child> = budgets.iter().map(train).collect();
    let done: Vec<Output> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let spent: Vec<&str> = budgets
        .iter()
        .zip(&done)
        .filter(|(_, done)| done.status.success())
        .map(|(budget, _)| *budget)
        .collect();
    assert_eq!(spent.len(), 1, "{done:?}");
    for refused in done.iter().filter(|done| !done.status.success()) {
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("another process uses it") || said.contains("exists"), "{said}");
    }
    let statement: Value = serde_json::from_slice(&std::fs::read(out.join("privacy.json")).unwrap()).unwrap();
    let upper = statement["epsilon"]["upper"].as_f64().unwrap();
    let budget: f64 = spent[0].parse().unwrap();
    assert!(upper <= budget && upper > 0.9 * budget, "{upper} of {budget}");
    assert_eq!(names(&out), ["privacy.json", "tokenizer.json", "tokenizer_config.json"]);
}

/// Two conversions used to leave the statement of one and the tokenizer of the other.
#[test]
fn a_conversion_into_a_folder_that_another_process_writes_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("vocab.txt");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures/vocab.txt");
    let convert = ["convert", "--allow-rare-differences", "--tokenizer", model, "--out", path(&out)];
    let other = durable::ExclusiveFile::take(&dir.path().join(".lock")).unwrap();
    let refused = spawn(&convert).wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("another process uses it"), "{}", text(&refused.stderr));
    drop(other);
    assert!(names(dir.path()).is_empty());
    assert!(spawn(&convert).wait_with_output().unwrap().status.success());
    assert_eq!(names(dir.path()), ["vocab.txt"]);
}

#[test]
fn a_killed_encoder_leaves_nothing_that_the_next_start_does_not_take_over() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("notes.tokens");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures/small.model");
    let encode = ["encode", "--format", "text", "--input", "-", "--tokenizer", model, "--out", path(&out)];
    let partial = dir.path().join(".notes.tokens.partial");
    let mut killed = spawn(&encode);
    let lines = format!("{SECRET} has a cough\n").repeat(1000);
    killed.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
    while !partial.exists() {
        assert!(killed.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    // While the process runs, no other one writes there.
    let other = spawn(&encode).wait_with_output().unwrap();
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("another process uses it"), "{}", text(&other.stderr));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(names(dir.path()), [".notes.tokens.partial"], "one file, of a known name");
    assert_eq!(partial.metadata().unwrap().mode() & 0o777, 0o600);
    let mut next = spawn(&encode);
    next.stdin.take().unwrap().write_all(b"another text\n").unwrap();
    assert!(next.wait_with_output().unwrap().status.success());
    assert_eq!(names(dir.path()), ["notes.tokens"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_counter_leaves_no_text() {
    let dir = tempfile::tempdir().unwrap();
    let (out, spill) = (dir.path().join("part.run"), dir.path().join("spill"));
    std::fs::create_dir(&spill).unwrap();
    let mut killed = spawn(&[
        "count",
        "--format",
        "text",
        "--input",
        "-",
        "--shard",
        "1/1",
        "--out",
        path(&out),
        "--memory",
        "32M",
        "--spill-folder",
        path(&spill),
    ]);
    let opened = format!("/proc/{}/fd", killed.id());
    let is_spilling = || {
        let links =
            std::fs::read_dir(&opened).unwrap().flatten().filter_map(|link| link.path().read_link().ok());
        links.into_iter().any(|file| file.starts_with(&spill))
    };
    // The text has more distinct words than the memory holds.
    let mut text = (0_u32..).map(|at| format!("{SECRET}{at} w{at}\n"));
    while !is_spilling() {
        let lines: String = text.by_ref().take(10_000).collect();
        killed.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(names(&spill).is_empty(), "{:?}", names(&spill));
    assert_eq!(names(dir.path()), ["spill"]);
}
