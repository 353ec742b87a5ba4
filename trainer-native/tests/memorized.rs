//! What a model memorized is found: by `memorization`, `exposure` and `audit`, for every objective, family and split.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::{Command, Output};

use common::{Bench, stderr, tiny};
use serde_json::{Value, json};

/// Records of the training text, and as many others.
const RECORDS: u64 = 12;

fn trainer(bench: &Bench, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    command.current_dir(bench.folder.path()).args(arguments).output().unwrap()
}

fn printed(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Twenty words, in an order that only the number of the record tells.
fn words(record: u64) -> Vec<String> {
    let mut state = record.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!(
            "{}{}",
            ["ka", "lo", "mi", "ne", "ru"][(state >> 40) as usize % 5],
            ["n", "s", "t", "r"][(state >> 50) as usize % 4]
        )
    };
    (0..20).map(next).collect()
}

fn records(first: u64, line: impl Fn(&[String]) -> String) -> String {
    (first..first + RECORDS).map(|record| line(&words(record)) + "\n").collect()
}

/// A plan on public text with these values.
fn plan(model: Value, objective: &str, training: Value) -> Value {
    let mut plan = tiny();
    let file = if objective == "text_to_text" { "train.jsonl" } else { "train.txt" };
    plan["data"] = json!({ "source": { "path": file }, "units": RECORDS, "visibility": "public" });
    let fields = plan.as_object_mut().unwrap();
    fields.remove("evaluation");
    let privacy = fields["privacy"].as_object_mut().unwrap();
    privacy.retain(|field, _| !["epsilon", "spare_steps"].contains(&field.as_str()));
    plan["tokenizer"] = json!({ "train": { "model": "unigram", "vocab_size": 330, "release": "sips" } });
    plan["model"] = json!({ "context": 24, "d_model": 32, "layers": 1, "heads": 2, "d_ff": 64 });
    plan["model"].as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
    plan["training"] = json!({ "objective": objective, "expected_batch_size": RECORDS, "steps": 300, "l2_clip_norm": 1.0,
        "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-2, "warmup_steps": 10 } });
    plan["training"].as_object_mut().unwrap().extend(training.as_object().unwrap().clone());
    plan
}

fn bench(plan: &Value) -> Bench {
    let bench = Bench::new(plan);
    for (name, first) in [("train", 0), ("valid", 100)] {
        let pair = |words: &[String]| {
            json!({ "text": words[..8].join(" "), "target": words[8..].join(" ") }).to_string()
        };
        std::fs::write(bench.path(&format!("{name}.txt")), records(first, |words| words.join(" "))).unwrap();
        std::fs::write(bench.path(&format!("{name}.jsonl")), records(first, pair)).unwrap();
    }
    bench
}

/// The share of training and of other records that the model continues exactly.
fn exact(bench: &Bench, arguments: &[&str]) -> (f64, f64, Value) {
    let ending = if bench.path("plan.json").exists() && is_task(bench) { "jsonl" } else { "txt" };
    let files = [format!("train.{ending}"), format!("valid.{ending}")];
    let asked = ["memorization", "run", "--train", &files[0], "--valid", &files[1], "--json"];
    let found = printed(&trainer(bench, &[&asked, arguments].concat()));
    let of = |split: &str| {
        let row = found["rows"].as_array().unwrap().iter().find(|row| row["split"] == split).unwrap();
        assert_eq!(row["figures"]["examples"], RECORDS, "{found}");
        row["figures"]["exact_match"].as_f64().unwrap()
    };
    (of("train, unique"), of("validation, unique"), found.clone())
}

fn is_task(bench: &Bench) -> bool {
    std::fs::read_to_string(bench.path("plan.json")).unwrap().contains("train.jsonl")
}

#[test]
fn memorized_text_is_found_for_every_objective_family_and_split() {
    let t5 = |more: Value| {
        let mut model = json!({ "family": "t5" });
        model.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        model
    };
    let none = json!({});
    let split = json!({ "prefix_split": { "read": 15, "written": 5 } });
    let table = [
        (json!({ "family": "gpt2" }), "causal_lm", none.clone(), 0.8),
        (json!({ "family": "llama" }), "causal_lm", none.clone(), 0.8),
        (json!({ "family": "feed_forward", "heads": 1, "history": 6 }), "causal_lm", none.clone(), 0.8),
        (t5(json!({})), "prefix_lm", none.clone(), 0.6),
        (t5(json!({ "context": 16, "decoder_context": 6 })), "prefix_lm", none.clone(), 0.8),
        (t5(json!({ "context": 16, "decoder_context": 6 })), "prefix_lm", split.clone(), 0.8),
        (json!({ "family": "t5_v1_1" }), "prefix_lm", split, 0.8),
        (t5(json!({})), "span_corruption", none.clone(), 0.6),
        (json!({ "family": "bert" }), "masked_lm", none.clone(), 0.6),
        (t5(json!({})), "text_to_text", none.clone(), 0.8),
        (json!({ "family": "bart" }), "text_to_text", none.clone(), 0.8),
        (json!({ "family": "gpt2", "context": 48 }), "text_to_text", none, 0.8),
    ];
    for (model, objective, training, least) in table {
        let bench = bench(&plan(model.clone(), objective, training.clone()));
        bench.model("run", &["--test-key", "1"]);
        let (train, valid, found) = exact(&bench, &[]);
        assert!(train >= least && valid <= 0.2, "{model} {objective} {training}: {train} {valid}");
        assert!(found["lower_bound"].is_null(), "{found}");
    }
}
