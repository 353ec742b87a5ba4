//! Earlier releases that a certificate must not forget.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::common::{Bench, stderr, tiny};
use mechanisms::ReleaseMethod;

const DELTA: &str = "1e-4";

fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trainer-native")).args(arguments).output().unwrap()
}

fn history(folders: &[&Path]) -> Output {
    let folders: Vec<&str> = folders.iter().map(|folder| folder.to_str().unwrap()).collect();
    program(&[&["history"], folders.as_slice(), &["--delta", DELTA, "--json"]].concat())
}

/// The upper end of ε of these folders together, and the number of stages.
fn together(folders: &[&Path]) -> (f64, usize) {
    let output = history(folders);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    (found["epsilon"]["upper"].as_f64().unwrap(), found["stages"].as_array().unwrap().len())
}

/// The statement of a release as `dp-tokenizer train` writes it.
fn statement(id: &str) -> Value {
    json!({
        "id": id, "private": true, "reason": "noise under a key from the operating system", "unit": "record",
        "relation": "add_or_remove_one", "event": ReleaseMethod::Sips.event(4.0, 1e-6),
        "accountant": { "version": accountant::VERSION, "method": accountant::METHOD }, "tokenizer_sha256": "ab".repeat(32),
    })
}

fn write_statement(path: &Path, statement: &Value) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, statement.to_string()).unwrap();
}

