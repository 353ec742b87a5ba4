//! Small figures that reveal something about the private text, and hostile input.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::common::{Bench, stderr, tiny};

const SECRET: &str = "Zebedee";

fn program(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trainer-native"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(output)
}

/// An attack on `init`, which took the first record for a header, so that its text became the
/// plan's `text_field`.
#[test]
fn no_cell_of_a_table_gets_into_a_plan_or_a_message() {
    let note = format!("{SECRET} reports fever since Monday, and chest pain when climbing stairs");
    let short = format!("{SECRET} has HIV");
    for first in [
        format!("p1,\"{note}\""),
        format!("p1,{short}"),
        format!("patient,{short}"),
        format!("note,{short}"),
        format!("7,{short}"),
        format!("{short},{short}"),
        format!("p1,\"{SECRET}\nhas HIV\""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("notes.csv"), format!("{first}\n").repeat(30)).unwrap();
        let init = "init notes.csv --units 30 --unit record --epsilon 4 --steps 1 --batch-size 2";
        for arguments in [init.to_owned(), format!("{init} --text-field body --overwrite")] {
            let output = program(folder, &arguments);
            assert!(!said(&output).contains(SECRET), "{arguments}: {}", said(&output));
            let plan = fs::read_to_string(folder.join("plan.json")).unwrap_or_default();
            assert!(!plan.contains(SECRET), "{plan}");
        }
        let named = program(folder, &format!("{init} --overwrite --columns id,text"));
        assert!(named.status.success(), "{}", said(&named));
        let plan: Value = serde_json::from_slice(&fs::read(folder.join("plan.json")).unwrap()).unwrap();
        assert_eq!(plan["data"]["columns"], json!(["id", "text"]));
        let mut forged = plan.clone();
        forged["data"]["text_field"] = note.as_str().into();
        fs::write(folder.join("plan.json"), forged.to_string()).unwrap();
        let refused = program(folder, "train --plan plan.json --dry-run");
        assert_eq!(refused.status.code(), Some(2));
        let message = stderr(&refused);
        assert!(message.contains("data.text_field") && !message.contains(SECRET), "{message}");
    }
}

/// A plan whose unit is a user and whose records are in `notes.jsonl`.
fn of_users(last: &str) -> Bench {
    let mut plan = tiny();
    plan["data"] = json!({ "source": { "path": "notes.jsonl" }, "units": 300, "user_field": "user" });
    plan["privacy"]["unit"] = json!("user");
    plan["training"]["steps"] = json!(2);
    plan["training"]["learning_rate"]["warmup_steps"] = json!(1);
    let bench = Bench::new(&plan);
    let line = |at: usize| format!("{{\"user\": \"u{at}\", \"text\": \"{SECRET} was seen {at} times\"}}\n");
    let text = (0..300).map(line).collect::<String>() + last;
    fs::write(bench.path("notes.jsonl"), text).unwrap();
    bench
}

