//! Snapshots, the best weights by public evaluation text, and an early stop.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Stdio;
use std::time::Duration;

use common::{Bench, ledger, reservations, tiny};
use serde_json::{Value, json};
use training::verify::verify_run;

/// A plan whose loss soon rises, because its steps are too large.
fn plan(evaluation: &[(&str, Value)]) -> Value {
    let mut plan = tiny();
    plan["training"]["learning_rate"] = json!({ "peak": 0.3, "decay": "constant" });
    plan["evaluation"]["every"] = json!(5);
    plan["performance"]["snapshot_every"] = json!(5);
    for (field, value) in evaluation {
        plan["evaluation"][*field] = value.clone();
    }
    plan
}

/// Steps and losses of a run's evaluations.
fn losses(bench: &Bench, run: &str) -> Vec<(u64, f64)> {
    let text = std::fs::read_to_string(bench.path(run).join("metrics.jsonl")).unwrap();
    let loss = |line: &str| {
        let metric: Value = serde_json::from_str(line).unwrap();
        (metric["step"].as_u64().unwrap(), metric["evaluation_nll"].as_f64().unwrap())
    };
    text.lines().map(loss).collect()
}

fn lowest(losses: &[(u64, f64)]) -> (u64, f64) {
    losses.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
}

/// The snapshot of the same step has the same bytes, and its own figures are stated.
#[test]
fn the_best_weights_are_the_finished_model_and_equal_their_snapshot() {
    let bench = Bench::new(&plan(&[("keep_best", json!(true))]));
    let model = bench.model("run", &["--test-key", "4"]);
    let losses = losses(&bench, "run");
    let (step, loss) = lowest(&losses);
    assert!(step < 60, "the plan is to get worse: {losses:?}");
    let snapshot = bench.path("run").join(format!("snapshots/{step}"));
    assert!(std::fs::read(snapshot.join("model.safetensors")).unwrap() == model);
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
        let [own, finished] =
            [&snapshot, &bench.path("run")].map(|folder| std::fs::read(folder.join(name)).unwrap());
        assert!(own == finished, "{name}");
    }
    let figures = std::fs::read(bench.path("run").join("evaluation.json")).unwrap();
    let figures: Value = serde_json::from_slice(&figures).unwrap();
    assert!((figures["perplexity"].as_f64().unwrap().ln() / loss - 1.0).abs() < 1e-9, "{figures} {loss}");
    assert_eq!(verify_run(&bench.path("run")).unwrap().steps_done, 60);
    assert!(!bench.path("run").join("best.safetensors").exists());
    // Without the option the last weights stay.
    let last = Bench::new(&plan(&[]));
    assert!(last.model("run", &["--test-key", "4"]) != model);
}

/// PITFALLS 24. The time of a stop depends on what the run released, so it claims no less than the
/// ε of the whole plan.
#[test]
fn an_early_stop_leaves_steps_out_and_charges_them() {
    let whole = Bench::new(&plan(&[]));
    whole.model("run", &["--test-key", "4"]);
    let bench = Bench::new(&plan(&[("patience", json!(2))]));
    bench.model("run", &["--test-key", "4"]);
    let all = losses(&whole, "run");
    let run = bench.path("run");
    let taken = losses(&bench, "run");
    assert_eq!(taken[..], all[..taken.len()], "the steps that are taken are the same");
    let (best, stop) = (lowest(&taken).0, taken.last().unwrap().0);
    assert!(stop == best + 10 && stop < 60, "{taken:?}");
    let [stopped, finished] = [&run, &whole.path("run")].map(|run| verify_run(run).unwrap());
    assert_eq!((stopped.steps_done, finished.steps_done), (stop, 60));
    assert_eq!((stopped.epsilon, reservations(&run)), (finished.epsilon, 60));
    let certificate = std::fs::read_to_string(run.join("certificate.md")).unwrap();
    assert!(certificate.contains("so the steps left out are charged"), "{certificate}");
    assert!(ledger(&run).iter().any(|entry| entry["kind"] == "completed"));
}

/// Losses that fall by less than the smallest change count as no improvement, so the run stops while they still fall.
#[test]
fn an_early_stop_counts_changes_from_the_smallest_one_on() {
    let slowly = |evaluation: &[(&str, Value)]| {
        let mut plan = plan(evaluation);
        plan["training"]["learning_rate"] = json!({ "peak": 1e-4 });
        Bench::new(&plan)
    };
    let any = slowly(&[("patience", json!(2))]);
    any.model("run", &["--test-key", "4"]);
    let whole = losses(&any, "run");
    assert!(whole.len() == 12 && whole.is_sorted_by(|a, b| a.1 > b.1), "the losses are to fall: {whole:?}");
    let bench = slowly(&[("patience", json!(2)), ("smallest_change", json!(0.5))]);
    bench.model("run", &["--test-key", "4"]);
    // The first evaluation is the lowest; two more do not change it by half a nat.
    assert_eq!(losses(&bench, "run"), whole[..3]);
}

/// Oracle: the uninterrupted run with the same test key.
#[test]
fn a_run_that_is_killed_stops_at_the_same_step_with_the_same_weights() {
    let bench = Bench::new(&plan(&[("patience", json!(2)), ("keep_best", json!(true))]));
    let whole = bench.model("whole", &["--test-key", "4"]);
    let stop = verify_run(&bench.path("whole")).unwrap().steps_done;
    for (run, wait) in [("a", 60), ("b", 90), ("c", 120)] {
        let mut process = bench
            .command(run, &["--test-key", "4"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        process.kill().unwrap();
        let finished = process.wait().unwrap().success();
        if !finished {
            let arguments = bench.resumed(run, &["--test-key", "4"]);
            assert!(bench.model(run, &arguments) == whole, "{run}");
        }
        assert_eq!(verify_run(&bench.path(run)).unwrap().steps_done, stop, "{run}");
    }
}
