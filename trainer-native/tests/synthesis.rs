//! Synthetic records of a finished run, as a user makes them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::process::{Command, Output};

use common::{Bench, ledger, stderr, tiny};
use serde_json::{Value, json};

/// `synthesize` with a run's folder `run` and an output of this name.
fn synthesize(bench: &Bench, out: &str, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trainer-native"))
        .arg("synthesize")
        .arg(bench.path("run"))
        .arg("--out")
        .arg(bench.path(out))
        .args(options)
        .output()
        .unwrap()
}

#[track_caller]
fn written(bench: &Bench, out: &str, options: &[&str]) -> String {
    let output = synthesize(bench, out, options);
    assert!(output.status.success(), "{}", stderr(&output));
    fs::read_to_string(bench.path(out)).unwrap()
}

#[track_caller]
fn refused(bench: &Bench, out: &str, options: &[&str], words: &str) {
    let output = synthesize(bench, out, options);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{options:?}: {message}");
    assert!(message.contains(words), "{options:?}: {message}");
}

const TEN: [&str; 6] = ["--count", "10", "--batch", "4", "--tokens", "12"];

#[test]
fn records_have_the_runs_certificate_and_an_interrupted_synthesis_goes_on_to_the_same_bytes() {
    let bench = Bench::new(&tiny());
    bench.model("run", &["--test-key", "5"]);
    let whole = written(&bench, "whole.jsonl", &TEN);
    let records: Vec<Value> = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(records.len() == 10 && records.iter().all(|record| record["text"].is_string()), "{whole}");
    let read = |name: &str| fs::read_to_string(bench.path(name)).unwrap();
    for name in ["certificate.json", "certificate.md"] {
        assert_eq!(read(&format!("whole.{name}")), read(&format!("run/{name}")));
    }
    let certificate: Value = serde_json::from_str(&read("run/certificate.json")).unwrap();
    let card = read("whole.card.md");
    let upper = certificate["guarantee"]["epsilon"]["upper"].as_f64().unwrap();
    let epsilon = format!("**{}**", cli::rounded_up(upper, 4));
    assert!(card.contains(&epsilon) && card.contains("| records | 10 |"), "{card}");
    // A test key makes a run and its records not private.
    assert!(card.contains("NOT PRIVATE"), "{card}");

    // The process is killed in the middle of a line. The same command continues with the seed that
    // was drawn.
    let cut: String = whole.lines().take(4).map(|line| format!("{line}\n")).collect();
    fs::write(bench.path("whole.jsonl.partial"), cut + "{\"te" + &"x".repeat(9_999)).unwrap();
    fs::remove_file(bench.path("whole.jsonl")).unwrap();
    assert_eq!(written(&bench, "whole.jsonl", &TEN), whole);
    assert!(!bench.path("whole.jsonl.partial").exists());

    refused(&bench, "whole.jsonl", &TEN, "exists; remove it or choose another name");
    fs::remove_file(bench.path("whole.jsonl")).unwrap();
    let other = ["--count", "10", "--temperature", "0.7", "--tokens", "12"];
    refused(&bench, "whole.jsonl", &other, "other records were begun there");
    refused(&bench, "text.json", &TEN, "ends in .jsonl");
    refused(&bench, "text.jsonl", &["--count", "0"], "1..");
    refused(&bench, "text.jsonl", &["--count", "3", "--beams", "2"], "always the same");
    assert!(!bench.path("text.synthesis.json").exists());
    let weights = fs::read(bench.path("run/model.safetensors")).unwrap();
    fs::write(bench.path("run/model.safetensors"), [&weights[..], b"x"].concat()).unwrap();
    assert_eq!(synthesize(&bench, "text.jsonl", &TEN).status.code(), Some(1), "the run is verified first");
}

