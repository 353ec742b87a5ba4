//! Incorrect input from a user: exit code 2, one line that says what is wrong, where, and how to fix it, no incomplete
//! files, and no private text in the message.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};
use tests::{Outcome, Workplace, altered, tiny_plan};

/// A word of every private text below. No message may contain it.
const SECRET: &str = "xylophonist";

/// Checks that the trainer refused in one line with these parts, and wrote nothing.
fn assert_refused(place: &Workplace, outcome: &Outcome, parts: &[&str]) {
    let Outcome { code, stdout, stderr } = outcome;
    assert_eq!(*code, 2, "{stderr}");
    assert_eq!(stdout, "");
    assert_eq!(stderr.trim_end().lines().count(), 1, "not one line: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "«{part}» is not in: {stderr}");
    }
    assert!(!stderr.contains(SECRET), "the message contains private text: {stderr}");
    assert_eq!(place.list("run"), Vec::<String>::new(), "files were written");
    assert!(!place.path("run").exists(), "the folder was created");
}

fn assert_plan_refused(changes: &[(&str, Value)], parts: &[&str]) {
    let place = Workplace::new();
    assert_refused(&place, &place.train(&altered(tiny_plan(), changes), &[]), parts);
}

/// Trains on a file with these bytes, which the plan declares to hold 200 records.
fn on_text(name: &str, bytes: impl AsRef<[u8]>, changes: &[(&str, Value)]) -> (Workplace, Outcome) {
    let place = Workplace::new();
    place.write(name, bytes);
    let plan = altered(tiny_plan(), &[("/data/source", json!({ "path": name }))]);
    let outcome = place.train(&altered(plan, changes), &[]);
    (place, outcome)
}

#[test]
fn a_plan_that_cannot_be_read_is_refused() {
    let place = Workplace::new();
    assert_refused(
        &place,
        &place.trainer(["--plan", "none.json", "--out", "run"]),
        &["none.json", "check the path"],
    );
    assert_refused(&place, &place.trainer(["--plan", ".", "--out", "run"]), &["is a folder", "plan file"]);
    place.write("latin.json", b"{\"name\": \"caf\xe9\"}");
    assert_refused(
        &place,
        &place.trainer(["--plan", "latin.json", "--out", "run"]),
        &["latin.json", "UTF-8"],
    );
    place.write("empty.json", "");
    assert_refused(
        &place,
        &place.trainer(["--plan", "empty.json", "--out", "run"]),
        &["empty.json", "preset"],
    );
    place.write("nan.json", "{\"version\": 1, \"name\": NaN}");
    assert_refused(&place, &place.trainer(["--plan", "nan.json", "--out", "run"]), &["JSON has no NaN"]);
}

#[test]
fn an_inconsistent_plan_is_refused() {
    assert_plan_refused(&[("/version", json!(2))], &["version: 2", "newer build"]);
    assert_plan_refused(&[("/privacy/delat", json!(1))], &["privacy.delat", "did you mean \"delta\"?"]);
    assert_plan_refused(&[("/privacy/delta", json!(0.005))], &["privacy.delta: 0.005", "1 / data.units"]);
    assert_plan_refused(&[("/training/expected_batch_size", json!(201))], &["expected_batch_size ≤ 200"]);
    assert_plan_refused(&[("/training/steps", json!(-3))], &["training.steps: -3", "whole number"]);
    assert_plan_refused(&[("/training/steps", json!(0))], &["training.steps: 0"]);
    let silent = [("/privacy/noise_multipliers", json!({ "training": 0 }))];
    assert_plan_refused(&silent, &["privacy.noise_multipliers.training: 0", "≥ 0.02"]);
    let weak = [("/privacy/noise_multipliers", json!({ "training": 0.2 }))];
    assert_plan_refused(&weak, &["privacy.epsilon: 8 is promised", "raise privacy.epsilon"]);
    assert_plan_refused(&[("/model/heads", json!(3))], &["model.d_model: 16 with 3 heads"]);
    let huge =
        [("/model/d_model", json!(65536)), ("/model/layers", json!(1024)), ("/model/d_ff", json!(262144))];
    assert_plan_refused(&huge, &["GiB"]);
}

