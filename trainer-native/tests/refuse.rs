//! Wrong input is refused in one line, with exit code 2, before anything is written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;

use common::{Bench, stderr, tiny};
use serde_json::{Value, json};

/// The plan with one field changed, and a part of the expected message.
fn cases() -> Vec<Case> {
    [cases_of_figures(), cases_of_tokenizers()].concat()
}

/// The fault, the plan, and a part of the expected message.
type Case = (&'static str, Value, &'static str);

fn change(pointer: &str, value: Value) -> Value {
    let mut plan = tiny();
    *plan.pointer_mut(pointer).unwrap() = value;
    plan
}

fn cases_of_figures() -> Vec<Case> {
    vec![
        ("missing file", change("/data/source", json!({ "path": "absent.txt" })), "absent.txt"),
        ("empty corpus", change("/data/source", json!({ "path": "empty.txt" })), "no record"),
        (
            "one record, where the number of units is public",
            {
                let mut plan = change("/data/source", json!({ "path": "one.txt" }));
                plan["privacy"]["relation"] = json!("replace_one");
                plan["privacy"]["sampling"] = json!("fixed_size");
                plan
            },
            "data.units",
        ),
        ("invalid UTF-8", change("/data/source", json!({ "path": "latin1.txt" })), "UTF-8"),
        (
            "missing evaluation",
            change("/evaluation/source", json!({ "path": "none.txt" })),
            "evaluation.source",
        ),
        ("delta of 1/N", change("/privacy/delta", json!(0.004)), "privacy.delta"),
        ("q above 1", change("/training/expected_batch_size", json!(301)), "expected_batch_size"),
        ("negative steps", change("/training/steps", json!(-1)), "training.steps"),
        (
            "a model larger than this machine",
            {
                let mut plan = change("/model/d_model", json!(32_768));
                plan["model"]["d_ff"] = json!(32_768);
                plan["model"]["layers"] = json!(8);
                plan
            },
            "this machine has",
        ),
        (
            "a setting that the family does not have",
            {
                let mut plan = change("/tokenizer", json!("bytes"));
                plan["model"]["config"] = json!({ "rope_theta": 1e4 });
                plan
            },
            "model.config: \"rope_theta\"",
        ),
        ("epsilon of zero", change("/privacy/epsilon", json!(0.0)), "privacy.epsilon"),
        ("future version", change("/version", json!(2)), "version"),
    ]
}

fn cases_of_tokenizers() -> Vec<Case> {
    vec![
        (
            "a vocabulary too small for any words",
            change(
                "/tokenizer",
                json!({ "train": { "model": "unigram", "vocab_size": 260, "release": "sips", "byte_fallback": true } }),
            ),
            "tokenizer.train.vocab_size: 260",
        ),
        (
            "a tokenizer of another format",
            change("/tokenizer", json!({ "public": { "path": "one.txt", "made_from": "public_text" } })),
            "dp-tokenizer convert",
        ),
        (
            "a name of a hub",
            {
                let mut plan = change(
                    "/tokenizer",
                    json!({ "public": { "path": "bytes.json", "made_from": "public_text" } }),
                );
                plan["model"]["initial"] = json!({ "checkpoint": "openai-community/gpt2" });
                plan["model"]["checkpoint_made_from"] = json!("public_text");
                plan
            },
            "nothing is downloaded here",
        ),
        (
            "public tokenizer absent",
            change("/tokenizer", json!({ "public": { "path": "no.json", "made_from": "public_text" } })),
            "no.json",
        ),
    ]
}

