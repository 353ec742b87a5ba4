//! Memory: its estimate, and recomputed activations, which take less for the same model and the same guarantee.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Stdio;

use common::{Bench, ledger, on_public_text, tiny};
use serde_json::{Value, json};

/// The model's bytes, and the largest memory in KiB that was observed.
fn model_and_peak(bench: &Bench, out: &str) -> (Vec<u8>, u64) {
    let mut command = bench.command(out, &["--test-key", "3"]);
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", process.id());
    let mut peak = 0;
    while process.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let seen = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        peak = peak.max(seen.unwrap_or_default());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    (std::fs::read(bench.path(out).join("model.safetensors")).unwrap(), peak)
}

/// A plan of a model of 19 million parameters and of two steps.
fn small() -> Value {
    let mut plan = tiny();
    plan["model"] =
        json!({ "family": "gpt2", "d_model": 512, "layers": 6, "heads": 8, "d_ff": 2048, "context": 64 });
    plan["training"]["steps"] = json!(2);
    plan["training"]["learning_rate"]["warmup_steps"] = json!(0);
    plan["performance"]["physical_batch"] = json!(4);
    plan["privacy"].as_object_mut().unwrap().remove("spare_steps");
    plan.as_object_mut().unwrap().remove("evaluation");
    plan
}

/// `trainer-native/SPEED.md` has larger models and other families.
#[test]
fn the_estimate_of_memory_is_within_a_fifth_of_the_peak() {
    let base = Bench::new(&on_public_text(&small()));
    base.model("base", &[]);
    let mut adapted = small();
    adapted["tokenizer"] =
        json!({ "public": { "path": base.path("base/tokenizer.json"), "made_from": "public_text" } });
    adapted["model"]["initial"] = json!({ "checkpoint": base.path("base") });
    adapted["model"]["checkpoint_made_from"] = json!("public_text");
    adapted["model"]["trainable"] = json!({ "lora": { "rank": 8, "alpha": 16.0, "targets": ["c_attn"] } });
    for plan in [small(), adapted] {
        let bench = Bench::new(&plan);
        let output = bench.command("run", &["--dry-run", "--json"]).output().unwrap();
        let estimated: Value = serde_json::from_slice(&output.stdout).unwrap();
        let estimated = estimated["memory"].as_f64().unwrap();
        let (_, peak) = model_and_peak(&bench, "run");
        let ratio = estimated / (peak as f64 * 1024.0);
        assert!(
            (0.8..=1.2).contains(&ratio),
            "{ratio}: {estimated} bytes estimated, {peak} KiB taken: {plan}"
        );
    }
}

#[test]
fn recomputed_activations_take_less_memory_and_give_the_same_model_at_the_same_price() {
    let mut plan = tiny();
    plan["model"] =
        json!({ "family": "gpt2", "d_model": 64, "layers": 12, "heads": 2, "d_ff": 256, "context": 64 });
    plan["training"]["steps"] = json!(2);
    plan["training"]["learning_rate"]["warmup_steps"] = json!(0);
    plan["training"]["expected_batch_size"] = json!(60);
    plan["performance"]["physical_batch"] = json!(32);
    let kept = Bench::new(&plan);
    plan["performance"]["recompute"] = json!(true);
    let recomputed = Bench::new(&plan);
    let ((model, most), (same, least)) = (model_and_peak(&kept, "run"), model_and_peak(&recomputed, "run"));
    assert!(model == same, "the weights differ");
    assert!(least * 10 < most * 6, "{least} KiB of {most} KiB");
    let steps = |bench: &Bench| -> Vec<_> {
        ledger(&bench.path("run")).into_iter().filter(|entry| entry["kind"] == "step").collect()
    };
    assert_eq!(steps(&kept), steps(&recomputed));
}