#[test]
fn records_without_a_user_are_refused_and_the_certificate_says_so() {
    for blank in [r#""""#, r#"" \t""#, r#""\u00a0""#, r#""\u200b""#, "null"] {
        let bench = of_users(&format!("{{\"user\": {blank}, \"text\": \"{SECRET}\"}}\n"));
        let output = bench.run("run", &["--test-key", "3"]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{blank}: {message}");
        assert!(message.contains("every record needs its user") && !message.contains(SECRET), "{message}");
        assert!(!bench.path("run").exists());
    }
    let bench = of_users("");
    bench.model("run", &["--test-key", "3", "--log-file", bench.path("log.txt").to_str().unwrap()]);
    let certificate = fs::read_to_string(bench.path("run/certificate.json")).unwrap();
    for condition in
        ["is refused, before anything is released, unless", "a user, who is not blank", "nobody has two ids"]
    {
        assert!(certificate.contains(condition), "{condition}");
    }
    let log = fs::read_to_string(bench.path("log.txt")).unwrap();
    for figure in ["tokens/s", " left", "MB"] {
        assert!(!log.contains(figure), "{log}");
    }
    assert!(log.contains("step 2/2: ε ≤ "), "{log}");
}

/// Every file below a folder, and the output of commands. Digests, times and identities are masked,
/// because they differ between two runs on one text.
type Outputs = BTreeMap<String, Vec<u8>>;

/// Returns the outputs of all commands on 300 records and, optionally, one more. The mechanisms are
/// frozen: one key draws the same lots and noise, and the additional record is in no lot.
fn outputs(tokenizer: &Value, further: &str) -> Outputs {
    let mut plan = tiny();
    plan["data"] = json!({ "source": { "path": "notes.txt" }, "units": 300 });
    plan["tokenizer"] = tokenizer.clone();
    plan["training"]["steps"] = json!(3);
    plan["training"]["learning_rate"]["warmup_steps"] = json!(1);
    plan["training"]["expected_batch_size"] = json!(4);
    plan["performance"]["checkpoint_every"] = json!(1);
    let bench = Bench::new(&plan);
    let folder = bench.folder.path();
    let line = |at: usize| format!("patient {} was seen {} times with pain\n", at % 7, at % 5);
    fs::write(folder.join("notes.txt"), (0..300).map(line).collect::<String>() + further).unwrap();
    let mut all = Outputs::new();
    for arguments in [
        "train --plan plan.json --out run --test-key 5 --dry-run --json",
        "train --plan plan.json --out run --test-key 5 --log-file log.txt --json",
        "verify run --json",
        "runs . --json",
        "runs .",
        "history run --delta 1e-4 --json",
        "report run --out report.html",
        "export run --out exported",
        "audit --plan plan.json --out audited --test-key 5 --canaries 10 --json",
        "audit --plan plan.json --out tokens --test-key 5 --canaries 10 --new-tokens",
        "init notes.txt --out proposed.json --units 100 --unit record --epsilon 4",
    ] {
        let output = program(folder, arguments);
        // No sum over runs with a known key is told.
        assert!(
            output.status.success() || arguments.starts_with("history"),
            "{arguments}: {}",
            said(&output)
        );
        all.insert(format!("{arguments}: stdout"), masked(&output.stdout, folder));
        all.insert(format!("{arguments}: stderr"), masked(&output.stderr, folder));
    }
    fs::remove_file(folder.join("notes.txt")).unwrap();
    collect(folder, folder, &mut all);
    all
}

fn collect(top: &Path, folder: &Path, all: &mut Outputs) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(top, &path, all);
        } else {
            let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
            all.insert(name, masked(&fs::read(&path).unwrap(), top));
        }
    }
}

fn masked(bytes: &[u8], folder: &Path) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(bytes) else { return bytes.to_vec() };
    let (mut out, mut run) = (String::new(), String::new());
    let text = text.replace(folder.to_str().unwrap(), "FOLDER");
    // The number of progress lines depends on time: "step 2/3: ε ≤ 2.1", without other figures.
    let is_progress = |line: &&str| line.starts_with("step ") && line.split_whitespace().count() == 5;
    let lines: Vec<&str> = text.split('\n').filter(|line| !is_progress(line)).collect();
    for c in lines.join("\n").chars().chain(['\n']) {
        if c.is_ascii_hexdigit() {
            run.push(c);
            continue;
        }
        // The text is longer than any figure: a digest, an identity, or a time.
        let is_identity = run.len() >= 7 && run.chars().any(|c| c.is_ascii_digit());
        out.push_str(if is_identity { "#" } else { &run });
        run.clear();
        out.push(c);
    }
    out.into_bytes()
}

#[test]
fn whatever_is_printed_or_written_is_equal_where_the_mechanisms_are() {
    let vocabulary = json!({ "train": { "model": "unigram", "vocab_size": 420, "release": "sips", "byte_fallback": true } });
    for tokenizer in [json!("bytes"), vocabulary] {
        let one = outputs(&tokenizer, "");
        let further = format!("{SECRET} {}\n", "qxzv".repeat(40));
        let other = outputs(&tokenizer, &further);
        assert!(one.len() > 25, "{:?}", one.keys());
        assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
        for (name, bytes) in &one {
            let is_same = *bytes == other[name];
            // This command tells the owner the number of records and says that it is not private.
            // The comparison must notice it.
            let is_for_owner = name.starts_with("init ") && name.ends_with(": stderr");
            assert!(
                is_same != is_for_owner,
                "{name}: {}\n{}",
                String::from_utf8_lossy(bytes),
                String::from_utf8_lossy(&other[name])
            );
        }
    }
}