/// A label is the input and its text the target, so the records can train a plan with the same
/// fields.
#[test]
fn a_model_of_labels_and_texts_writes_both_in_the_shares_that_are_asked_for() {
    let mut plan = tiny();
    plan["data"] = json!({
        "source": { "path": "train.jsonl" }, "units": 200, "text_field": "kind.label", "target_field": "text"
    });
    plan["training"]["objective"] = json!("text_to_text");
    plan["model"]["context"] = json!(24);
    plan.as_object_mut().unwrap().remove("evaluation");
    let bench = Bench::new(&plan);
    let record = |at: usize| {
        let (label, text) = if at.is_multiple_of(2) { ("joy", "ha ha") } else { ("anger", "grr") };
        format!("{}\n", json!({ "kind": { "label": label }, "text": text }))
    };
    fs::write(bench.path("train.jsonl"), (0..200).map(record).collect::<String>()).unwrap();
    bench.model("run", &[]);
    refused(&bench, "text.jsonl", &TEN, "--prompts: missing");
    fs::write(bench.path("labels.jsonl"), "{\"text\":\"joy\",\"weight\":4}\n{\"text\":\"anger\"}\n").unwrap();
    let labels = bench.path("labels.jsonl");
    let options = ["--count", "100", "--tokens", "5", "--seed", "1", "--prompts", labels.to_str().unwrap()];
    let text = written(&bench, "text.jsonl", &options);
    let joy = text.lines().filter(|line| line.contains("\"joy\"")).count();
    assert!((65..=93).contains(&joy), "{joy} of 100, where 80 are expected");
    let card = fs::read_to_string(bench.path("text.card.md")).unwrap();
    assert!(card.contains(&format!("| joy | {joy} |")) && !card.contains("NOT PRIVATE"), "{card}");
    plan["data"]["source"] = json!({ "path": "text.jsonl" });
    plan["data"]["made_from"] = json!("disjoint_units");
    plan["data"]["units"] = json!(100);
    plan["training"]["expected_batch_size"] = json!(10);
    fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    bench.model("again", &[]);
}

/// Two private steps at a tiny rate teach nothing: that words suit their label is what the release counted.
#[test]
fn a_start_from_words_by_label_writes_the_words_of_each_label_at_no_cost() {
    let mut plan = common::labelled_words();
    plan["data"]["text_field"] = json!("label");
    plan["data"]["target_field"] = json!("text");
    plan["data"]["label_histogram"] = json!({ "labels": ["joy", "anger"] });
    plan["training"]["objective"] = json!("text_to_text");
    let record = |at: usize| {
        let label = if at.is_multiple_of(2) { "joy" } else { "anger" };
        format!("{}\n", json!({ "label": label, "text": common::labelled_text(at) }))
    };
    let run = |plan: &Value| {
        let bench = Bench::new(plan);
        fs::write(bench.path("train.jsonl"), (0..4000).map(record).collect::<String>()).unwrap();
        bench.model("run", &["--test-key", "6"]);
        bench
    };
    let plain = run(&plan);
    plan["tokenizer"]["train"]["words"] = json!("pairs_by_label");
    plan["training"]["warm_start"] = json!({ "steps": 300 });
    let bench = run(&plan);
    let events = |bench: &Bench| -> Vec<Value> {
        ledger(&bench.path("run"))
            .iter()
            .map(|entry| entry["event"].clone())
            .filter(|event| !event.is_null())
            .collect()
    };
    assert_eq!(events(&bench), events(&plain));
    let text = written(&bench, "text.jsonl", &["--count", "200", "--tokens", "24", "--seed", "1"]);
    let share = |label: &str, word: &str| {
        let of = |line: &&str| line.contains(&format!("\"{label}\""));
        let all: Vec<&str> = text.lines().filter(of).collect();
        all.iter().filter(|line| line.contains(&format!(" {word}"))).count() as f64 / all.len() as f64
    };
    let right = [share("joy", "glad"), share("anger", "mad")];
    let wrong = [share("joy", "mad"), share("anger", "glad")];
    assert!(
        right.iter().all(|share| *share > 0.8) && wrong.iter().all(|share| *share < 0.1),
        "{right:?} {wrong:?}\n{text}"
    );
}

