//! A paraphrase of private records, as a user runs it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::{Bench, ledger, on_public_text, stderr, tiny};
use serde_json::{Value, json};

/// A folder with private records, a public run that writes, and a paraphrase file.
fn bench(change: impl FnOnce(&mut Value)) -> Bench {
    let mut public = on_public_text(&tiny());
    public.as_object_mut().unwrap().remove("evaluation");
    public["training"]["steps"] = json!(5);
    public["model"]["context"] = json!(48);
    let bench = Bench::new(&public);
    bench.model("generator", &[]);
    let record = |at: usize| {
        let (label, text) = [("care", "the dog ran away"), ("play", "a cat slept")][at % 2];
        format!("{}\n", json!({ "kind": label, "text": format!("{text} {at}") }))
    };
    fs::write(bench.path("private.jsonl"), (0..200).map(record).collect::<String>()).unwrap();
    let mut file = json!({
        "name": "notes",
        "data": { "source": { "path": "private.jsonl" }, "label_field": "kind", "units": 200 },
        "labels": ["care", "play"],
        "privacy": { "unit": "record", "relation": "add_or_remove_one", "delta": 1e-4, "epsilon": 4.0 },
        "generator": "generator", "tokens": 12, "top_k": 40, "records": 50
    });
    change(&mut file);
    fs::write(bench.path("paraphrase.json"), file.to_string()).unwrap();
    bench
}

fn command(bench: &Bench, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    command.args(arguments).current_dir(bench.folder.path()).env("XDG_STATE_HOME", bench.path("state"));
    command
}

fn trainer(bench: &Bench, arguments: &[&str]) -> Output {
    command(bench, arguments).output().unwrap()
}

const PARAPHRASE: [&str; 5] = ["paraphrase", "--paraphrase", "paraphrase.json", "--out", "written"];

fn paraphrase(bench: &Bench, options: &[&str]) -> Output {
    trainer(bench, &[&PARAPHRASE[..], options].concat())
}

