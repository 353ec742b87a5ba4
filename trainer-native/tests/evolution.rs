//! Private Evolution, as a user runs it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use common::{Bench, ledger, on_public_text, stderr, tiny};
use serde_json::{Value, json};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Two kinds of records, and public texts of which some are like each of them.
const KINDS: [(&str, &str); 2] = [("care", "the dog ran away"), ("play", "a cat slept under the chair")];

/// A folder with private records, public texts, an embedding and an evolution file.
fn bench(change: impl FnOnce(&mut Value)) -> Bench {
    let bench = Bench::new(&tiny());
    fs::create_dir(bench.path("bert")).unwrap();
    for file in [
        "network/tests/vectors/bert_tiny/config.json",
        "network/tests/vectors/bert_tiny/model.safetensors",
        "training/tests/vectors/bert_score/tokenizer.json",
    ] {
        let from = Path::new(VECTORS).join(file);
        fs::copy(&from, bench.path("bert").join(from.file_name().unwrap())).unwrap();
    }
    let record = |at: usize| {
        let (label, text) = KINDS[at % 2];
        format!("{}\n", json!({ "kind": label, "text": format!("{text} {at} private notes of number {at}") }))
    };
    fs::write(bench.path("private.jsonl"), (0..200).map(record).collect::<String>()).unwrap();
    let public = |at: usize| format!("{} on public page {at} of {}\n", KINDS[at % 2].1, at * at);
    fs::write(bench.path("public.txt"), (0..60).map(public).collect::<String>()).unwrap();
    let mut file = json!({
        "name": "notes",
        "data": { "source": { "path": "private.jsonl" }, "label_field": "kind", "units": 200 },
        "labels": ["care", "play"],
        "privacy": { "unit": "record", "relation": "add_or_remove_one", "delta": 1e-4, "epsilon": 4.0 },
        "candidates": { "texts": "public.txt" },
        "embedding": "bert", "rounds": 3, "population": 20, "records": 30
    });
    change(&mut file);
    fs::write(bench.path("evolution.json"), file.to_string()).unwrap();
    bench
}

fn trainer(bench: &Bench, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trainer-native"))
        .args(arguments)
        .current_dir(bench.folder.path())
        .env("XDG_STATE_HOME", bench.path("state"))
        .output()
        .unwrap()
}

