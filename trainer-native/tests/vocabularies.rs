//! Tests of every kind of vocabulary, from private text to a verified run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, on_public_text, tiny};
use serde_json::{Value, json};
use training::verify::verify_run;

fn plan(model: &str) -> Value {
    let mut plan = tiny();
    plan["tokenizer"] = json!({ "train": { "model": model, "vocab_size": 400, "release": "sips" } });
    plan["training"]["steps"] = json!(2);
    plan["training"]["learning_rate"] = json!({ "peak": 1e-3 });
    if model.starts_with("wordpiece") {
        plan["model"]["family"] = json!("bert");
        plan["training"]["objective"] = json!("masked_lm");
    }
    plan
}

fn tokenizer(bench: &Bench, run: &str) -> Value {
    serde_json::from_slice(&std::fs::read(bench.path(run).join("tokenizer.json")).unwrap()).unwrap()
}

#[test]
fn every_kind_of_vocabulary_is_released_trained_and_verified() {
    for (model, kind) in [
        ("unigram", "Unigram"),
        ("bpe", "BPE"),
        ("wordpiece", "WordPiece"),
        ("wordpiece_cased", "WordPiece"),
        ("char", "Unigram"),
    ] {
        let private = plan(model);
        let bench = Bench::new(&private);
        bench.model("private", &[]);
        let summary = verify_run(&bench.path("private")).unwrap();
        assert!(summary.private && summary.epsilon.unwrap().upper <= 8.0, "{model}");
        let bench = Bench::new(&on_public_text(&private));
        bench.model("public", &[]);
        let tokenizer = tokenizer(&bench, "public");
        assert_eq!(tokenizer["model"]["type"], kind, "{model}");
        let lower_case = &tokenizer["normalizer"]["lowercase"];
        assert_eq!(lower_case == true, model == "wordpiece", "{model}: {lower_case}");
    }
}

/// Units of eight words, each word counted once or as often as it occurs.
#[test]
fn the_histograms_of_papers_are_released_charged_and_verified() {
    for method in ["hoory-2021", "ponomareva-2022"] {
        let mut plan = plan("unigram");
        plan["tokenizer"]["train"]["release"] = json!(method);
        plan["privacy"]["unit"] = json!({ "words": 8 });
        plan["privacy"]["tokenizer_share"] = json!(0.5);
        let bench = Bench::new(&plan);
        bench.model("run", &[]);
        let run = bench.path("run");
        let summary = verify_run(&run).unwrap();
        assert!(summary.private && summary.epsilon.unwrap().upper <= 8.0, "{method}");
        let released: Vec<Value> = common::ledger(&run)
            .into_iter()
            .filter(|entry| entry.to_string().contains("thresholded"))
            .collect();
        let [charge] = &released[..] else { panic!("{released:?}") };
        let events = charge["event"]["events"].as_array().unwrap();
        assert_eq!(events.len(), 1, "{method}: one round, and no counts: {events:?}");
    }
}

/// The proofs of two methods hold up to 2²⁴ units. A text with one more is refused before anything is charged.
#[test]
fn a_release_of_too_many_units_spends_nothing() {
    let line = "a ".repeat(1 << 10) + "\n";
    for method in ["mad2r", "policy"] {
        let mut plan = plan("unigram");
        plan["tokenizer"]["train"]["release"] = json!(method);
        plan["privacy"]["unit"] = json!({ "words": 1 });
        plan["data"] = json!({ "source": { "path": "many.txt" }, "units": 16_777_217 });
        plan["privacy"]["delta"] = json!(1e-9);
        plan.as_object_mut().unwrap().remove("evaluation");
        let bench = Bench::new(&plan);
        std::fs::write(bench.path("many.txt"), line.repeat(1 << 14) + "a\n").unwrap();
        let output = bench.run("run", &[]);
        let message = common::stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("more than 16777216 units"), "{message}");
        let is_release = |entry: &Value| entry["kind"] == "release";
        assert!(!common::ledger(&bench.path("run")).iter().any(is_release), "{method}: charged");
    }
}
