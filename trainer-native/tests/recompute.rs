//! Recomputed activations give the same model with less memory and the same guarantee.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Stdio;

use common::{Bench, ledger, tiny};
use serde_json::json;

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
