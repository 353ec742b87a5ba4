//! Every kind of vocabulary, from private text to a verified run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, on_public_text, tiny};
use serde_json::{Value, json};
use trainer_native::verify::verify_run;

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
