//! Several stages on one text: vocabulary, pretraining, fine-tuning. Each is found, declared, charged and verified.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use common::{Bench, stderr, tiny};
use mechanisms::ReleaseMethod;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use training::verify::verify_run;

/// A vocabulary in `vocabulary`, with the statement that `dp-tokenizer train` writes.
fn write_vocabulary(bench: &Bench) {
    let words = [("\u{2581}the".to_owned(), 50.0), ("\u{2581}patient".to_owned(), 9.0)];
    let config = dp_tokenizer::train::UnigramConfig { vocab_size: 400, ..Default::default() };
    let tokenizer = dp_tokenizer::train::unigram(&words, &config).unwrap().tokenizer.to_json();
    let digest: String =
        Sha256::digest(tokenizer.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let statement = json!({
        "id": "5e".repeat(16), "private": true, "reason": "noise under a key from the operating system", "unit": "record",
        "relation": "add_or_remove_one", "event": ReleaseMethod::Sips.event(4.0, 1e-6),
        "accountant": { "version": accountant::VERSION, "method": accountant::METHOD }, "tokenizer_sha256": digest,
    });
    fs::create_dir(bench.path("vocabulary")).unwrap();
    fs::write(bench.path("vocabulary/tokenizer.json"), tokenizer).unwrap();
    fs::write(bench.path("vocabulary/privacy.json"), statement.to_string()).unwrap();
}

/// A plan of a few steps within ε.
fn stage(name: &str, epsilon: f64) -> Value {
    let mut plan = tiny();
    plan["name"] = json!(name);
    plan["privacy"]["epsilon"] = json!(epsilon);
    plan["privacy"]["spare_steps"] = json!(0);
    plan["training"]["steps"] = json!(6);
    plan["evaluation"]["every"] = json!(6);
    plan
}

fn with_tokenizer(mut plan: Value, path: &str, made_from: &str) -> Value {
    plan["tokenizer"] = json!({ "public": { "path": path, "made_from": made_from } });
    plan
}

fn with_checkpoint(plan: Value, folder: &str, made_from: &str) -> Value {
    let mut plan = with_tokenizer(plan, &format!("{folder}/tokenizer.json"), made_from);
    plan["model"]["initial"] = json!({ "checkpoint": folder });
    plan["model"]["checkpoint_made_from"] = json!(made_from);
    plan
}

fn run(bench: &Bench, plan: &Value, out: &str, arguments: &[&str]) -> Output {
    fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    bench.run(out, arguments)
}

fn succeeds(bench: &Bench, plan: &Value, out: &str, arguments: &[&str]) {
    let output = run(bench, plan, out, arguments);
    assert!(output.status.success(), "{out}: {}", stderr(&output));
}

fn refused(bench: &Bench, plan: &Value, words: &[&str]) {
    let output = run(bench, plan, "refused", &[]);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{words:?}: {message}");
    assert!(words.iter().all(|word| message.contains(word)), "{words:?}: {message}");
    assert!(!bench.path("refused").exists(), "{message}");
}

fn certificate(run: &Path) -> Value {
    serde_json::from_slice(&fs::read(run.join("certificate.json")).unwrap()).unwrap()
}

fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trainer-native")).args(arguments).output().unwrap()
}