/// A private run of a few steps.
fn short(name: &str) -> Value {
    let mut plan = tiny();
    plan["name"] = json!(name);
    plan["privacy"]["epsilon"] = json!(4.0);
    plan["training"]["steps"] = json!(6);
    plan["evaluation"]["every"] = json!(6);
    plan
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().flatten().filter(|file| file.path().is_file()) {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// Leaves the first `lines` lines of a ledger and the beginning of the next, as a killed process
/// does.
fn cut(run: &Path, lines: usize, torn: usize) {
    let path = run.join("ledger.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let whole: String = text.split_inclusive('\n').take(lines).collect();
    let next: String = text.split_inclusive('\n').nth(lines).unwrap_or_default().chars().take(torn).collect();
    fs::write(&path, whole + &next).unwrap();
    for file in ["certificate.json", "certificate.md", "model.safetensors"] {
        let _ = fs::remove_file(run.join(file));
    }
}

/// Lines of a ledger up to and with its n-th step.
fn lines_until_step(run: &Path, step: usize) -> usize {
    let text = fs::read_to_string(run.join("ledger.jsonl")).unwrap();
    let steps = text.lines().enumerate().filter(|(_, line)| line.contains("\"kind\":\"step\""));
    steps.map(|(line, _)| line + 1).nth(step - 1).unwrap()
}

/// TRUST B1: two releases that look alike count as two, and one release with two names counts as
/// one.
#[test]
fn releases_are_counted_by_their_id_and_not_by_their_looks() {
    let bench = Bench::new(&tiny());
    let [one, two, copied, spent] = ["one", "two", "copied", "spent"].map(|name| bench.path(name));
    write_statement(&one.join("privacy.json"), &statement(&"1a".repeat(16)));
    write_statement(&two.join("privacy.json"), &statement(&"2b".repeat(16)));
    write_statement(&copied.join("privacy.json"), &statement(&"1a".repeat(16)));
    let mut before = statement(&"1a".repeat(16));
    before.as_object_mut().unwrap().remove("tokenizer_sha256");
    write_statement(&spent.join("privacy.json"), &before);
    let (single, stages) = together(&[&one]);
    assert_eq!(stages, 1);
    let (both, stages) = together(&[&one, &two]);
    assert!(stages == 2 && both > 1.2 * single, "{both} {single}");
    assert_eq!(together(&[&one, &copied, &spent, &one]), (single, 1), "the same release");
    // A copy with changed figures is not a state of the same release.
    let mut cheaper = statement(&"1a".repeat(16));
    cheaper["event"] = json!(ReleaseMethod::Sips.event(40.0, 1e-6));
    write_statement(&copied.join("privacy.json"), &cheaper);
    assert!(together(&[&copied, &one]).0 > single);
    // Without an id, one release could pass for another.
    let mut unnamed = statement("");
    unnamed.as_object_mut().unwrap().remove("id");
    write_statement(&copied.join("privacy.json"), &unnamed);
    let output = history(&[&copied]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("it has no id"), "{}", stderr(&output));
}

/// TRUST B3: a release that `dp-tokenizer train --overwrite` replaced stays on record.
#[test]
fn releases_that_were_overwritten_count_in_the_history() {
    let bench = Bench::new(&tiny());
    let folder = bench.path("vocabulary");
    write_statement(&folder.join("privacy.json"), &statement(&"1a".repeat(16)));
    let (single, _) = together(&[&folder]);
    write_statement(&folder.join("privacy.1.json"), &statement(&"2b".repeat(16)));
    write_statement(&folder.join("privacy.12.json"), &statement(&"3c".repeat(16)));
    let (all, stages) = together(&[&folder]);
    assert!(stages == 3 && all > 1.5 * single, "{all} {single}");
    fs::remove_file(folder.join("privacy.json")).unwrap();
    assert_eq!(together(&[&folder]).1, 2, "also where nothing took their place");
}

/// TRUST C10: a run counts by its ledger however it stopped, and the states of one run count once.
#[test]
fn runs_that_stopped_count_by_their_ledgers_and_each_run_once() {
    let bench = Bench::new(&short("short"));
    bench.model("run", &[]);
    let [run, half, torn, early, begun] =
        ["run", "half", "torn", "early", "begun"].map(|name| bench.path(name));
    for state in [&half, &torn, &early, &begun] {
        copy(&run, state);
    }
    cut(&half, lines_until_step(&run, 3), 0);
    cut(&torn, lines_until_step(&run, 3), 40);
    cut(&early, lines_until_step(&run, 4), 0);
    cut(&begun, 1, 0);
    let (whole, _) = together(&[&run]);
    let (three, stages) = together(&[&half]);
    assert!(stages == 1 && three < whole && three > 0.3 * whole, "{three} {whole}");
    assert_eq!(
        together(&[&torn]),
        together(&[&early]),
        "an unfinished line is charged as the step it may have reserved"
    );
    // States of one run, in every order.
    for folders in [[&half, &run, &early], [&run, &early, &half], [&early, &half, &run]] {
        assert_eq!(together(&folders.map(|path| path.as_path())), (whole, 1));
    }
    assert_eq!(together(&[&half, &early]), together(&[&early]));
    let told = program(&["history", half.to_str().unwrap(), "--delta", DELTA]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.starts_with("short (") && told.contains(", not finished): ε ≤ "), "{told}");
    // A run that spent nothing counts as nothing.
    assert_eq!(together(&[&begun, &half]), (three, 1));
    let message = stderr(&history(&[&begun]));
    assert!(message.contains("nothing adds up"), "{message}");
    // One altered byte is not believed.
    let path = early.join("ledger.jsonl");
    let text = fs::read_to_string(&path).unwrap().replacen("\"attempt\":1", "\"attempt\":2", 1);
    fs::write(&path, text).unwrap();
    let output = history(&[&early]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

fn refusal(bench: &Bench, plan: &Value) -> String {
    fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    let output = bench.run("refused", &[]);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
    assert!(!bench.path("refused").exists(), "{message}");
    message
}

/// TRUST B2: a plan declares the origin of a file, or it is refused with the possible values and
/// their meaning.
#[test]
fn a_plan_writes_what_its_tokenizer_and_its_checkpoint_were_made_from() {
    let bench = Bench::new(&tiny());
    let mut plan = tiny();
    plan["tokenizer"] = json!({ "public": { "path": "tokenizer.json" } });
    let message = refusal(&bench, &plan);
    let values = ["public_text", "same_units", "disjoint_units", "no private text"];
    assert!(message.contains("tokenizer.public.made_from: missing"), "{message}");
    assert!(values.iter().all(|value| message.contains(value)), "{message}");
    plan["tokenizer"]["public"]["made_from"] = json!("public_text");
    plan["model"]["initial"] = json!({ "checkpoint": "base" });
    let message = refusal(&bench, &plan);
    assert!(message.contains("model.checkpoint_made_from: missing"), "{message}");
    assert!(values.iter().all(|value| message.contains(value)), "{message}");
}

/// TRUST B2: the tokenizer of a private run is recognized by its mark, under any name and without
/// the run's folder.
#[test]
fn a_tokenizer_of_a_private_run_is_known_without_its_folder() {
    let (bench, run) = super::common::finished_run();
    let id = super::common::ledger(&run)[0]["id"].clone();
    let certificate: Value =
        serde_json::from_slice(&fs::read(run.join("certificate.json")).unwrap()).unwrap();
    assert!(id.as_str().unwrap().len() == 32 && certificate["id"] == id);
    let text = fs::read_to_string(run.join("certificate.md")).unwrap();
    assert!(text.contains(&format!("| id of the run | `{}` |", id.as_str().unwrap())));
    fs::copy(run.join("tokenizer.json"), bench.path("words.json")).unwrap();
    let named = |made_from: &str| {
        let mut plan = tiny();
        plan["tokenizer"] = json!({ "public": { "path": "words.json", "made_from": made_from } });
        plan
    };
    for made_from in ["public_text", "same_units", "disjoint_units"] {
        let message = refusal(&bench, &named(made_from));
        assert!(message.contains("its mark says") && message.contains(id.as_str().unwrap()), "{message}");
    }
    let mut extended = tiny();
    extended["tokenizer"] =
        json!({ "extend": { "path": "words.json", "added_tokens": 10, "release": "sips" } });
    assert!(refusal(&bench, &extended).contains("its mark says"));
    // Without a mark nothing is found, and the certificate says exactly that.
    let mut file: Value = serde_json::from_slice(&fs::read(bench.path("words.json")).unwrap()).unwrap();
    file["model"].as_object_mut().unwrap().remove("privacy");
    fs::write(bench.path("words.json"), file.to_string()).unwrap();
    fs::write(bench.path("plan.json"), named("public_text").to_string()).unwrap();
    bench.model("declared", &[]);
    let text = fs::read_to_string(bench.path("declared/certificate.md")).unwrap();
    assert!(text.contains("No mark in it or beside it says that private text made it."), "{text}");
    assert!(text.contains("is a declaration of the plan, which no program can check."), "{text}");
    // A statement of private text is only about the file that it names.
    fs::create_dir(bench.path("other")).unwrap();
    fs::rename(bench.path("words.json"), bench.path("other/words.json")).unwrap();
    write_statement(&bench.path("other/privacy.json"), &statement(&"1a".repeat(16)));
    let mut plan = named("public_text");
    plan["tokenizer"]["public"]["path"] = json!("other/words.json");
    assert!(refusal(&bench, &plan).contains("is of private text and names another file"));
}

/// The weights and adapters of a private run name it, in every format that this program writes.
#[test]
fn the_weights_of_a_private_run_name_it_without_its_folder() {
    let (bench, run) = super::common::finished_run();
    let id = super::common::ledger(&run)[0]["id"].as_str().unwrap().to_owned();
    let base = bench.path("base");
    let exported = bench.path("exported");
    let [from, to] = [&run, &exported].map(|path| path.to_str().unwrap());
    assert!(program(&["export", from, "--out", to, "--dtype", "bf16"]).status.success());
    let mut plan = tiny();
    plan["tokenizer"] = json!({ "public": { "path": "base/tokenizer.json", "made_from": "public_text" } });
    plan["model"]["initial"] = json!({ "checkpoint": "base" });
    plan["model"]["checkpoint_made_from"] = json!("public_text");
    for (folder, without_config) in [(&run, false), (&run, true), (&exported, false), (&exported, true)] {
        fs::create_dir_all(&base).unwrap();
        for file in ["model.safetensors", "config.json", "tokenizer.json"] {
            fs::copy(folder.join(file), base.join(file)).unwrap();
        }
        if without_config {
            let mut config: Value =
                serde_json::from_slice(&fs::read(base.join("config.json")).unwrap()).unwrap();
            assert_eq!(config["privacy_id"], json!(id));
            config.as_object_mut().unwrap().retain(|name, _| !name.starts_with("privacy"));
            fs::write(base.join("config.json"), config.to_string()).unwrap();
        }
        let message = refusal(&bench, &plan);
        assert!(message.contains(&format!("names the run {id}")), "{message}");
    }
    let mut public = super::common::on_public_text(&short("public"));
    public["training"]["steps"] = json!(6);
    fs::write(bench.path("plan.json"), public.to_string()).unwrap();
    bench.model("public", &[]);
    let mut adapted = short("adapted");
    adapted["model"]["initial"] = json!({ "checkpoint": "public" });
    adapted["model"]["checkpoint_made_from"] = json!("public_text");
    adapted["tokenizer"] =
        json!({ "public": { "path": "public/tokenizer.json", "made_from": "public_text" } });
    adapted["model"]["trainable"] = json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": ["c_fc"] } });
    fs::write(bench.path("plan.json"), adapted.to_string()).unwrap();
    bench.model("adapted", &[]);
    let file = fs::read(bench.path("adapted/adapter/adapter_model.safetensors")).unwrap();
    let id = &super::common::ledger(&bench.path("adapted"))[0]["id"];
    assert!(String::from_utf8_lossy(&file).contains(&format!("\"privacy_id\":{id}")));

    // Adapters on a model with merged adapters, which is all that is copied of it.
    let merged = bench.path("merged");
    fs::create_dir(&merged).unwrap();
    for file in ["model.safetensors", "config.json"] {
        fs::copy(bench.path("adapted").join(file), merged.join(file)).unwrap();
    }
    let mut twice = adapted.clone();
    twice["name"] = json!("twice");
    twice["model"]["initial"] = json!({ "checkpoint": "merged" });
    let message = refusal(&bench, &twice);
    assert!(message.contains(&format!("names the run {}", id.as_str().unwrap())), "{message}");
}

/// TRUST B2: records written by the model of a private run are a stage, whatever a plan calls them.
#[test]
fn records_that_a_private_run_wrote_are_declared_charged_and_verified() {
    let bench = Bench::new(&short("writer"));
    bench.model("run", &[]);
    let [run, records] = ["run", "records.jsonl"].map(|name| bench.path(name).display().to_string());
    let drawn = program(&["synthesize", &run, "--out", &records, "--count", "40", "--tokens", "12"]);
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    let on_records = |visibility: &str, made_from: Option<&str>| {
        let mut plan = short("reader");
        plan["data"] =
            json!({ "source": { "path": "records.jsonl" }, "units": 40, "visibility": visibility });
        plan["training"]["expected_batch_size"] = json!(8);
        plan["privacy"]["epsilon"] = json!(6.0);
        if visibility == "public" {
            plan = super::common::on_public_text(&plan);
        }
        if let Some(made_from) = made_from {
            plan["data"]["made_from"] = json!(made_from);
        }
        plan
    };
    for visibility in ["private", "public"] {
        for made_from in [None, Some("public_text")] {
            let message = refusal(&bench, &on_records(visibility, made_from));
            assert!(
                message.contains("data.made_from") && message.contains("made from private text"),
                "{message}"
            );
        }
    }
    let epsilon = |run: &Path| -> Value {
        serde_json::from_slice::<Value>(&fs::read(run.join("certificate.json")).unwrap()).unwrap()
    };
    for (visibility, made_from) in
        [("private", "same_units"), ("private", "disjoint_units"), ("public", "disjoint_units")]
    {
        let out = format!("{visibility}-{made_from}");
        fs::write(bench.path("plan.json"), on_records(visibility, Some(made_from)).to_string()).unwrap();
        bench.model(&out, &[]);
        let verified = program(&["verify", bench.path(&out).to_str().unwrap()]);
        assert!(verified.status.success(), "{}", stderr(&verified));
        let certificate = epsilon(&bench.path(&out));
        let stage = &certificate["earlier_stages"][0];
        assert_eq!(
            (&stage["name"], &stage["made_from"]),
            (&json!("writer"), &json!(made_from)),
            "{certificate}"
        );
        assert_eq!(stage["id"], super::common::ledger(&bench.path("run"))[0]["id"]);
        assert!(
            certificate["assumptions"]
                .to_string()
                .contains("A model of an earlier stage wrote training text")
        );
    }
    let (alone, _) = together(&[&bench.path("run")]);
    let both = epsilon(&bench.path("private-same_units"))["guarantee"]["epsilon"]["upper"].as_f64().unwrap();
    assert!(both > alone && both <= 6.0, "{both} {alone}");
    // Without a proof, a declaration states no cost that could be charged.
    fs::remove_dir_all(bench.path("records.proof")).unwrap();
    let message = refusal(&bench, &on_records("private", Some("same_units")));
    assert!(message.contains("data.made_from") && message.contains(".proof"), "{message}");
}

/// B2: `generate` writes text of a private run as `synthesize` does.
#[test]
fn text_that_a_private_run_generated_is_no_public_text() {
    let bench = Bench::new(&short("writer"));
    bench.model("run", &[]);
    let at = |name: &str| bench.path(name).display().to_string();
    fs::write(bench.path("prompts.txt"), "A patient was seen\n".repeat(40)).unwrap();
    let options = ["--prompts", &at("prompts.txt"), "--tokens", "12", "--out", &at("text.jsonl")];
    let generated = program(&[&["generate", &at("run")], options.as_slice()].concat());
    assert!(generated.status.success(), "{}", stderr(&generated));
    let mut plan = short("reader");
    plan["data"] = json!({ "source": { "path": "text.jsonl" }, "units": 40, "visibility": "public" });
    let message = refusal(&bench, &super::common::on_public_text(&plan));
    assert!(message.contains("data.made_from") && message.contains("made from private text"), "{message}");
}

/// The counterpart of B2: figures on records that a private run wrote are figures on the text of
/// that run.
#[test]
fn evaluation_text_that_a_private_run_wrote_is_declared_charged_and_verified() {
    let bench = Bench::new(&short("writer"));
    bench.model("run", &[]);
    let [run, records] = ["run", "records.jsonl"].map(|name| bench.path(name).display().to_string());
    let drawn = program(&["synthesize", &run, "--out", &records, "--count", "40", "--tokens", "12"]);
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    let evaluated_on = |records: &str, made_from: Option<&str>| {
        let mut plan = short("reader");
        plan["data"]["source"]["embedded"]["seed"] = json!(77);
        plan["privacy"]["epsilon"] = json!(6.0);
        plan["evaluation"]["source"] = json!({ "path": records });
        if let Some(made_from) = made_from {
            plan["evaluation"]["made_from"] = json!(made_from);
        }
        plan
    };
    std::os::unix::fs::symlink("records.jsonl", bench.path("link.jsonl")).unwrap();
    for records in ["records.jsonl", "link.jsonl"] {
        for made_from in [None, Some("public_text")] {
            let plan = evaluated_on(records, made_from);
            for plan in [super::common::on_public_text(&plan), plan] {
                let message = refusal(&bench, &plan);
                assert!(
                    message.contains("evaluation.made_from") && message.contains("made from private text"),
                    "{message}"
                );
            }
        }
    }
    for made_from in ["same_units", "disjoint_units"] {
        fs::write(bench.path("plan.json"), evaluated_on("records.jsonl", Some(made_from)).to_string())
            .unwrap();
        bench.model(made_from, &[]);
        let verified = program(&["verify", bench.path(made_from).to_str().unwrap()]);
        assert!(verified.status.success(), "{}", stderr(&verified));
        let certificate: Value =
            serde_json::from_slice(&fs::read(bench.path(made_from).join("certificate.json")).unwrap())
                .unwrap();
        let stage = &certificate["earlier_stages"][0];
        assert_eq!((&stage["name"], &stage["made_from"]), (&json!("writer"), &json!(made_from)));
        let sentence = "A model of an earlier stage wrote evaluation text";
        assert!(certificate["assumptions"].to_string().contains(sentence), "{certificate}");
    }
    let (alone, _) = together(&[&bench.path("disjoint_units")]);
    let (both, stages) = together(&[&bench.path("same_units")]);
    assert!(stages == 2 && both > alone && both <= 6.0, "{both} {alone}");
    // Text that a command line calls public has no such declaration.
    fs::write(bench.path("plan.json"), evaluated_on("records.jsonl", Some("disjoint_units")).to_string())
        .unwrap();
    assert_is_no_public_text(&bench, &records);
    // Without a proof, a declaration states no cost that could be charged.
    fs::remove_dir_all(bench.path("records.proof")).unwrap();
    let message = refusal(&bench, &evaluated_on("records.jsonl", Some("same_units")));
    assert!(message.contains("evaluation.made_from") && message.contains(".proof"), "{message}");
}

/// Checks that the records of a private run are refused as text of a rehearsal and as a reference.
fn assert_is_no_public_text(bench: &Bench, records: &str) {
    let at = |name: &str| bench.path(name).display().to_string();
    let rehearsed =
        program(&["rehearse", "--plan", &at("plan.json"), "--public", records, "--out", &at("trials")]);
    let compared = program(&["quality", records, "--reference", &at("link.jsonl")]);
    for (option, output) in [("--public", rehearsed), ("--reference", compared)] {
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{option}: {message}");
        assert!(
            message.contains(&format!("{option}: the model of a private run wrote this text")),
            "{message}"
        );
    }
    assert!(!bench.path("trials").exists());
}
