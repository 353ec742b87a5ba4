//! Tests of what a run shows and hides.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;

use common::{Bench, ledger, reservations, stderr, tiny, tiny_with_vocabulary};
use serde_json::{Value, json};
use training::infer::Evaluation;
use training::verify::verify_run;

/// PITFALLS 7: the key comes from the operating system, is new in each process, and is written nowhere.
#[test]
fn two_private_runs_of_one_plan_differ_and_are_called_private() {
    let bench = Bench::new(&tiny());
    assert_ne!(bench.model("a", &[]), bench.model("b", &[]));
    for out in ["a", "b"] {
        assert!(verify_run(&bench.path(out)).unwrap().private);
        assert_eq!(ledger(&bench.path(out))[0]["randomness"], "operating_system");
        let text = std::fs::read_to_string(bench.path(out).join("certificate.md")).unwrap();
        assert!(!text.contains("NOT PRIVATE"), "{text}");
    }
}

/// PITFALLS 7: a known key marks the run in every output.
#[test]
fn a_test_key_or_a_baseline_is_marked_not_private_everywhere() {
    let bench = Bench::new(&tiny());
    for (out, arguments) in [("key", &["--test-key", "1"][..]), ("plain", &["--non-private"][..])] {
        let output = bench.run(out, arguments);
        assert!(output.status.success());
        assert!(stderr(&output).contains("NOT PRIVATE"));
        assert!(String::from_utf8(output.stdout).unwrap().contains("NOT PRIVATE"));
        let run = bench.path(out);
        assert!(std::fs::read_to_string(run.join("certificate.md")).unwrap().contains("**NOT PRIVATE.**"));
        let certificate: Value =
            serde_json::from_slice(&std::fs::read(run.join("certificate.json")).unwrap()).unwrap();
        assert_eq!(certificate["private"], false);
        assert!(!verify_run(&run).unwrap().private);
    }
    let plain = bench.path("plain");
    assert_eq!(verify_run(&plain).unwrap().epsilon, None);
    assert_eq!(reservations(&plain), 0);
}

/// Training on public text adds no noise and charges nothing, counts words exactly, and every output says so.
#[test]
fn a_public_corpus_spends_nothing_and_is_marked_everywhere() {
    let mut plan = tiny_with_vocabulary();
    plan["data"]["visibility"] = json!("public");
    plan["privacy"].as_object_mut().unwrap().remove("epsilon");
    let bench = Bench::new(&plan);
    let output = bench.run("run", &["--test-key", "4"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("NOT PRIVATE: the plan declares the training text public"));
    assert!(String::from_utf8(output.stdout).unwrap().contains("nothing private was used"));
    let run = bench.path("run");
    let summary = verify_run(&run).unwrap();
    assert_eq!((summary.private, summary.public_data, summary.epsilon), (false, true, None));
    let entries = ledger(&run);
    assert_eq!((&entries[0]["protected"], &entries[0]["public_data"]), (&json!(false), &json!(true)));
    assert!(entries.iter().all(|entry| entry.get("event").is_none()), "an event was charged");
    for name in ["certificate.md", "certificate.json", "config.json", "model.safetensors"] {
        let bytes = std::fs::read(run.join(name)).unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains("training text public"), "{name}");
    }
    // Nothing is clipped or noised: the weights equal those of the baseline of the private plan.
    // Its vocabulary differs, so byte tokens make the runs comparable.
    let mut bytes = tiny();
    bytes["data"]["visibility"] = json!("public");
    bytes["privacy"].as_object_mut().unwrap().remove("epsilon");
    let weights = |bench: &Bench, arguments: &[&str]| {
        bench.model("run", arguments);
        network::tensor_file::read_tensors(&bench.path("run").join("model.safetensors")).unwrap()
    };
    let public = weights(&Bench::new(&bytes), &["--test-key", "4"]);
    assert_eq!(public, weights(&Bench::new(&tiny()), &["--test-key", "4", "--non-private"]));
}

