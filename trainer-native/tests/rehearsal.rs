//! Learning rate and clip norm, chosen on public text.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn run(folder: &Path, arguments: &str) -> Output {
    let words = arguments.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_trainer-native")).current_dir(folder).args(words).output().unwrap()
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A plan for a private text that does not exist, and public texts.
fn bench(folder: &Path) -> Value {
    let lines = |what: &str, from: usize, to: usize| -> String {
        (from..to).map(|place| format!("{what} number {place} is a short sentence.\n")).collect()
    };
    std::fs::create_dir(folder.join("plans")).unwrap();
    std::fs::write(folder.join("public.txt"), lines("Public line", 0, 60)).unwrap();
    std::fs::write(folder.join("plans/held-out.txt"), lines("Held-out line", 100, 110)).unwrap();
    let plan = json!({
        "version": 1, "name": "private",
        "data": { "source": { "path": "private.txt" }, "units": 1000 },
        "privacy": {
            "unit": "record", "relation": "add_or_remove_one", "delta": 1e-6, "epsilon": 3.0, "sampling": "poisson"
        },
        "tokenizer": "bytes",
        "model": { "family": "gpt2", "d_model": 16, "layers": 1, "heads": 2, "d_ff": 16, "context": 16 },
        "training": {
            "objective": "causal_lm", "expected_batch_size": 20, "steps": 3, "l2_clip_norm": 1.0,
            "optimizer": { "adamw": {} }, "learning_rate": { "peak": 0.01, "warmup_steps": 0, "decay": "constant" },
        },
        "evaluation": { "source": { "path": "held-out.txt" }, "every": 3 },
        "performance": { "device": "cpu" },
    });
    std::fs::write(folder.join("plans/plan.json"), plan.to_string()).unwrap();
    plan
}

#[test]
fn trials_have_the_noise_of_the_plan_and_the_best_settings_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    bench(folder);
    let command = "rehearse --plan plans/plan.json --public public.txt --learning-rate 0.00001,0.03 --clip-norm 0.1 --json";
    let output = run(folder, command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["units"], &found["trials"].as_array().unwrap().len()), (&60.into(), &3));
    // A step of 1e-5 changes nothing that three such steps could show.
    assert_eq!(found["chosen"]["learning_rate"], 0.03);
    let noise = found["noise_multiplier"].as_f64().unwrap();
    for trial in found["trials"].as_array().unwrap() {
        let plan = read(&folder.join(trial["run"].as_str().unwrap()).join("plan.json"));
        assert_eq!(plan["privacy"]["noise_multipliers"]["training"], noise);
        assert_eq!(plan["training"]["expected_batch_size"], 20);
        assert!(plan["data"]["source"]["path"].as_str().unwrap().ends_with("public.txt"));
    }
    // Only the two settings change.
    let chosen = read(&folder.join("plans/plan-rehearsed.json"));
    assert_eq!(chosen["training"]["l2_clip_norm"], found["chosen"]["l2_clip_norm"]);
    assert_eq!(chosen["training"]["learning_rate"]["peak"], 0.03);
    let again = run(folder, "advise --plan plans/plan-rehearsed.json --tokens 1e5");
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let advice = String::from_utf8(again.stdout).unwrap();
    assert!(advice.contains("Predicted loss") && advice.contains("extrapolates"), "{advice}");
    assert_eq!(chosen["privacy"]["epsilon"], 3.0);
    let chart = std::fs::read_to_string(folder.join("runs/private-rehearsal/rehearsal.svg")).unwrap();
    assert!(chart.contains("clip norm 0.1") && chart.contains("nats a prediction"));

    // A second call finds all trials, and gives the same answer.
    std::fs::remove_file(folder.join("plans/plan-rehearsed.json")).unwrap();
    let second = run(folder, command);
    assert_eq!(second.stdout, output.stdout);
}