#[test]
fn wrong_input_is_one_line_on_stderr_exit_code_2_and_nothing_written() {
    for (name, plan, expected) in cases() {
        let bench = Bench::new(&plan);
        fs::write(bench.path("empty.txt"), "\n \n").unwrap();
        fs::write(
            bench.path("bytes.json"),
            tokenizer::Tokenizer::bytes(&["</s>".to_owned()]).unwrap().to_json(),
        )
        .unwrap();
        fs::write(bench.path("one.txt"), "a single secret record\n").unwrap();
        fs::write(bench.path("latin1.txt"), b"caf\xe9\n".repeat(300)).unwrap();
        let output = bench.run("run", &[]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {message}");
        assert_eq!(message.lines().count(), 1, "{name}: {message}");
        assert!(message.contains(expected), "{name}: {message}");
        assert!(!message.contains("secret"), "{name} shows the text: {message}");
        assert!(output.stdout.is_empty(), "{name}");
        assert!(!bench.path("run").exists(), "{name} left files");
    }
}

/// PITFALLS 1: sampling that depends on the number of units needs the exact number, which the
/// relation makes public. A difference of one unit is refused, while Poisson sampling accepts any
/// number.
#[test]
fn sampling_that_needs_the_exact_number_of_units_takes_no_other() {
    let with = |sampling: Value, relation: &str, units: u64| {
        let mut plan = tiny();
        plan["data"]["source"] = json!({ "path": "text.txt" });
        plan["privacy"]["sampling"] = sampling;
        plan["privacy"]["relation"] = json!(relation);
        plan["data"]["units"] = json!(units);
        plan["training"]["steps"] = json!(5);
        plan["privacy"]["spare_steps"] = json!(0);
        let bench = Bench::new(&plan);
        fs::write(bench.path("text.txt"), (0..300).map(|at| format!("record {at}\n")).collect::<String>())
            .unwrap();
        (bench.run("run", &[]), bench)
    };
    let cut = json!({ "truncated_poisson": { "largest_batch": 60 } });
    for sampling in [json!("shuffle"), json!("fixed_size"), cut] {
        for units in [299, 301] {
            let (output, bench) = with(sampling.clone(), "replace_one", units);
            let message = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{sampling} {units}: {message}");
            assert!(
                message.contains("the text has 300 units") && message.contains("exactly this number"),
                "{message}"
            );
            assert!(!bench.path("run").exists());
        }
        assert!(with(sampling.clone(), "replace_one", 300).0.status.success(), "{sampling}");
    }
    assert!(with(json!("poisson"), "add_or_remove_one", 299).0.status.success());
}

/// A missing `physical_batch` is chosen automatically. It changes only the order of 32-bit sums.
#[test]
fn the_physical_batch_is_found_where_it_is_left_out() {
    let run = |performance: Value| {
        let mut plan = tiny();
        plan["training"]["steps"] = json!(5);
        plan["performance"] = performance;
        let bench = Bench::new(&plan);
        let model = bench.model("run", &["--test-key", "4"]);
        let values = common::values(&model);
        let steps: Vec<Value> =
            common::ledger(&bench.path("run")).into_iter().filter(|entry| entry["kind"] == "step").collect();
        (values, steps)
    };
    let (found, one) = (run(json!({})), run(json!({ "physical_batch": 1 })));
    assert_eq!(found.1, one.1, "the same events");
    let worst = found.0.iter().zip(&one.0).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-4, "{worst}");
}

#[test]
fn missing_plan_bad_json_and_unwritable_output_are_refused() {
    let bench = Bench::new(&tiny());
    let broken = Bench::new(&tiny());
    fs::write(broken.path("plan.json"), "{ \"version\": 1,").unwrap();
    let absent = Bench::new(&tiny());
    fs::remove_file(absent.path("plan.json")).unwrap();
    fs::write(bench.path("file"), "in the way").unwrap();
    for output in [broken.run("run", &[]), absent.run("run", &[]), bench.run("file/run", &[])] {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).lines().last().unwrap().starts_with("trainer-native: "));
    }
}

#[test]
fn a_folder_in_use_or_of_another_run_is_refused_and_left_alone() {
    let bench = Bench::new(&tiny());
    bench.model("run", &["--test-key", "1"]);
    let before = fs::read(bench.path("run").join("ledger.jsonl")).unwrap();
    for (arguments, expected) in [
        (&["--test-key", "1"][..], "already holds a run"),
        (&["--test-key", "2", "--resume"][..], "--test-key 1"),
        (&["--resume"][..], "--test-key 1"),
        (&["--test-key", "1", "--non-private", "--resume"][..], "--non-private"),
    ] {
        let output = bench.run("run", arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
    fs::create_dir(bench.path("mine")).unwrap();
    fs::write(bench.path("mine").join("thesis.txt"), "words").unwrap();
    let output = bench.run("mine", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("thesis.txt"));
    assert_eq!(fs::read(bench.path("run").join("ledger.jsonl")).unwrap(), before);
}

#[test]
fn a_plan_changed_after_the_run_began_is_refused() {
    let bench = Bench::new(&tiny());
    bench.model("run", &["--test-key", "1"]);
    let mut plan = tiny();
    plan["training"]["l2_clip_norm"] = json!(2.0);
    fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    let output = bench.run("run", &["--test-key", "1", "--resume"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("another plan"), "{}", stderr(&output));
}

#[test]
fn a_plan_in_place_of_a_command_is_refused_with_the_command_that_runs_it() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_trainer-native"))
        .arg("plans/mine.json")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("run: trainer-native --plan plans/mine.json"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}
