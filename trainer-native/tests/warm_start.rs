//! Models that start from texts of released words.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use common::{Bench, labelled_text, labelled_words, ledger, tiny_with_vocabulary};
use serde_json::{Value, json};
use training::verify::verify_run;

/// A plan of a few steps that starts from pairs of words.
fn plan(steps: u64) -> Value {
    let mut plan = tiny_with_vocabulary();
    plan["data"] = json!({ "source": { "embedded": { "records": 3000, "seed": 7 } }, "units": 3000 });
    plan["privacy"]["tokenizer_share"] = json!(0.5);
    plan["tokenizer"]["train"]["release"] = json!("pooled");
    plan["tokenizer"]["train"]["words"] = json!("pairs");
    plan["training"]["steps"] = json!(2);
    plan["training"]["learning_rate"] = json!({ "peak": 1e-4 });
    plan["training"]["warm_start"] = json!({ "steps": steps });
    plan
}

fn evaluation(bench: &Bench) -> f64 {
    let figures = std::fs::read(bench.path("run/evaluation.json")).unwrap();
    serde_json::from_slice::<Value>(&figures).unwrap()["perplexity"].as_f64().unwrap()
}

/// Two private steps at a tiny rate teach nothing: what is better is the start.
#[test]
fn more_steps_on_released_words_predict_better_at_the_same_cost() {
    let [short, long] = [1, 150].map(|steps| {
        let bench = Bench::new(&plan(steps));
        bench.model("run", &["--test-key", "3"]);
        bench
    });
    assert!(evaluation(&long) < 0.8 * evaluation(&short), "{} {}", evaluation(&long), evaluation(&short));
    let spent = |bench: &Bench| verify_run(&bench.path("run")).unwrap().epsilon.unwrap().upper;
    assert_eq!(spent(&long), spent(&short));
    let charges = |bench: &Bench| {
        let entries = ledger(&bench.path("run"));
        entries
            .into_iter()
            .map(|entry| entry["event"].clone())
            .filter(|event| !event.is_null())
            .collect::<Vec<_>>()
    };
    assert_eq!(charges(&long), charges(&short));
}

/// The start follows from the file of the tokenizer alone, so it can be made again.
#[test]
fn a_run_that_was_killed_during_its_start_ends_where_an_uninterrupted_one_does() {
    let bench = Bench::new(&plan(300));
    let whole = bench.model("whole", &["--test-key", "4"]);
    let mut child = bench.command("run", &["--test-key", "4"]).stderr(Stdio::null()).spawn().unwrap();
    while !bench.path("run/tokenizer.json").exists() {
        assert!(child.try_wait().unwrap().is_none());
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!bench.path("run/model.safetensors").exists(), "it was killed too late");
    assert!(bench.model("run", &["--test-key", "4", "--resume"]) == whole);
}

/// Two private steps at a tiny rate teach nothing: that classes are told apart is what the release counted. Classes are numbers in the
/// records.
#[test]
fn a_classifier_starts_from_words_counted_by_class() {
    let mut plan = labelled_words();
    plan["tokenizer"]["train"]["model"] = json!("wordpiece");
    plan["tokenizer"]["train"]["words"] = json!("pairs_by_label");
    plan["model"]["family"] = json!("bert");
    plan["training"]["objective"] = json!("sequence_classification");
    plan["training"]["labels"] = json!(["1", "0"]);
    plan["training"]["warm_start"] = json!({ "steps": 100 });
    plan["evaluation"] =
        json!({ "source": { "path": "test.jsonl" }, "every": 2, "accept_equal_phrases": true });
    let record = |at: usize| format!("{}\n", json!({ "label": at % 2, "text": labelled_text(at) }));
    // Texts of the evaluation are short, so that they share no long runs of words with those of training.
    let short = |at: usize| {
        let text = if at.is_multiple_of(2) { "they are glad" } else { "they are mad" };
        format!("{}\n", json!({ "label": at % 2, "text": text }))
    };
    let bench = Bench::new(&plan);
    std::fs::write(bench.path("train.jsonl"), (0..4000).map(record).collect::<String>()).unwrap();
    std::fs::write(bench.path("test.jsonl"), (0..40).map(short).collect::<String>()).unwrap();
    bench.model("run", &["--test-key", "6"]);
    let figures: Value =
        serde_json::from_slice(&std::fs::read(bench.path("run/evaluation.json")).unwrap()).unwrap();
    assert_eq!(figures["accuracy"], 1.0, "{figures}");
    verify_run(&bench.path("run")).unwrap();
}