#[track_caller]
fn succeeds(output: Output) -> String {
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(output: &Output, code: i32, words: &str) {
    let message = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(message.contains(words), "{words}: {message}");
}

fn records(bench: &Bench) -> Vec<Value> {
    let text = fs::read_to_string(bench.path("written/records.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(bench: &Bench) -> Vec<String> {
    let kind = |entry: &Value| entry["kind"].as_str().unwrap().to_owned();
    ledger(&bench.path("written")).iter().map(kind).collect()
}

/// PITFALLS 60.
#[test]
fn the_texts_are_charged_before_a_token_is_drawn_and_the_folder_proves_what_they_cost() {
    let bench = bench(|_| ());
    let shown = succeeds(paraphrase(&bench, &[]));
    assert!(!shown.contains("not covered by any digest: records.jsonl"), "{shown}");
    assert_eq!(
        kinds(&bench),
        ["header", "label_histogram", "label_counts", "texts", "batches", "batches", "completed"]
    );
    let certificate: Value =
        serde_json::from_slice(&fs::read(bench.path("written/certificate.json")).unwrap()).unwrap();
    let upper = certificate["epsilon"]["upper"].as_f64().unwrap();
    assert!(certificate["private"] == true && upper <= 4.0 && upper > 3.9, "{certificate}");
    assert_eq!((&certificate["batches"], &certificate["references"]), (&json!(50), &json!(4)));
    for private in ["texts.json", ".corpus-digest"] {
        assert!(!bench.path("written").join(private).exists(), "{private}");
    }

    assert!(succeeds(trainer(&bench, &["verify", "written"])).starts_with("verified: "));
    let history: Value =
        serde_json::from_str(&succeeds(trainer(&bench, &["history", "written", "--json"]))).unwrap();
    assert!((history["epsilon"]["upper"].as_f64().unwrap() - upper).abs() < 1e-9, "{history}");
    assert!(succeeds(trainer(&bench, &["runs", "."])).contains("written    paraphrase, ε ≤ "));
    let records = records(&bench);
    assert!(records.len() > 30 && records.len() <= 50, "{}", records.len());
    for record in &records {
        assert!(
            ["care", "play"].contains(&record["kind"].as_str().unwrap())
                && record["text"] != ""
                && !record["text"].as_str().unwrap().contains("<pad>"),
            "{record}"
        );
    }
    let card = fs::read_to_string(bench.path("written/records.card.md")).unwrap();
    assert!(card.contains("InvisibleInk") && card.contains("clip of a reference"), "{card}");
    refused(&trainer(&bench, &["report", "written"]), 2, "is the folder of a paraphrase");
    for name in ["records.jsonl", "ledger.jsonl", "paraphrase.json", "certificate.json", "certificate.md"] {
        let path = bench.path("written").join(name);
        let bytes = fs::read(&path).unwrap();
        let changed = String::from_utf8_lossy(&bytes).replacen('4', "3", 1);
        let changed = if changed.as_bytes() == bytes { format!("{changed} ") } else { changed };
        fs::write(&path, changed).unwrap();
        assert_eq!(trainer(&bench, &["verify", "written"]).status.code(), Some(1), "{name}");
        fs::write(&path, bytes).unwrap();
    }
    succeeds(trainer(&bench, &["verify", "written"]));
}

#[test]
fn a_paraphrase_with_a_known_key_is_repeated_to_the_byte_and_never_called_private() {
    let bench = bench(|_| ());
    let [one, other] = [(); 2].map(|()| {
        let _ = fs::remove_dir_all(bench.path("written"));
        let shown = succeeds(paraphrase(&bench, &["--test-key", "7"]));
        assert!(shown.contains("NOT PRIVATE"), "{shown}");
        refused(&trainer(&bench, &["history", "written"]), 2, "NOT PRIVATE");
        (records(&bench), kinds(&bench))
    });
    assert_eq!(one, other);
}

#[test]
fn a_plan_that_trains_on_the_records_must_declare_them_and_pays_for_them() {
    let bench = bench(|_| ());
    succeeds(paraphrase(&bench, &[]));
    let mut plan = tiny();
    plan.as_object_mut().unwrap().remove("evaluation");
    plan["data"] = json!({ "source": { "path": "written/records.jsonl" }, "units": 50 });
    plan["training"]["expected_batch_size"] = json!(10);
    let write = |plan: &Value| fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    write(&plan);
    refused(&bench.run("again", &[]), 2, "made from private text");
    plan["data"]["made_from"] = json!("disjoint_units");
    write(&plan);
    bench.model("again", &[]);
    assert!(succeeds(trainer(&bench, &["verify", "again"])).contains("notes"));
}

/// PITFALLS 60.
#[test]
fn a_batch_whose_text_was_lost_is_not_drawn_by_again() {
    let bench = bench(|file| {
        file["tokens"] = json!(30);
        file["records"] = json!(200);
    });
    let mut process =
        command(&bench, &PARAPHRASE).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = || {
        fs::read_to_string(bench.path("written/ledger.jsonl")).is_ok_and(|text| text.contains("\"batches\""))
    };
    while !begun() {
        assert!(process.try_wait().unwrap().is_none(), "it ended before a batch");
        std::thread::sleep(Duration::from_millis(1));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(!bench.path("written/certificate.json").exists(), "it was too quick to be killed");
    let stopped: Value =
        serde_json::from_str(&succeeds(trainer(&bench, &["history", "written", "--json"]))).unwrap();
    assert!(stopped["epsilon"]["upper"].as_f64().unwrap() > 3.9, "{stopped}");
    succeeds(paraphrase(&bench, &["--resume"]));
    let entries = ledger(&bench.path("written"));
    let of_kind = |kind: &str| entries.iter().filter(|entry| entry["kind"] == kind).count();
    assert_eq!([of_kind("texts"), of_kind("label_histogram"), of_kind("resume")], [1, 1, 1]);
    let mut next = 0;
    for entry in entries.iter().filter(|entry| entry["kind"] == "batches") {
        assert_eq!(entry["first"], json!(next));
        next += entry["count"].as_u64().unwrap();
    }
    assert_eq!(next, 200);
    succeeds(trainer(&bench, &["verify", "written"]));
    // Without the key of the batches a unit could be in a second one.
    refused(&paraphrase(&bench, &[]), 2, "continue it with --resume");
}

#[test]
fn a_private_generator_another_objective_and_prompts_without_room_are_refused_before_anything_is_written() {
    let private = bench(|file| file["generator"] = json!("private"));
    fs::write(private.path("plan.json"), tiny().to_string()).unwrap();
    private.model("private", &[]);
    refused(&paraphrase(&private, &[]), 2, "generator: private: it was made from private text");
    let none = bench(|file| file["generator"] = json!("nothing"));
    refused(&paraphrase(&none, &[]), 2, "generator: nothing: no run");
    let long = bench(|file| file["tokens"] = json!(60));
    refused(&paraphrase(&long, &[]), 2, "leave no room for a private record");
    let unlisted = bench(|file| file["labels"] = json!(["care", "work"]));
    refused(&paraphrase(&unlisted, &[]), 2, "has a label that labels does not list");
    for refused in [private, none, long, unlisted] {
        assert!(!refused.path("written/ledger.jsonl").exists());
    }
}