/// A plan that releases the counts of its labels, and its text: 150 joy, 50 anger, no grief.
fn with_histogram(steps: u64) -> Bench {
    let mut plan = tiny();
    plan["data"] = json!({
        "source": { "path": "train.jsonl" }, "units": 200, "text_field": "label", "target_field": "text",
        "label_histogram": { "labels": ["anger", "grief", "joy"], "noise_multiplier": 4 }
    });
    plan["training"]["objective"] = json!("text_to_text");
    plan["training"]["steps"] = json!(steps);
    plan["model"]["context"] = json!(24);
    plan.as_object_mut().unwrap().remove("evaluation");
    let bench = Bench::new(&plan);
    let record = |at: usize| {
        let (label, text) = if at.is_multiple_of(4) { ("anger", "grr") } else { ("joy", "ha ha") };
        format!("{}\n", json!({ "label": label, "text": text }))
    };
    fs::write(bench.path("train.jsonl"), (0..200).map(record).collect::<String>()).unwrap();
    bench
}

#[test]
fn label_counts_are_charged_before_training_and_decide_the_mixture() {
    let bench = with_histogram(6);
    bench.model("run", &["--test-key", "3"]);
    let run = bench.path("run");
    let kinds: Vec<String> =
        ledger(&run).iter().map(|line| line["kind"].as_str().unwrap().to_owned()).collect();
    let at = |kind: &str| kinds.iter().position(|known| known == kind).unwrap();
    assert!(at("label_histogram") < at("label_counts") && at("label_counts") < at("step"), "{kinds:?}");
    let certificate: Value =
        serde_json::from_slice(&fs::read(run.join("certificate.json")).unwrap()).unwrap();
    let spent = certificate["ledger"]["charges"].as_array().unwrap();
    let own = &certificate["mechanisms"]["label_histogram"];
    assert!(own.to_string().contains("4.0"), "{own}");
    assert!(spent.iter().any(|charge| charge["event"] == *own && charge["count"] == 1), "{spent:?}");
    let counts: Value = serde_json::from_slice(&fs::read(run.join("labels.json")).unwrap()).unwrap();
    // Noise of standard deviation 4 with a known key, so that the test does not depend on chance.
    for (place, (label, wanted)) in [("anger", 50), ("grief", 0), ("joy", 150)].into_iter().enumerate() {
        assert_eq!(counts[place]["label"], label);
        assert!((counts[place]["count"].as_i64().unwrap() - wanted).abs() < 20, "{counts}");
    }
    let text = written(&bench, "text.jsonl", &["--count", "200", "--tokens", "4", "--seed", "1"]);
    let joy = text.lines().filter(|line| line.contains("\"joy\"")).count();
    // 75 % of 200, with five standard deviations of the binomial and the noise of the counts.
    assert!((105..=190).contains(&joy), "{joy} of 200");

    // The counts were charged, and a kill lost them: they are not released a second time.
    let lost = with_histogram(5000);
    let path = lost.path("run/ledger.jsonl");
    let mut child = lost.command("run", &["--quiet"]).spawn().unwrap();
    let trains = || fs::read_to_string(&path).is_ok_and(|ledger| ledger.contains("\"kind\":\"step\""));
    while !trains() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its first step");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.split_inclusive('\n').take(at("label_counts")).collect::<String>()).unwrap();
    let _ = fs::remove_file(lost.path("run/checkpoint.safetensors"));
    // This simulates a process that ended there: nothing later was recorded outside the folder.
    fs::remove_dir_all(lost.path("state")).unwrap();
    let resumed = lost.run("run", &["--resume"]);
    assert!(stderr(&resumed).contains("release of the label counts was interrupted"), "{}", stderr(&resumed));
}

#[test]
fn a_label_that_the_plan_does_not_list_is_refused_before_anything_is_written() {
    let bench = with_histogram(6);
    let text = fs::read_to_string(bench.path("train.jsonl")).unwrap().replacen("joy", "Secret", 1);
    fs::write(bench.path("train.jsonl"), text).unwrap();
    let output = bench.run("run", &[]);
    let message = stderr(&output);
    assert!(output.status.code() == Some(2) && message.contains("record 2 has a label that"), "{message}");
    assert!(!message.contains("Secret") && !bench.path("run").exists(), "{message}");
}
