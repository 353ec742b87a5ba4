//! Memory: its estimate, and recomputed activations, which take less for the same model and the same guarantee.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::{Child, Command, Stdio};

use common::{Bench, ledger, on_public_text, tiny};
use serde_json::{Value, json};

/// Runs the command, and calls `look` until it ends.
fn watch(mut command: Command, mut look: impl FnMut(&Child)) {
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while process.try_wait().unwrap().is_none() {
        look(&process);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// The model's bytes, and the largest memory in KiB that was observed.
fn model_and_peak(bench: &Bench, out: &str) -> (Vec<u8>, u64) {
    let mut peak = 0;
    watch(bench.command(out, &["--test-key", "3"]), |process| {
        let text = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let seen = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        peak = peak.max(seen.unwrap_or_default());
    });
    (std::fs::read(bench.path(out).join("model.safetensors")).unwrap(), peak)
}

/// The number of pages that were mapped at their first use from the third step on, and the model's bytes.
fn faults(bench: &Bench, out: &str, allocator: Option<&str>) -> (u64, Vec<u8>) {
    let mut command = bench.command(out, &["--test-key", "3"]);
    if let Some(settings) = allocator {
        command.env("GLIBC_TUNABLES", settings);
    }
    let (mut before, mut most) = (0, 0);
    watch(command, |process| {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap_or_default();
        // Fields 3 and on follow the name in parentheses; field 10 counts the faults.
        let fields = text.rsplit_once(") ").map(|(_, fields)| fields.split(' '));
        let seen = fields.and_then(|mut fields| fields.nth(7)?.parse::<u64>().ok());
        most = most.max(seen.unwrap_or_default());
        let ledger = std::fs::read_to_string(bench.path(out).join("ledger.jsonl")).unwrap_or_default();
        if ledger.matches("\"kind\":\"step\"").count() < 3 {
            before = most;
        }
    });
    (most - before, std::fs::read(bench.path(out).join("model.safetensors")).unwrap())
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
fn the_estimate_of_memory_is_close_to_the_peak() {
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
            (0.8..=1.3).contains(&ratio),
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
    // Exact sums hold the activations of a few examples at a time in any case.
    plan["privacy"]["arithmetic"] = json!("fast");
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

/// Blocks as large as these are given back to the system by default, and mapped again page by page.
#[cfg(target_env = "gnu")]
#[test]
fn freed_memory_is_kept_for_the_next_block_unless_the_allocator_has_other_settings() {
    let mut plan = small();
    plan["model"]["context"] = json!(16);
    plan["training"]["steps"] = json!(8);
    plan["training"]["expected_batch_size"] = json!(4);
    plan["privacy"]["arithmetic"] = json!("fast");
    let bench = Bench::new(&plan);
    let (kept, model) = faults(&bench, "kept", None);
    let (given_back, same) = faults(&bench, "given-back", Some("glibc.malloc.check=0"));
    assert!(model == same, "the weights differ");
    assert!(kept * 2 < given_back, "{kept} page faults in place of {given_back}");
}
