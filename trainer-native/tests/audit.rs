//! An audit refutes a run without noise and does not refute a private one. A model without privacy
//! knows the secrets, and a private one does not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, stderr, tiny};
use serde_json::{Value, json};

/// A plan that trains long enough to memorise canaries without clipping and noise.
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
    audit_of(bench, out, "80", arguments)
}

fn audit_of(bench: &Bench, out: &str, canaries: &str, arguments: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    command.arg("audit").arg("--plan").arg(bench.path("plan.json")).arg("--out").arg(bench.path(out));
    command.args(["--canaries", canaries, "--json"]).args(arguments).output().unwrap()
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

fn exposure(bench: &Bench, out: &str, arguments: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    command.arg("exposure").arg("--plan").arg(bench.path("plan.json")).arg("--out").arg(bench.path(out));
    command.args(["--test-key", "3"]).args(arguments).output().unwrap()
}

/// PITFALLS 19 and Hoory et al. 2021, figure 2.
#[test]
fn secrets_of_many_copies_are_known_without_privacy_and_not_with_it() {
    let mut plan = plan();
    plan["privacy"]["epsilon"] = json!(1.0);
    plan["training"]["steps"] = json!(120);
    let bench = Bench::new(&plan);
    let chart = bench.path("curve.svg");
    let asked = ["--patterns", "HS,HSH", "--secrets", "3", "--copies", "1,6"];
    let more = ["--json", "--chart", chart.to_str().unwrap()];
    let output = exposure(&bench, "curve", &[asked.as_slice(), &more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["warning"].as_str().unwrap().starts_with("NOT PRIVATE"));
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 3);
    for row in rows {
        let exposure = |run: &str| row[run]["exposure"].as_f64().unwrap();
        let (with_privacy, without) = (exposure("with_privacy"), exposure("without_privacy"));
        // With 351 candidates, exposure is at most 8.5 bits. Chance gives about 1.
        let known = if row["planted"] == 0.0 { without < 3.5 } else { without > 4.0 };
        assert!(known && with_privacy < 3.5, "{row}");
    }
    assert!(std::fs::read_to_string(chart).unwrap().contains("NOT PRIVATE"));
    for run in ["private", "non-private"] {
        let folder = bench.path("curve").join(run);
        let certificate = std::fs::read_to_string(folder.join("certificate.md")).unwrap();
        assert!(certificate.contains("an audit, and up to 42 invented units were added"), "{certificate}");
        for file in std::fs::read_dir(&folder).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            assert!(!name.contains("exposure") && !name.contains("audit"), "{name}");
        }
    }
    let again = exposure(&bench, "curve", &[asked.as_slice(), &["--json", "--resume"]].concat());
    assert_eq!(again.stdout, output.stdout, "finished runs are measured again: {}", stderr(&again));
}

#[test]
fn secrets_are_inserted_into_units_with_a_probability() {
    let bench = Bench::new(&tiny());
    let output = exposure(&bench, "curve", &["--secrets", "2", "--probabilities", "0.2", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    for row in found["rows"].as_array().unwrap() {
        let occurrences = row["with_privacy"]["occurrences"].as_f64().unwrap();
        // Binomial(600, 0.2) is outside 120 ± 49 with a probability below 1e-6.
        let expected = 300.0 * row["planted"].as_f64().unwrap();
        assert!((occurrences - expected).abs() < 25.0 && row["with_privacy"]["exposure"].is_f64(), "{row}");
    }
    let certificate = std::fs::read_to_string(bench.path("curve/private/certificate.md")).unwrap();
    assert!(certificate.contains("invented sequences of tokens were inserted"), "{certificate}");
}

#[test]
fn secrets_out_of_range_are_refused_before_anything_is_written() {
    let bench = Bench::new(&tiny());
    for (arguments, part) in [
        (["--patterns", "HXS"], "HXS"),
        (["--secrets", "0"], "--secrets: 0"),
        (["--copies", "0"], "--copies: 0"),
        (["--copies", "400"], "the audit invents 4800 units, but the plan has 300"),
        (["--probabilities", "1.5"], "--probabilities: 1.5"),
        (["--non-private", "--json"], "--non-private"),
    ] {
        let output = exposure(&bench, "odd", &arguments);
        let message = stderr(&output);
        assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.contains(part) && !bench.path("odd").exists(), "{message}");
    }
}

/// PITFALLS 3: if the number of units is public, canaries do not change it.
#[test]
fn every_sampling_can_be_audited() {
    for (sampling, relation, planted) in [
        (json!({ "truncated_poisson": { "largest_batch": 30 } }), "zero_out", "took the place of units of"),
        (json!("shuffle"), "zero_out", "took the place of units of"),
        (json!("fixed_size"), "replace_one", "took the place of units of"),
        (json!("balls_in_bins"), "add_or_remove_one", "were added to"),
    ] {
        let mut plan = tiny();
        plan["privacy"]["sampling"] = sampling;
        plan["privacy"]["relation"] = json!(relation);
        plan["privacy"]["spare_steps"] = json!(0);
        plan["training"]["steps"] = json!(15);
        let bench = Bench::new(&plan);
        let output = audit(&bench, "run", &["--test-key", "3"]);
        assert!(output.status.success(), "{relation}: {}", stderr(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let [lower, upper] = [&found["epsilon_at_least"], &found["certified_epsilon"]["upper"]];
        assert!(lower.as_f64().unwrap() <= upper.as_f64().unwrap(), "{found}");
        let certificate = std::fs::read_to_string(bench.path("run/certificate.md")).unwrap();
        assert!(certificate.contains(&format!("up to 80 invented units {planted}")), "{certificate}");
        if relation != "add_or_remove_one" {
            let more = audit_of(&bench, "more", "301", &[]);
            assert_eq!(more.status.code(), Some(2), "{}", stderr(&more));
            assert!(stderr(&more).contains("invents 301 units, but the plan has 300"), "{}", stderr(&more));
        }
    }
}

/// Panda et al. 2025: a token that no text contains tells its canary from all others.
#[test]
fn canaries_of_new_tokens_are_found_in_fewer_steps() {
    let mut plan = tiny();
    plan["training"]["steps"] = json!(40);
    let bench = Bench::new(&plan);
    let found = |out: &str, arguments: &[&str]| -> Value {
        let output = audit(&bench, out, &[arguments, &["--test-key", "3", "--non-private"]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (windows, tokens) = (found("windows", &[]), found("tokens", &["--new-tokens"]));
    let rate = |found: &Value| found["membership"]["area_under_curve"].as_f64().unwrap();
    assert!(rate(&tokens) > 0.85 && rate(&windows) < 0.7, "{windows} {tokens}");
    assert!(tokens["gaussian_epsilon"].as_f64() > tokens["epsilon_at_least"].as_f64());
    let other = audit(&bench, "tokens", &["--test-key", "3", "--non-private", "--resume"]);
    assert!(other.status.success(), "a finished run is only summed up: {}", stderr(&other));
}
