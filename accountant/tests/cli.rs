//! The command line's contract: JSON shape, exit codes, one-line errors.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_accountant"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may refuse its flags before it reads.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

const A: [&str; 9] = [
    "epsilon",
    "--sampling-probability",
    "0.01",
    "--noise-multiplier",
    "1",
    "--steps",
    "1000",
    "--delta",
    "1e-5",
];

#[test]
fn epsilon_in_json_holds_the_exact_figure() {
    let output = run(&[&A[..], &["--json"]].concat(), "");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Oracle: contour inversion, query A.
    assert!(answer["epsilon"]["lower"].as_f64().unwrap() <= 1.828_237);
    assert!(answer["epsilon"]["upper"].as_f64().unwrap() >= 1.828_236);
    assert_eq!(answer["delta"].as_f64(), Some(1e-5));
    assert!(answer["method"].is_string() && answer["version"].is_string());
}

#[test]
fn epsilon_comes_with_its_gaussian_equivalent_and_with_rho_where_there_is_one() {
    let sampled: serde_json::Value =
        serde_json::from_slice(&run(&[&A[..], &["--json"]].concat(), "").stdout).unwrap();
    assert!(sampled["zcdp_rho"].is_null(), "a sampled Gaussian has no rho");
    let mu = sampled["gaussian_equivalent_mu"]["upper"].as_f64().unwrap();
    // The central limit of Bu et al. 2020 is q·√(T(e−1)) = 0.415; finite T costs more.
    assert!(mu > 0.415 && mu < 0.5, "{mu}");
    let whole = [&A[..1], &["--sampling-probability", "1"], &A[3..], &["--json"]].concat();
    let plain: serde_json::Value = serde_json::from_slice(&run(&whole, "").stdout).unwrap();
    // A thousand Gaussians with sigma 1: mu = sqrt(1000), rho = 500.
    assert!((plain["zcdp_rho"].as_f64().unwrap() - 500.0).abs() < 1e-9);
    let mu = &plain["gaussian_equivalent_mu"];
    let root = 1000_f64.sqrt();
    assert!(mu["lower"].as_f64().unwrap() <= root && mu["upper"].as_f64().unwrap() >= root);
}

#[test]
fn wrong_input_is_refused_in_one_line_with_exit_code_two() {
    let bad_flag = [
        "epsilon",
        "--sampling-probability",
        "2",
        "--noise-multiplier",
        "1",
        "--steps",
        "1",
        "--delta",
        "1e-5",
    ];
    for (arguments, input, word) in [
        (&bad_flag[..], "", "sampling_probability"),
        (&["events", "-", "--delta", "1e-5"][..], "{\"type\": \"gausian\"}", "gaussian"),
        (&["events", "-", "--delta", "2"][..], "[]", "0 < delta < 1"),
        (&["events", "-", "--delta", "1e-5"][..], "[[[[", "allowed"),
        (&["events", "/nonexistent", "--delta", "1e-5"][..], "", "readable"),
    ] {
        let output = run(arguments, input);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(message.contains(word) && message.trim_end().lines().count() == 1, "{message}");
        assert!(output.stdout.is_empty());
    }
}
