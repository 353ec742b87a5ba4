//! Bad plans.

use serde_json::{Value, json};
use tests::{altered, tiny_plan};

/// A field of the plan, a wrong value, and a word of the refusal.
type Wrong = (&'static str, Value, &'static str);

fn fields() -> Vec<Wrong> {
    let mut wrong: Vec<Wrong> = vec![
        ("/version", json!(true), "version: true"),
        ("/version", json!("one"), "version"),
        ("/version", json!([1]), "version"),
        ("/version", json!(0), "version: 0"),
        ("/version", json!(1.5), "version: 1.5"),
        ("/name", json!("../escape"), "name"),
        ("/name", json!("a b"), "name"),
        ("/data", json!("text.txt"), "data"),
        ("/data/source", json!({ "path": "" }), "data.source"),
        ("/data/source", json!({ "paths": [] }), "data.source"),
        ("/data/source", json!({ "paths": ["a.txt", "a.txt"] }), "same file twice"),
        ("/data/source", json!({ "pat": "a.txt" }), "did you mean"),
        ("/data/source", json!({ "path": "*.txt" }), "patterns are not expanded"),
        ("/data/source", json!({ "path": "~/a.txt" }), "~ is not expanded"),
        ("/data/source", json!({ "path": "." }), "is a folder"),
        ("/data/source", json!({ "path": "/dev/zero" }), "pipe or a device"),
        ("/data/source", json!({ "path": "nowhere.tokens" }), "tokenizer"),
        ("/data/units", json!(1e9), "data.units"),
        ("/privacy/delta", json!(0.5), "1 / data.units"),
        ("/privacy/delta", json!("1e-6"), "remove the quotation marks"),
        ("/privacy/unit", json!("person"), "privacy.unit"),
        ("/privacy/unit", json!({ "words": 0 }), "privacy.unit"),
        ("/privacy/relation", json!("add_one"), "privacy.relation"),
        ("/privacy/sampling", json!("random"), "privacy.sampling"),
        ("/privacy/sampling", json!("shuffle"), "poisson"),
        ("/privacy/noise_multipliers", json!({ "training": -1.0 }), "noise_multipliers.training"),
        ("/privacy/noise_multipliers", json!({ "tokenizer": 1.0, "training": 1.0 }), "noise_multipliers"),
        ("/tokenizer", json!("words"), "tokenizer"),
        ("/tokenizer", json!({ "public": { "path": "none.json", "made_from": "public_text" } }), "none.json"),
        ("/model/family", json!("gpt3"), "model.family"),
        ("/model/family", json!("bert"), "training.objective"),
        ("/model/heads", json!(5), "model.d_model"),
        ("/model/context", json!(1), "model.context"),
        ("/model/initial", json!({ "checkpoint": "openai-community/gpt2" }), "model.initial"),
        ("/training/objective", json!("chat"), "training.objective"),
        ("/training/objective", json!("masked_lm"), "training.objective"),
        ("/training/optimizer", json!({ "adam": {} }), "training.optimizer"),
        ("/training/optimizer", json!({ "adamw": { "beta1": 2.0 } }), "beta1"),
        ("/training/learning_rate", json!(0.1), "training.learning_rate"),
        ("/training/learning_rate", json!({ "peak": 1e-3, "warmup_steps": 99 }), "warmup_steps"),
        ("/training/clipping", json!("none"), "training.clipping"),
        ("/training/expected_batch_size", json!(201), "expected_batch_size"),
        ("/performance/device", json!("tpu"), "performance.device"),
        ("/performance/precision", json!("int8"), "performance.precision"),
    ];
    wrong.extend(numbers());
    wrong
}

/// Numbers out of range, and other things where numbers belong.
fn numbers() -> Vec<Wrong> {
    let mut wrong: Vec<Wrong> = Vec::new();
    let numbers = [
        "/data/units",
        "/privacy/delta",
        "/privacy/epsilon",
        "/privacy/spare_steps",
        "/model/d_model",
        "/model/layers",
        "/model/heads",
        "/model/d_ff",
        "/model/context",
        "/training/expected_batch_size",
        "/training/steps",
        "/training/l2_clip_norm",
        "/training/learning_rate/peak",
        "/performance/physical_batch",
        "/performance/checkpoint_every",
    ];
    for pointer in numbers {
        let field = pointer.rsplit_once('/').map_or(pointer, |(_, field)| field);
        for value in [json!(-1), json!("many"), json!([1]), json!({}), json!(true)] {
            wrong.push((pointer, value, field));
        }
    }
    for pointer in ["/model/d_model", "/training/steps", "/data/units", "/model/layers"] {
        wrong.push((pointer, json!(2.5), "whole number"));
        wrong.push((pointer, json!(1e300), "allowed"));
        wrong.push((pointer, json!(0), "allowed"));
    }
    wrong
}

/// The plans, each with a word of its refusal.
pub fn table() -> Vec<(Value, String)> {
    let mut table: Vec<(Value, String)> = fields()
        .into_iter()
        .map(|(pointer, value, word)| (altered(tiny_plan(), &[(pointer, value)]), word.to_owned()))
        .collect();
    let required = ["version", "name", "data", "privacy", "tokenizer", "model", "training"];
    for field in required {
        table.push((
            altered(tiny_plan(), &[(&format!("/{field}"), Value::Null)]),
            format!("{field}: missing"),
        ));
    }
    for field in ["data", "privacy", "model", "training", "performance"] {
        let stranger = altered(tiny_plan(), &[(&format!("/{field}/colour"), json!(1))]);
        table.push((stranger, "colour: unknown field".to_owned()));
    }
    table
}

/// Texts that are no plan, each with a word of its refusal.
pub fn texts() -> Vec<(Vec<u8>, &'static str)> {
    let deep = "[".repeat(100_000);
    let refusals: [(&'static str, &[&[u8]]); 7] = [
        ("the file is empty", &[b""]),
        ("not valid JSON", &[b"{", b"\0\0\0\0", deep.as_bytes()]),
        ("allowed", &[b"[]", b"5", b"null"]),
        ("comma", &[b"{\"version\": 1,}"]),
        ("JSON has no ", &[b"{\"version\": 1, // one\n}", b"{\"version\": NaN}"]),
        ("name: missing", &[b"{\"version\": 1, \"version\": 1}"]),
        ("UTF-8", &[b"\xFF\xFE{\0}\0", b"caf\xe9"]),
    ];
    let pairs = |(word, texts): (&'static str, &[&[u8]])| -> Vec<(Vec<u8>, &'static str)> {
        texts.iter().map(|text| (text.to_vec(), word)).collect()
    };
    refusals.into_iter().flat_map(pairs).collect()
}