fn evolve(bench: &Bench, options: &[&str]) -> Output {
    trainer(bench, &[&["evolve", "--evolution", "evolution.json", "--out", "evolved"], options].concat())
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
    let text = fs::read_to_string(bench.path("evolved/records.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_round_is_charged_before_its_votes_and_the_folder_proves_what_it_cost() {
    let bench = bench(|_| ());
    let shown = succeeds(evolve(&bench, &[]));
    assert!(
        shown.contains("for all that was released")
            && !shown.contains("not covered by any digest: records.jsonl"),
        "{shown}"
    );
    let kinds: Vec<String> = ledger(&bench.path("evolved"))
        .iter()
        .map(|entry| entry["kind"].as_str().unwrap().to_owned())
        .collect();
    let votes = ["votes", "vote_counts"].repeat(3);
    assert_eq!(kinds, [&["header"][..], &votes, &["completed"]].concat());
    let certificate: Value =
        serde_json::from_slice(&fs::read(bench.path("evolved/certificate.json")).unwrap()).unwrap();
    let upper = certificate["epsilon"]["upper"].as_f64().unwrap();
    assert!(certificate["private"] == true && upper <= 4.0 && upper > 3.9, "{certificate}");
    assert_eq!((&certificate["rounds"], &certificate["lost_rounds"]), (&json!(3), &json!(0)));

    assert!(succeeds(trainer(&bench, &["verify", "evolved"])).starts_with("verified: "));
    let history: Value =
        serde_json::from_str(&succeeds(trainer(&bench, &["history", "evolved", "--json"]))).unwrap();
    assert!((history["epsilon"]["upper"].as_f64().unwrap() - upper).abs() < 1e-9, "{history}");
    let proof = trainer(&bench, &["history", "evolved", "evolved/records.proof", "--json"]);
    let proof: Value = serde_json::from_str(&succeeds(proof)).unwrap();
    assert_eq!(proof["stages"].as_array().unwrap().len(), 1, "the copy is the same stage: {proof}");
    assert!(succeeds(trainer(&bench, &["runs", "."])).contains("evolved  evolution, ε ≤ "));

    let public = fs::read_to_string(bench.path("public.txt")).unwrap();
    let public: BTreeSet<&str> = public.lines().collect();
    let records = records(&bench);
    assert_eq!(records.len(), 30);
    for record in &records {
        assert!(public.contains(record["text"].as_str().unwrap()), "{record}");
        assert!(["care", "play"].contains(&record["kind"].as_str().unwrap()), "{record}");
    }
    let card = fs::read_to_string(bench.path("evolved/records.card.md")).unwrap();
    assert!(
        card.contains("| records | 30 |")
            && card.contains("No word of these records was taken from a private record"),
        "{card}"
    );
}

/// The votes of 200 records at ε = 4,000 have no noise to speak of: texts like the records of a label are what it gets.
#[test]
fn the_texts_of_a_label_are_those_nearest_to_its_records() {
    let bench = bench(|file| {
        file["privacy"]["epsilon"] = json!(4000.0);
        // The label of each record is that of the other kind of texts for half of the population.
        file["rounds"] = json!(4);
    });
    succeeds(evolve(&bench, &["--test-key", "3"]));
    let alike = |record: &&Value| {
        let of_label = KINDS.iter().find(|(label, _)| record["kind"] == *label).unwrap();
        record["text"].as_str().unwrap().starts_with(of_label.1)
    };
    let right = records(&bench).iter().filter(alike).count();
    assert!(right >= 27, "{right} of 30, where chance gives 15");
}

#[test]
fn a_plan_that_trains_on_the_records_must_declare_them_and_pays_for_them() {
    // More than half of the public texts are chosen, whatever the votes are.
    let bench = bench(|file| {
        (file["rounds"], file["population"], file["records"]) = (json!(1), json!(60), json!(200));
    });
    succeeds(evolve(&bench, &[]));
    let mut plan = tiny();
    plan.as_object_mut().unwrap().remove("evaluation");
    plan["data"] = json!({ "source": { "path": "evolved/records.jsonl" }, "units": 200 });
    plan["training"]["expected_batch_size"] = json!(10);
    let write = |plan: &Value| fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    write(&plan);
    refused(&bench.run("again", &[]), 2, "made from private text");
    plan["data"]["made_from"] = json!("disjoint_units");
    write(&plan);
    bench.model("again", &[]);
    let certificate = fs::read_to_string(bench.path("again/certificate.md")).unwrap();
    assert!(certificate.contains("half is the same (the candidates of notes)"), "{certificate}");
    assert!(succeeds(trainer(&bench, &["verify", "again"])).contains("notes"));
    // So does a plan whose checkpoint was trained on the text that the candidates come from.
    let mut pretrained = on_public_text(&tiny());
    pretrained.as_object_mut().unwrap().remove("evaluation");
    pretrained["name"] = json!("pretrained");
    pretrained["data"]["source"] = json!({ "path": "public.txt" });
    pretrained["data"]["units"] = json!(60);
    pretrained["training"]["expected_batch_size"] = json!(10);
    write(&pretrained);
    bench.model("base", &[]);
    let mut onwards = plan.clone();
    onwards["model"]["initial"] = json!({ "checkpoint": "base" });
    onwards["model"]["checkpoint_made_from"] = json!("public_text");
    onwards["tokenizer"] = json!({ "public": { "path": "base/tokenizer.json", "made_from": "public_text" } });
    write(&onwards);
    bench.model("onwards", &[]);
    let certificate = fs::read_to_string(bench.path("onwards/certificate.md")).unwrap();
    assert!(certificate.contains("half is the same (pretrained, the candidates of notes)"), "{certificate}");
    // The proof in the run's folder is verified with it.
    let parent = fs::read_dir(bench.path("again/parents")).unwrap().next().unwrap().unwrap().path();
    let file = fs::read_to_string(parent.join("evolution.json")).unwrap();
    fs::write(parent.join("evolution.json"), file.replace("4.0", "3.0")).unwrap();
    refused(&trainer(&bench, &["verify", "again"]), 1, "notes");
    // Other records than those of the ledger are compared with the texts that were called public.
    let public = fs::read_to_string(bench.path("public.txt")).unwrap();
    let of_public: String = public.lines().map(|text| format!("{}\n", json!({ "text": text }))).collect();
    fs::write(bench.path("evolved/records.jsonl"), of_public).unwrap();
    plan["data"]["units"] = json!(60);
    write(&plan);
    refused(&bench.run("other", &[]), 2, "in the text of the candidates of notes, which was declared public");
}

#[test]
fn whatever_is_changed_in_the_folder_is_found() {
    let bench = bench(|_| ());
    succeeds(evolve(&bench, &[]));
    for name in ["records.jsonl", "ledger.jsonl", "evolution.json", "certificate.json", "certificate.md"] {
        let path = bench.path("evolved").join(name);
        let bytes = fs::read(&path).unwrap();
        let changed = String::from_utf8_lossy(&bytes).replacen('3', "4", 1);
        assert_ne!(changed.as_bytes(), bytes, "{name}");
        fs::write(&path, changed).unwrap();
        assert_eq!(trainer(&bench, &["verify", "evolved"]).status.code(), Some(1), "{name}");
        fs::write(&path, bytes).unwrap();
    }
    succeeds(trainer(&bench, &["verify", "evolved"]));
    refused(&trainer(&bench, &["report", "evolved"]), 2, "is the folder of an evolution");
}

#[test]
fn a_finished_evolution_is_verified_again_and_another_begins_elsewhere() {
    let bench = bench(|_| ());
    refused(&evolve(&bench, &["--resume"]), 2, "leave out --resume");
    assert!(!bench.path("evolved").exists());
    succeeds(evolve(&bench, &[]));
    let before = fs::read(bench.path("evolved/ledger.jsonl")).unwrap();
    refused(&evolve(&bench, &[]), 2, "continue it with --resume");
    succeeds(evolve(&bench, &["--resume"]));
    assert_eq!(fs::read(bench.path("evolved/ledger.jsonl")).unwrap(), before);
    let file = fs::read_to_string(bench.path("evolution.json")).unwrap();
    fs::write(bench.path("evolution.json"), file.replace("4.0", "5.0")).unwrap();
    refused(&evolve(&bench, &["--resume"]), 2, "with another evolution file");
}

#[test]
fn an_evolution_with_a_known_key_is_repeated_to_the_byte_and_never_called_private() {
    let [one, other] = [(); 2].map(|()| {
        let bench = bench(|_| ());
        let shown = succeeds(evolve(&bench, &["--test-key", "7"]));
        assert!(shown.contains("NOT PRIVATE"), "{shown}");
        let certificate = fs::read_to_string(bench.path("evolved/certificate.md")).unwrap();
        assert!(certificate.contains("NOT PRIVATE"), "{certificate}");
        refused(&trainer(&bench, &["history", "evolved"]), 2, "NOT PRIVATE");
        (records(&bench), ledger(&bench.path("evolved")))
    });
    assert_eq!(one, other);
}

#[test]
fn a_public_run_writes_candidates_and_a_private_one_is_refused() {
    let bench = bench(|file| {
        file["candidates"] = json!({ "run": "generator" });
        file["tokens"] = json!(12);
        file["records"] = json!(40);
    });
    fs::write(bench.path("plan.json"), tiny().to_string()).unwrap();
    bench.model("generator", &[]);
    refused(&evolve(&bench, &[]), 2, "candidates.run: generator: it was made from private text");
    fs::remove_dir_all(bench.path("generator")).unwrap();
    let mut public = on_public_text(&tiny());
    public.as_object_mut().unwrap().remove("evaluation");
    fs::write(bench.path("plan.json"), public.to_string()).unwrap();
    bench.model("generator", &[]);
    succeeds(evolve(&bench, &["--test-key", "1"]));
    let records = records(&bench);
    assert!(records.len() == 40 && records.iter().all(|record| record["text"] != ""), "{records:?}");
    let header = &ledger(&bench.path("evolved"))[0];
    assert_eq!(
        header["public_stages"].as_array().unwrap().len(),
        1,
        "the generator's text is known: {header}"
    );
}

/// PITFALLS 59: what is not charged must not come from private text.
#[test]
fn public_texts_that_have_private_records_and_unknown_labels_are_refused_before_anything_is_written() {
    let shared = bench(|_| ());
    let private = fs::read_to_string(shared.path("private.jsonl")).unwrap();
    let texts: String = private
        .lines()
        .map(|line| format!("{}\n", serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap()))
        .collect();
    let public = fs::read_to_string(shared.path("public.txt")).unwrap();
    fs::write(shared.path("public.txt"), &texts).unwrap();
    refused(&evolve(&shared, &[]), 2, "was declared public and used without noise");
    let few: String = texts.lines().take(6).map(|text| format!("{text}\n")).collect();
    fs::write(shared.path("public.txt"), public + &few).unwrap();
    refused(&evolve(&shared, &[]), 2, "candidates.texts: it shares text with the training text");

    let unlisted = bench(|file| file["labels"] = json!(["care", "work"]));
    refused(&evolve(&unlisted, &[]), 2, "has a label that labels does not list");
    let few = bench(|file| file["population"] = json!(200));
    refused(&evolve(&few, &[]), 2, "candidates.texts: 60 different texts");
    let none = bench(|file| file["embedding"] = json!("nothing"));
    refused(&evolve(&none, &[]), 2, "embedding: nothing");
    for refused in [shared, unlisted, few, none] {
        assert!(!refused.path("evolved/ledger.jsonl").exists());
    }
}