#[test]
fn a_tokenizer_file_that_is_missing_or_broken_is_refused() {
    let public =
        |path: &str| [("/tokenizer", json!({ "public": { "path": path, "made_from": "public_text" } }))];
    assert_plan_refused(&public("none.json"), &["none.json"]);
    let place = Workplace::new();
    place.write("broken.json", "{\"model\": 5}");
    let outcome = place.train(&altered(tiny_plan(), &public("broken.json")), &[]);
    assert_refused(&place, &outcome, &["broken.json"]);
}

#[test]
fn a_text_that_is_missing_or_empty_is_refused() {
    assert_plan_refused(&[("/data/source", json!({ "path": "none.txt" }))], &["data.source", "none.txt"]);
    assert_plan_refused(&[("/data/source", json!({ "path": "." }))], &["data.source"]);
    for nothing in ["", "\n", " \r\n\t\n\n"] {
        let (place, outcome) = on_text("text.txt", nothing, &[]);
        assert_refused(&place, &outcome, &["data.source", "text.txt"]);
    }
    let evaluation = [("/evaluation", json!({ "source": { "path": "none.txt" }, "every": 1 }))];
    assert_plan_refused(&evaluation, &["evaluation.source", "none.txt"]);
}

#[test]
fn another_number_of_units_than_declared_is_refused_where_it_is_public() {
    let exact = [
        ("/privacy/relation", json!("replace_one")),
        ("/privacy/sampling", json!("fixed_size")),
        ("/privacy/epsilon", json!(20.0)),
    ];
    for records in [1, 300] {
        let (place, outcome) = on_text("text.txt", format!("a {SECRET}\n").repeat(records), &exact);
        assert_refused(&place, &outcome, &["data.units: 200 is declared", "fixed_size"]);
    }
}

#[test]
fn a_text_that_is_not_utf8_is_refused_with_its_line() {
    let mut bytes = format!("a {SECRET}\n").repeat(150).into_bytes();
    bytes.extend(b"caf\xe9 noir\n");
    bytes.extend(format!("a {SECRET}\n").repeat(49).into_bytes());
    let (place, outcome) = on_text("text.txt", bytes, &[]);
    assert_refused(&place, &outcome, &["text.txt", "151", "UTF-8"]);
}

/// The file is sparse, so the test writes almost nothing. Zero bytes are valid UTF-8 and do not end a line.
#[test]
fn a_line_of_a_gigabyte_is_refused_without_being_read_whole() {
    let place = Workplace::new();
    let mut file = fs::File::create(place.path("text.txt")).expect("a file");
    // Zero bytes at the beginning alone would tell that it is no text.
    file.write_all(&[b'a'; 1 << 16]).expect("room");
    file.set_len(1 << 30).expect("room for a sparse file");
    let plan = altered(tiny_plan(), &[("/data/source", json!({ "path": "text.txt" }))]);
    assert_refused(&place, &place.train(&plan, &[]), &["text.txt", "line 1"]);
}

#[test]
fn invalid_json_lines_are_refused_with_their_line() {
    let good = format!("{{\"text\": \"a {SECRET}\"}}\n");
    let with_invalid = |line: &str| format!("{}{line}\n{}", good.repeat(100), good.repeat(99));
    for (line, part) in
        [("{\"text\": ", "101"), ("[1]", "101"), ("{\"text\": 5}", "101"), ("{\"body\": \"b\"}", "text")]
    {
        let (place, outcome) = on_text("text.jsonl", with_invalid(line), &[]);
        assert_refused(&place, &outcome, &["text.jsonl", part]);
    }
    let other = [("/data/text_field", json!("body"))];
    let (place, outcome) = on_text("text.jsonl", good.repeat(200), &other);
    assert_refused(&place, &outcome, &["text.jsonl", "body"]);
    let users = [("/privacy/unit", json!("user")), ("/data/user_field", json!("who"))];
    let (place, outcome) = on_text("text.jsonl", good.repeat(200), &users);
    assert_refused(&place, &outcome, &["text.jsonl", "who"]);
}

