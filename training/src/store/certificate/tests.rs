//! Tests of what certificates say about a run's arithmetic.

use crate::run::{Request, run};
use crate::verify::VerifiedRun;

const PLAN: &str = r#"{
    "version": 1, "name": "sums", "data": { "source": { "embedded": { "records": 60, "seed": 7 } }, "units": 60 },
    "privacy": { "unit": "record", "relation": "add_or_remove_one", "delta": 1e-3, "epsilon": 8.0, "sampling": "poisson",
        "arithmetic": "fast" },
    "tokenizer": "bytes",
    "model": { "family": "gpt2", "d_model": 8, "layers": 1, "heads": 1, "d_ff": 8, "context": 8 },
    "training": { "objective": "causal_lm", "expected_batch_size": 6, "steps": 2, "l2_clip_norm": 1.0,
        "optimizer": { "sgd": {} }, "learning_rate": { "peak": 0.1 } }
}"#;

/// A finished run, in a folder that is deleted with the returned value.
fn finished(arithmetic: &str) -> (tempfile::TempDir, Request) {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("plan.json"), folder.path().join("run"));
    std::fs::write(&path, PLAN.replace("fast", arithmetic)).unwrap();
    let request = Request { out: Some(out), test_key: Some(1), ..Request::new(path) };
    run(&request).unwrap();
    (folder, request)
}

#[test]
fn the_certificate_of_exact_arithmetic_has_no_unmet_condition() {
    let words = |arithmetic: &str| {
        let (_folder, request) = finished(arithmetic);
        let run = VerifiedRun::read(&request.out.unwrap()).unwrap();
        (run.certificate.assumptions.join("\n"), run.certificate.to_markdown())
    };
    let (conditions, text) = words("exact");
    assert!(!conditions.contains("NOT MET") && !conditions.contains("32-bit"), "{conditions}");
    assert!(text.contains("| device | cpu |") && text.contains("checked in exact arithmetic"), "{text}");
    let (conditions, text) = words("fast");
    assert!(!conditions.contains("NOT MET") && conditions.contains("No proof bounds this"), "{conditions}");
    assert!(
        text.contains("drawn exactly") && text.contains("32-bit floating point within a micro-batch"),
        "{text}"
    );
}

#[test]
fn exact_arithmetic_on_another_device_is_refused() {
    let (_folder, request) = finished("exact");
    let refusal = run(&Request { device: Some(plan::Device::Wgpu), ..request }).unwrap_err().to_string();
    assert!(refusal.contains("privacy.arithmetic") && refusal.contains("--device"), "{refusal}");
}
