//! An audit refutes a run without noise and does not refute a private one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, stderr, tiny};
use serde_json::{Value, json};

/// Long enough to memorise canaries without clipping and noise.
fn plan() -> Value {
    let mut plan = tiny();
    plan["model"]["d_model"] = json!(32);
    plan["model"]["d_ff"] = json!(128);
    plan["training"]["steps"] = json!(250);
    plan["training"]["expected_batch_size"] = json!(60);
    plan["training"]["learning_rate"] = json!({ "peak": 2e-2, "warmup_steps": 5 });
    plan
}

fn audit(bench: &Bench, out: &str, arguments: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    command.arg("audit").arg("--plan").arg(bench.path("plan.json")).arg("--out").arg(bench.path(out));
    command.args(["--canaries", "80", "--json"]).args(arguments).output().unwrap()
}

#[test]
fn canaries_are_found_without_noise_and_not_with_it() {
    let bench = Bench::new(&plan());
    let found = |out: &str, arguments: &[&str]| -> Value {
        let output = audit(&bench, out, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let exposed = found("plain", &["--non-private", "--test-key", "3"]);
    assert!(exposed["epsilon_at_least"].as_f64().unwrap() > 1.0, "{exposed}");
    assert!(exposed["certified_epsilon"].is_null());
    let hidden = found("private", &["--test-key", "3"]);
    let certified = hidden["certified_epsilon"]["upper"].as_f64().unwrap();
    assert!(hidden["epsilon_at_least"].as_f64().unwrap() < certified, "{hidden}");
    assert!(hidden["mean_exposure"].as_f64() < exposed["mean_exposure"].as_f64());
}

#[test]
fn an_audit_goes_on_as_an_audit_only() {
    let bench = Bench::new(&tiny());
    assert!(audit(&bench, "run", &["--test-key", "3"]).status.success());
    let certificate = std::fs::read_to_string(bench.path("run/certificate.md")).unwrap();
    assert!(
        certificate.contains("this run is an audit, and up to 80 invented units were added"),
        "{certificate}"
    );
    let other = bench.run("run", &["--test-key", "3", "--resume"]);
    assert!(other.status.success(), "a finished run is only summed up: {}", stderr(&other));
    let refused = audit(&bench, "odd", &["--guesses", "81"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--guesses: 81"), "{}", stderr(&refused));
    assert!(!bench.path("odd").exists(), "a refusal writes nothing");
}