#[test]
fn a_truncated_compressed_text_is_refused() {
    // The first bytes of a gzip member and of a zstd frame.
    let starts: [(&str, &[u8]); 2] = [
        ("text.txt.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b]),
        ("text.txt.zst", &[0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x79]),
    ];
    for (name, bytes) in starts {
        let (place, outcome) = on_text(name, bytes, &[]);
        assert_refused(&place, &outcome, &[name]);
        let (place, outcome) = on_text(name, "plain text with a wrong extension\n", &[]);
        assert_refused(&place, &outcome, &[name]);
    }
}

#[test]
fn a_folder_with_other_files_is_refused_and_left_unchanged() {
    let place = Workplace::new();
    place.write("run", "a file of the user's");
    let outcome = place.train(&tiny_plan(), &[]);
    assert_eq!((outcome.code, outcome.stderr.trim_end().lines().count()), (2, 1), "{}", outcome.stderr);
    assert_eq!(fs::read(place.path("run")).expect("the file"), b"a file of the user's");

    let place = Workplace::new();
    fs::create_dir(place.path("run")).expect("a folder");
    place.write("run/thesis.tex", "years of work");
    let outcome = place.train(&tiny_plan(), &[]);
    assert_eq!((outcome.code, outcome.stderr.trim_end().lines().count()), (2, 1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("thesis.tex") && outcome.stderr.contains("--out"), "{}", outcome.stderr);
    assert_eq!(place.list("run"), ["thesis.tex"]);
}

#[test]
fn a_finished_run_is_neither_overwritten_nor_continued_with_another_plan() {
    let place = Workplace::new();
    assert_eq!(place.train(&tiny_plan(), &[]).code, 0);
    let weights = fs::read(place.path("run/model.safetensors")).expect("weights");
    let again = place.train(&tiny_plan(), &[]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("--resume") && again.stderr.contains("--out"), "{}", again.stderr);
    let other = place.train(&altered(tiny_plan(), &[("/training/steps", json!(4))]), &["--resume"]);
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("another plan"), "{}", other.stderr);
    assert_eq!(fs::read(place.path("run/model.safetensors")).expect("weights"), weights);
}

/// Permissions do not restrict root, so a path in the process file system replaces the folder there.
#[cfg(target_os = "linux")]
#[test]
fn an_output_folder_that_cannot_be_written_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Workplace::new();
    let folder = place.path("locked");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).expect("permissions");
    let bound = fs::write(folder.join("probe"), "").is_err();
    let out = if bound { "locked/run" } else { "/proc/run" };
    place.write("plan.json", tiny_plan().to_string());
    let outcome = place.trainer(["--plan", "plan.json", "--out", out]);
    assert_refused(&place, &outcome, &[out]);
}

/// A limit on file sizes stands in for a full disk, because it needs no root: a write beyond it fails, as with `ENOSPC`.
#[cfg(unix)]
#[test]
fn a_full_disk_stops_the_run_cleanly_and_resume_finishes_it() {
    let place = Workplace::new();
    let plan = altered(tiny_plan(), &[("/model/d_model", json!(32)), ("/privacy/spare_steps", json!(10))]);
    place.write("plan.json", plan.to_string());
    // 16 blocks of 512 bytes: enough for the plan and the ledger, but not for a checkpoint.
    let script = "ulimit -f 16; exec \"$0\" --plan plan.json --out run";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).arg(tests::trainer_path()).current_dir(place.path(""));
    let outcome = Outcome::from(shell.output().expect("a shell"));
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    let last = outcome.stderr.lines().last().unwrap_or_default();
    assert!(last.contains("free some space") && last.contains("--resume"), "{}", outcome.stderr);
    let left = place.list("run");
    assert!(!left.iter().any(|name| name.ends_with(".tmp")), "incomplete files: {left:?}");
    let resumed = place.train(&plan, &["--resume"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(place.trainer(["verify", "run"]).code, 0);
}
