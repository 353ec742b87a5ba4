//! A run that starts from the weights of another.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, ledger, stderr, tiny};
use safetensors::SafeTensors;
use serde_json::{Value, json};
use trainer_native::verify::verify_run;

/// A finished baseline run in `public`, and a plan that goes on from its weights.
fn pretrained(model: &[(&str, Value)]) -> Bench {
    let mut plan = tiny();
    plan["training"]["steps"] = json!(40);
    let bench = Bench::new(&plan);
    bench.model("public", &["--non-private"]);
    plan["tokenizer"] = json!({ "public": { "path": "public/tokenizer.json" } });
    plan["model"]["initial"] = json!({ "checkpoint": "public" });
    plan["training"]["steps"] = json!(2);
    plan["training"]["learning_rate"] = json!({ "peak": 1e-6 });
    for (field, value) in model {
        plan["model"][field] = value.clone();
    }
    std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    bench
}

fn perplexity(bench: &Bench, run: &str) -> f64 {
    let text = std::fs::read_to_string(bench.path(run).join("evaluation.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["perplexity"].as_f64().unwrap()
}

#[test]
fn training_goes_on_from_the_checkpoint_and_the_certificate_says_so() {
    let bench = pretrained(&[]);
    bench.model("tuned", &[]);
    // Two steps of a millionth move nothing: the figure is the checkpoint's.
    let (before, after) = (perplexity(&bench, "public"), perplexity(&bench, "tuned"));
    assert!((after / before - 1.0).abs() < 1e-3 && before < 60.0, "{before} {after}");
    let run = bench.path("tuned");
    let digests: Vec<Value> =
        ledger(&run).into_iter().filter(|entry| entry["kind"] == "initial_weights").collect();
    assert_eq!(digests.len(), 1);
    let certificate = std::fs::read_to_string(run.join("certificate.md")).unwrap();
    let sha256 = digests[0]["sha256"].as_str().unwrap();
    assert!(certificate.contains("from the weights of a public checkpoint") && certificate.contains(sha256));
    assert!(verify_run(&run).unwrap().private);
}

#[test]
fn a_checkpoint_that_does_not_fit_is_refused_before_anything_is_written() {
    let bench = pretrained(&[("d_ff", json!(48))]);
    let output = bench.run("tuned", &[]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("n_inner = 32") && message.contains("model.d_ff makes it 48"), "{message}");
    assert!(!bench.path("tuned").exists());
}

/// Frozen weights come out as they went in, trained ones do not, and a resumed run needs the trained ones alone.
#[test]
fn adapters_are_merged_and_nothing_else_moves() {
    let lora = json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": ["c_attn"] } });
    let bench = pretrained(&[("trainable", lora)]);
    let mut plan: Value = serde_json::from_slice(&std::fs::read(bench.path("plan.json")).unwrap()).unwrap();
    plan["training"]["learning_rate"] = json!({ "peak": 1e-2 });
    std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    let (before, after) =
        (std::fs::read(bench.path("public/model.safetensors")).unwrap(), bench.model("tuned", &[]));
    let (before, after) =
        (SafeTensors::deserialize(&before).unwrap(), SafeTensors::deserialize(&after).unwrap());
    let mut names = after.names();
    names.sort_unstable();
    let mut known = before.names();
    known.sort_unstable();
    assert_eq!(names, known, "the finished model has the names of an ordinary one");
    for name in names {
        let moved = before.tensor(name).unwrap().data() != after.tensor(name).unwrap().data();
        assert_eq!(moved, name.ends_with("c_attn.weight"), "{name}");
    }
    assert!(verify_run(&bench.path("tuned")).unwrap().private);
}

#[test]
fn a_target_that_is_no_matrix_is_refused() {
    let lora = json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": ["q_proj"] } });
    let output = pretrained(&[("trainable", lora)]).run("tuned", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("no matrix is named \"q_proj\"; allowed: c_attn, c_fc, c_proj"),
        "{}",
        stderr(&output)
    );
}