/// TRUST 3: the stages are certified together, below the sum of their parts, and the last folder alone shows all of them.
#[test]
fn three_stages_on_one_text_are_certified_together_below_the_sum_of_their_parts() {
    let bench = Bench::new(&tiny());
    write_vocabulary(&bench);
    let vocabulary = "vocabulary/tokenizer.json";
    succeeds(&bench, &with_tokenizer(stage("pretraining", 4.0), vocabulary, "same_units"), "pretrained", &[]);
    let tuning = with_checkpoint(stage("tuning", 5.0), "pretrained", "same_units");
    succeeds(&bench, &tuning, "tuned", &[]);
    let tuned = bench.path("tuned");
    // The stages before it are not needed any more.
    fs::remove_dir_all(bench.path("pretrained")).unwrap();
    fs::remove_dir_all(bench.path("vocabulary")).unwrap();
    assert!(verify_run(&tuned).unwrap().private);
    let spent = certificate(&tuned)["guarantee"]["epsilon"]["upper"].as_f64().unwrap();
    assert!(spent <= 5.0 && spent > 4.5, "{spent}");
    let stages = certificate(&tuned)["earlier_stages"].clone();
    let names: Vec<&str> =
        stages.as_array().unwrap().iter().map(|stage| stage["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["vocabulary", "pretraining"]);

    let history = program(&["history", tuned.to_str().unwrap(), "--delta", "1e-4", "--json"]);
    let history: Value = serde_json::from_slice(&history.stdout).unwrap();
    let together = history["epsilon"]["upper"].as_f64().unwrap();
    assert!((together - spent).abs() < 1e-9 * spent, "{together} {spent}");
    let sum = history["sum_of_parts"].as_f64().unwrap();
    assert!(history["stages"].as_array().unwrap().len() == 3 && together < 0.9 * sum, "{together} {sum}");

    // An export carries the whole chain.
    let exported = bench.path("exported");
    let output = program(&["export", tuned.to_str().unwrap(), "--out", exported.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(verify_run(&exported).unwrap().epsilon, verify_run(&tuned).unwrap().epsilon);

    for stage in fs::read_dir(tuned.join("parents")).unwrap().flatten() {
        for file in fs::read_dir(stage.path()).unwrap().flatten() {
            let good = fs::read(file.path()).unwrap();
            let mut bad = good.clone();
            let middle = bad.len() / 2;
            bad[middle] ^= 1;
            fs::write(file.path(), bad).unwrap();
            assert!(verify_run(&tuned).is_err(), "{}: one bit", file.path().display());
            fs::remove_file(file.path()).unwrap();
            assert!(verify_run(&tuned).is_err(), "{}: removed", file.path().display());
            fs::write(file.path(), good).unwrap();
        }
    }
    verify_run(&tuned).unwrap();
}

/// A release whose tokenizer was never written has spent its budget: the history counts it, and no run builds on it.
#[test]
fn a_release_without_a_tokenizer_counts_in_the_history() {
    let bench = Bench::new(&tiny());
    write_vocabulary(&bench);
    let [whole, spent] = ["vocabulary", "spent"].map(|name| bench.path(name));
    fs::create_dir(&spent).unwrap();
    let mut statement: Value =
        serde_json::from_slice(&fs::read(whole.join("privacy.json")).unwrap()).unwrap();
    statement.as_object_mut().unwrap().remove("tokenizer_sha256");
    statement["id"] = json!("50".repeat(16));
    fs::write(spent.join("privacy.json"), statement.to_string()).unwrap();
    let history = |folders: &[&Path], more: &[&str]| {
        let folders: Vec<&str> = folders.iter().map(|folder| folder.to_str().unwrap()).collect();
        program(&[&["history"], folders.as_slice(), &["--delta", "1e-4"], more].concat())
    };
    let of = |folders: &[&Path]| {
        let found: Value = serde_json::from_slice(&history(folders, &["--json"]).stdout).unwrap();
        found["epsilon"]["upper"].as_f64().unwrap()
    };
    assert_eq!(of(&[&spent]), of(&[&whole]), "the same event");
    assert!(of(&[&whole, &spent]) > 1.2 * of(&[&whole]));
    let told = String::from_utf8(history(&[&spent], &[]).stdout).unwrap();
    assert!(told.starts_with("vocabulary (spent, no tokenizer written) ("), "{told}");
    // A tokenizer that the statement does not name does not belong to it.
    fs::copy(whole.join("tokenizer.json"), spent.join("other.json")).unwrap();
    refused(
        &bench,
        &with_tokenizer(stage("a", 6.0), "spent/other.json", "same_units"),
        &["wrote no tokenizer"],
    );
    fs::copy(whole.join("tokenizer.json"), spent.join("tokenizer.json")).unwrap();
    let message = stderr(&history(&[&spent], &[]));
    assert!(message.contains("does not name the tokenizer beside it"), "{message}");
}

/// TRUST 3: the origin of a file is found, and only a declaration that can be true is accepted.
#[test]
fn wrong_declarations_of_what_a_file_was_made_from_are_refused() {
    let bench = Bench::new(&tiny());
    write_vocabulary(&bench);
    succeeds(&bench, &stage("private", 4.0), "private", &[]);
    succeeds(&bench, &stage("test-key", 4.0), "test-key", &["--test-key", "1"]);
    let mut public = stage("public", 4.0);
    public["data"] = json!({ "source": { "embedded": { "records": 300, "seed": 9 } }, "units": 300, "visibility": "public" });
    public["privacy"].as_object_mut().unwrap().remove("epsilon");
    succeeds(&bench, &public, "public", &[]);

    let from = |folder: &str, made_from: &str| with_checkpoint(stage("tuned", 6.0), folder, made_from);
    let field = "model.checkpoint_made_from";
    refused(&bench, &from("private", "public_text"), &[field, "made from private text", "same_units"]);
    refused(&bench, &from("test-key", "public_text"), &[field, "NOT PRIVATE", "disjoint_units"]);
    refused(&bench, &from("test-key", "same_units"), &[field, "NOT PRIVATE"]);
    refused(&bench, &from("public", "same_units"), &[field, "made from public text"]);
    refused(
        &bench,
        &with_tokenizer(stage("a", 6.0), "vocabulary/tokenizer.json", "public_text"),
        &["tokenizer.public.made_from", "made from private text"],
    );
    let mut other = from("private", "same_units");
    other["privacy"]["relation"] = json!("replace_one");
    refused(&bench, &other, &["the same unit and relation"]);
    let mut less = from("private", "same_units");
    less["privacy"]["epsilon"] = json!(3.0);
    refused(&bench, &less, &["privacy.epsilon", "has spent ε up to"]);
    let mut both = from("private", "same_units");
    both["tokenizer"] =
        json!({ "public": { "path": "vocabulary/tokenizer.json", "made_from": "same_units" } });
    fs::copy(bench.path("vocabulary/tokenizer.json"), bench.path("private/tokenizer.json")).unwrap();
    let message = stderr(&run(&bench, &both, "refused", &[]));
    assert!(message.contains("tokenizer.json is not the file that the run wrote"), "{message}");
    // Without its ledger, a private run's model states no cost that could be added up.
    for file in ["ledger.jsonl", "certificate.json", "certificate.md", "plan.json"] {
        fs::remove_file(bench.path("private").join(file)).unwrap();
    }
    refused(&bench, &from("private", "same_units"), &["differentially private", "are missing"]);
    // The weights alone still have their mark.
    fs::create_dir(bench.path("unmarked")).unwrap();
    for file in ["model.safetensors", "tokenizer.json"] {
        fs::copy(bench.path("private").join(file), bench.path("unmarked").join(file)).unwrap();
    }
    fs::copy(bench.path("public/config.json"), bench.path("unmarked/config.json")).unwrap();
    refused(&bench, &from("unmarked", "public_text"), &["differentially private", "are missing"]);
    fs::create_dir(bench.path("bare")).unwrap();
    for file in ["model.safetensors", "config.json", "tokenizer.json"] {
        fs::copy(bench.path("public").join(file), bench.path("bare").join(file)).unwrap();
    }
    refused(&bench, &from("bare", "same_units"), &[field, "no ledger"]);
    succeeds(&bench, &from("bare", "public_text"), "from-bare", &[]);
    succeeds(&bench, &from("public", "public_text"), "from-public", &[]);
    assert!(verify_run(&bench.path("from-public")).unwrap().private);

    // The mark stays.
    let mut disjoint = from("test-key", "disjoint_units");
    disjoint["tokenizer"]["public"]["made_from"] = json!("public_text");
    succeeds(&bench, &disjoint, "marked", &[]);
    let marked = verify_run(&bench.path("marked")).unwrap();
    assert!(!marked.private && marked.epsilon.is_some());
    let config = fs::read_to_string(bench.path("marked/config.json")).unwrap();
    assert!(config.contains("NOT PRIVATE: it builds on test-key"), "{config}");
}

/// Two texts without a common unit: each has its own ε.
#[test]
fn a_run_after_one_on_other_units_keeps_its_own_epsilon() {
    let bench = Bench::new(&tiny());
    succeeds(&bench, &stage("before", 4.0), "before", &[]);
    let mut plan = with_checkpoint(stage("after", 2.0), "before", "disjoint_units");
    plan["tokenizer"]["public"]["made_from"] = json!("public_text");
    plan["data"]["source"] = json!({ "embedded": { "records": 300, "seed": 9 } });
    succeeds(&bench, &plan, "after", &[]);
    let summary = verify_run(&bench.path("after")).unwrap();
    assert!(summary.private && summary.epsilon.unwrap().upper <= 2.0);
    let text = fs::read_to_string(bench.path("after/certificate.md")).unwrap();
    assert!(text.contains("no unit in common with the training text, as the plan declares"), "{text}");
    assert!(text.contains("| before | `disjoint_units` | between 3"), "{text}");
}

/// A run that begins from a trial of a search is charged the whole search, and no sweep begins from private files.
#[test]
fn a_trial_of_a_sweep_counts_with_its_whole_search_and_no_sweep_begins_from_private_text() {
    let bench = Bench::new(&stage("before", 4.0));
    let sweep = |out: &str| {
        let vary = json!({ "training.learning_rate.peak": [1e-3, 1e-2] });
        let sweep =
            json!({ "plan": "plan.json", "vary": vary, "trials": { "all": { "seeds": 1 } }, "epsilon": 6 });
        fs::write(bench.path("sweep.json"), sweep.to_string()).unwrap();
        let [file, out] = ["sweep.json", out].map(|name| bench.path(name).display().to_string());
        program(&["sweep", "--sweep", &file, "--out", &out])
    };
    let output = sweep("swept");
    assert!(output.status.success(), "{}", stderr(&output));
    let whole = certificate(&bench.path("swept"))["epsilon"]["upper"].as_f64().unwrap();

    let tuning = with_checkpoint(stage("after", 8.0), "swept/trials/1-1", "same_units");
    succeeds(&bench, &tuning, "after", &[]);
    assert!(verify_run(&bench.path("after")).unwrap().private);
    let earlier =
        certificate(&bench.path("after"))["earlier_stages"][0]["epsilon"]["upper"].as_f64().unwrap();
    assert!((earlier - whole).abs() < 1e-9 * whole && whole > 5.0, "{earlier} {whole}");
    // Both trials were charged together.
    let trials = ["1-1", "2-1"].map(|name| bench.path("swept/trials").join(name).display().to_string());
    let history = program(&["history", &trials[0], &trials[1], "--delta", "1e-4", "--json"]);
    let history: Value = serde_json::from_slice(&history.stdout).unwrap();
    let together = history["epsilon"]["upper"].as_f64().unwrap();
    assert!((together - whole).abs() < 1e-9 * whole, "{together} {whole}");

    for made_from in ["same_units", "disjoint_units"] {
        let plan = with_checkpoint(stage("next", 9.0), "swept/trials/1-1", made_from);
        fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
        let output = sweep("refused");
        let message = stderr(&output);
        assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.contains("made from") && !bench.path("refused").exists(), "{message}");
    }
}