/// Anil et al. 2021, figure 3: larger batches have larger gradients beside their noise.
#[test]
fn gradients_are_compared_with_the_noise_that_each_batch_size_takes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut plan = bench(folder);
    plan["training"]["steps"] = json!(6);
    plan["evaluation"]["every"] = json!(2);
    std::fs::write(folder.join("plans/plan.json"), plan.to_string()).unwrap();
    let command = "rehearse --plan plans/plan.json --public public.txt --learning-rate 0.01 --clip-norm 1 --batch-size 50,5,20 --json";
    let output = run(folder, command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let batches = found["batches"].as_array().unwrap();
    let sizes: Vec<&Value> = batches.iter().map(|trial| &trial["expected_batch_size"]).collect();
    assert_eq!(sizes, [5, 20, 50]);
    // The noise is that of a private plan with this batch size at the plan's ε.
    for trial in batches {
        plan["training"]["expected_batch_size"] = trial["expected_batch_size"].clone();
        let file = plan::PlanFile::parse(&plan.to_string()).unwrap();
        let certified = plan::Plan::try_from(file).unwrap().certify().unwrap();
        assert_eq!(trial["noise_multiplier"], certified.phases()[0].noise_multiplier());
        let steps: Vec<&Value> =
            trial["estimates"].as_array().unwrap().iter().map(|estimate| &estimate["step"]).collect();
        assert_eq!(steps, [2, 4, 6]);
    }
    let ratios: Vec<f64> =
        batches.iter().map(|trial| trial["mean_gradient_to_noise"].as_f64().unwrap()).collect();
    assert!(ratios.is_sorted() && ratios[2] > 2.0 * ratios[0], "{ratios:?}");
    let chart = std::fs::read_to_string(folder.join("runs/private-rehearsal/gradient-to-noise.svg")).unwrap();
    assert!(chart.contains("batches of 50") && chart.contains("‖gradient‖ / ‖noise‖"));
    // The plan's batch size stays.
    let chosen = read(&folder.join("plans/plan-rehearsed.json"));
    assert_eq!(chosen["training"]["expected_batch_size"], 20);
}

#[test]
fn what_cannot_be_rehearsed_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut plan = bench(folder);
    std::fs::write(folder.join("short.txt"), "One line.\n").unwrap();
    let refused = |arguments: &str, reason: &str| {
        let output = run(folder, arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
        assert!(message.contains(reason), "{arguments}: {message}");
        assert!(!folder.join("runs").exists() && !folder.join("plans/plan-rehearsed.json").exists());
    };
    let command = "rehearse --plan plans/plan.json --public public.txt";
    refused("rehearse --plan plans/plan.json --public short.txt", "has 1 units, but a batch has 20");
    refused("rehearse --plan plans/plan.json --public missing.txt", "missing.txt");
    refused(&format!("{command} --learning-rate 0"), "--learning-rate: 0; allowed: numbers above 0");
    refused(&format!("{command} --clip-norm 1,NaN"), "--clip-norm: NaN");
    refused(&format!("{command} --batch-size 20,2000"), "--batch-size 2000: ");
    refused(&format!("{command} --batch-size 61"), "has 60 units, but a batch has 61");
    refused(&format!("{command} --write plans/plan.json"), "the file exists");
    let mut of_examples = plan.clone();
    of_examples["privacy"]["sampling"] =
        json!({ "poisson_of_examples": { "examples": 300, "examples_per_unit": 2 } });
    std::fs::write(folder.join("plans/plan.json"), of_examples.to_string()).unwrap();
    refused(command, "privacy.sampling: \"poisson_of_examples\"");
    plan.as_object_mut().unwrap().remove("evaluation");
    std::fs::write(folder.join("plans/plan.json"), plan.to_string()).unwrap();
    refused(command, "evaluation is missing");
}

/// Two rehearsals wrote one plan, each with its own choice.
#[test]
fn a_rehearsal_whose_plan_or_folder_another_process_writes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    bench(folder);
    let command = "rehearse --plan plans/plan.json --public public.txt --learning-rate 0.03 --clip-norm 0.1 --out trials --write plans/new.json";
    std::fs::create_dir(folder.join("trials")).unwrap();
    for lock in ["plans/.new.json.lock", "trials/.lock"] {
        let other = durable::ExclusiveFile::take(&folder.join(lock)).unwrap();
        let output = run(folder, command);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("another process uses"), "{message}");
        assert!(!folder.join("plans/new.json").exists());
        drop(other);
    }
    assert!(run(folder, command).status.success());
    let left: Vec<_> =
        std::fs::read_dir(folder.join("plans")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("lock")), "{left:?}");
}