/// The evaluation text may be of another format than the training text.
#[test]
fn evaluation_text_is_read_in_its_own_format() {
    let mut plan = tiny();
    plan["evaluation"]["source"] = json!({ "path": "held_out.data" });
    plan["evaluation"]["text_field"] = json!("body");
    plan["training"]["steps"] = json!(5);
    for (format, text) in [
        ("jsonl", "{\"body\":\"alpha\"}\n{\"body\":\"beta\"}\n"),
        ("json", "[{\"body\": \"alpha\"},\n {\"body\": \"beta\"}]"),
        ("csv", "body,date\r\nalpha,1\r\nbeta,2\r\n"),
    ] {
        plan["evaluation"]["format"] = json!(format);
        let bench = Bench::new(&plan);
        std::fs::write(bench.path("held_out.data"), text).unwrap();
        bench.model("run", &["--test-key", "4"]);
        // 5 and 4 letters, each with its end of text.
        let Some(Evaluation::Tokens(figures)) = verify_run(&bench.path("run")).unwrap().evaluation else {
            panic!()
        };
        assert_eq!(figures.tokens, 11, "{format}");
    }
    // A file that is not such a table, and one that a trainer without the feature cannot read, are
    // refused before anything is written.
    plan["evaluation"]["format"] = json!("parquet");
    let bench = Bench::new(&plan);
    std::fs::write(bench.path("held_out.data"), "{\"body\":\"alpha\"}\n").unwrap();
    let refused = bench.run("run", &[]);
    let said = common::stderr(&refused);
    let reason = if cfg!(feature = "parquet") { "Invalid Parquet file" } else { "--features parquet" };
    assert!(refused.status.code() == Some(2) && said.contains(reason), "{said}");
    assert!(!bench.path("run").exists());
}

/// PITFALLS 19: metrics hold only public figures, and the ledger only the plan's.
#[test]
fn metrics_and_ledger_hold_no_field_beyond_the_public_ones() {
    let (_bench, run) = common::finished_run();
    let metrics = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let public: BTreeSet<&str> =
        ["step", "learning_rate", "gradient_to_noise", "l2_clip_norm", "epsilon", "evaluation_nll"].into();
    for line in metrics.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let fields: BTreeSet<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, public);
    }
    for entry in ledger(&run) {
        let fields: BTreeSet<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
        match entry["kind"].as_str().unwrap() {
            "step" => assert_eq!(fields, ["kind", "step", "attempt", "event"].into()),
            "release" => assert_eq!(fields, ["kind", "event"].into()),
            _ => {}
        }
    }
}

/// The ledger, and therefore ε, is a function of the plan: a neighbouring corpus leaves the same
/// lines.
#[test]
fn neighboring_corpora_leave_the_same_ledger_up_to_the_models_digests() {
    let bench = Bench::new(&tiny());
    let mut texts: Vec<String> = (0..300).map(|index| format!("note {index} says nothing new")).collect();
    let mut plan = tiny();
    plan["data"]["source"] = json!({ "path": "notes.txt" });
    std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    let run = |out: &str, texts: &[String]| {
        std::fs::write(bench.path("notes.txt"), texts.join("\n")).unwrap();
        let model = bench.model(out, &["--test-key", "5"]);
        let entries = ledger(&bench.path(out));
        let (last, before) = entries.split_last().unwrap();
        assert_eq!(last["kind"], "completed");
        (model, before.to_vec(), verify_run(&bench.path(out)).unwrap().epsilon)
    };
    let (model, entries, epsilon) = run("whole", &texts);
    texts.remove(123);
    let (neighbor_model, neighbor_entries, neighbor_epsilon) = run("neighbor", &texts);
    assert_eq!(entries, neighbor_entries);
    assert_eq!(epsilon, neighbor_epsilon);
    assert_ne!(model, neighbor_model);
}

/// PITFALLS 12: with one expected unit a step, some batches are empty. No step is left out.
#[test]
fn steps_with_empty_lots_are_reserved_and_counted() {
    let mut plan = tiny();
    plan["training"]["expected_batch_size"] = json!(1);
    let bench = Bench::new(&plan);
    bench.model("run", &["--test-key", "3"]);
    // Oracle: a batch is empty with probability (1 − 1/300)^300 = 0.367; none of 60 is with 1e-12.
    assert_eq!(reservations(&bench.path("run")), 60);
    assert_eq!(verify_run(&bench.path("run")).unwrap().steps_done, 60);
}

/// PITFALLS 2: each sum is divided by the plan's constant, whatever the sampled number.
#[test]
fn the_certificate_names_the_plans_divisor_for_every_phase() {
    let mut plan = tiny();
    plan["training"].as_object_mut().unwrap().remove("steps");
    plan["training"].as_object_mut().unwrap().remove("expected_batch_size");
    plan["training"]["batch_schedule"] =
        json!([{ "steps": 10, "expected_batch_size": 20 }, { "steps": 5, "expected_batch_size": 40 }]);
    let bench = Bench::new(&plan);
    bench.model("run", &["--test-key", "3"]);
    let certificate: Value =
        serde_json::from_slice(&std::fs::read(bench.path("run").join("certificate.json")).unwrap()).unwrap();
    let phases = certificate["mechanisms"]["phases"].as_array().unwrap();
    let divisors: Vec<u64> = phases.iter().map(|phase| phase["divisor"].as_u64().unwrap()).collect();
    assert_eq!(divisors, [20, 40]);
    verify_run(&bench.path("run")).unwrap();
}
