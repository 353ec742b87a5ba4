//! Sweeps that publish the best trial.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use accountant::{DpEvent, Trials};
use mechanisms::{PrivacyRng, Purpose, TestRng, draw_trials};
use serde_json::{Value, json};
use training::sweep::verify_sweep;
use training::verify::verify_run;

use super::common::{self, Bench, stderr};
use super::{all, bench, best, command, epsilon, finish, read, trial};

/// The number of trials that a test key draws.
pub fn number(mean: f64, key: u64) -> u64 {
    let mut stream = TestRng::from_seed(key).stream(Purpose::Trials, 0, 0);
    draw_trials(Trials::Poisson { mean }, &mut stream).unwrap()
}

/// PITFALLS 20. The number of trials with the test key is 5, a figure that appears nowhere in the
/// plan and the sweep.
#[test]
fn the_best_trial_is_published_with_the_epsilon_of_the_search_and_without_the_number_of_trials() {
    let bench = bench(&best(4.0));
    let key = (0..).find(|key| number(4.0, *key) == 5).unwrap().to_string();
    let output = finish(&bench, &["--test-key", &key]);
    let out = bench.path("out");
    let mut names: Vec<String> =
        fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let published = ["best", "certificate.json", "certificate.md", "charge.json", "plan.json", "sweep.json"];
    assert_eq!(names, published, "no trial but the best one is left, and no draw");
    let certificate = read(out.join("certificate.json"));
    let noise = certificate["noise_multipliers"]["training"].as_f64().unwrap();
    let trials = Trials::Poisson { mean: 4.0 };
    let selection = DpEvent::PrivateSelection { event: Box::new(trial(noise)), trials };
    let spent = epsilon(&DpEvent::Composed { events: vec![selection] });
    assert!((19.99..=20.0).contains(&spent) && spent > 1.05 * epsilon(&trial(noise)), "{spent}");
    let run = out.join("best");
    let own = read(run.join("certificate.json"));
    assert_eq!(own["guarantee"]["epsilon"]["upper"].as_f64(), Some(spent));
    assert_eq!(certificate["epsilon"]["upper"].as_f64(), Some(spent));
    let text = fs::read_to_string(run.join("certificate.md")).unwrap();
    assert!(
        text.contains("a secret number of trials, drawn from a Poisson distribution of mean 4"),
        "{text}"
    );
    assert!(text.contains("The number of trials, the trials that were not chosen"), "{text}");
    assert_eq!(verify_run(&run).unwrap().epsilon.unwrap().upper, spent);
    verify_sweep(&out).unwrap();
    for value in [&certificate, &own, &read(out.join("charge.json"))] {
        assert!(!has_number(value, 5), "{value}");
    }
    assert!(common::ledger(&run).iter().all(|entry| entry["kind"] == "step" || !has_number(entry, 5)));
    // The screen shows only what does not depend on the draw: a warning, the charge, and that
    // trials run.
    assert_eq!(stderr(&output).lines().count(), 3, "{}", stderr(&output));
    for (name, what) in [("evaluation.json", "evaluation.json"), ("model.safetensors", "model.safetensors")] {
        let mut bytes = fs::read(run.join(name)).unwrap();
        let last = bytes.len() - 9;
        bytes[last] ^= 1;
        let original = fs::read(run.join(name)).unwrap();
        fs::write(run.join(name), bytes).unwrap();
        for error in [verify_sweep(&out).unwrap_err(), verify_run(&run).unwrap_err()] {
            assert!(error.to_string().contains(what), "{error}");
        }
        fs::write(run.join(name), original).unwrap();
    }
}

fn has_number(value: &Value, number: u64) -> bool {
    match value {
        Value::Number(found) => found.as_u64() == Some(number),
        Value::Array(values) => values.iter().any(|value| has_number(value, number)),
        Value::Object(fields) => fields.values().any(|value| has_number(value, number)),
        _ => false,
    }
}

/// The best trial is the one with the lowest perplexity. Oracle: the trials as published runs under the same keys.
#[test]
fn the_best_trial_has_the_lowest_perplexity_of_all_trials() {
    let (search, whole) = (
        bench(&best(2.0)),
        bench(&{
            let mut sweep = all();
            sweep["vary"] = json!({});
            sweep["trials"]["all"]["seeds"] = json!(4);
            sweep
        }),
    );
    // There is one setting and the same noise, so that trial i of both has the same key, plan and
    // weights.
    let mut sweep = best(2.0);
    sweep["vary"] = json!({});
    fs::write(search.path("sweep.json"), sweep.to_string()).unwrap();
    let mut plan = read(search.path("plan.json"));
    plan["privacy"]["noise_multipliers"] = json!({ "training": 2.0 });
    plan["privacy"].as_object_mut().unwrap().remove("epsilon");
    for bench in [&search, &whole] {
        fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
        let mut sweep = read(bench.path("sweep.json"));
        sweep["epsilon"] = json!(1000);
        fs::write(bench.path("sweep.json"), sweep.to_string()).unwrap();
    }
    let key = (0..).find(|key| number(2.0, *key) == 4).unwrap().to_string();
    for bench in [&search, &whole] {
        finish(bench, &["--test-key", &key]);
    }
    let perplexity = |run: PathBuf| read(run.join("evaluation.json"))["perplexity"].as_f64().unwrap();
    let scores: Vec<f64> =
        (1..=4).map(|seed| perplexity(whole.path(&format!("out/trials/1-{seed}")))).collect();
    let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(perplexity(search.path("out/best")), least, "{scores:?}");
}

/// Kills at any time change neither the number of trials nor the result. Oracle: the sweep that was not killed.
#[test]
fn a_killed_sweep_resumes_with_the_same_trials() {
    let (whole, killed) = (bench(&best(4.0)), bench(&best(4.0)));
    let key = (0..).find(|key| number(4.0, *key) == 4).unwrap().to_string();
    finish(&whole, &["--test-key", &key]);
    let out = killed.path("out");
    let begun = || out.join("charge.json").exists();
    let mut kills = 0;
    // Each process lives longer than the previous one, so that the sweep also ends on a busy
    // machine.
    for round in 0..30 {
        let mut arguments = vec!["--test-key", &key];
        arguments.extend(begun().then_some("--resume"));
        let mut process =
            command(&killed, &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis((60.0 * 1.4_f64.powi(round)) as u64));
        process.kill().unwrap();
        if process.wait().unwrap().success() {
            break;
        }
        kills += u32::from(begun());
    }
    assert!(kills > 1, "{kills}");
    let model = |bench: &Bench| fs::read(bench.path("out/best/model.safetensors")).unwrap();
    assert!(model(&whole) == model(&killed), "another trial was chosen");
    assert_eq!(verify_sweep(&out).unwrap().scores(), verify_sweep(&whole.path("out")).unwrap().scores());
    // A finished sweep is left unchanged, except for secrets that a kill left.
    let before = fs::read(out.join("certificate.json")).unwrap();
    fs::create_dir(out.join("private")).unwrap();
    finish(&killed, &["--test-key", &key, "--resume"]);
    assert!(fs::read(out.join("certificate.json")).unwrap() == before && !out.join("private").exists());
}

/// A second draw would be a second search, which the charge does not pay for.
#[test]
fn a_draw_that_is_lost_or_altered_is_refused_and_never_drawn_again() {
    let bench = bench(&best(30.0));
    let mut process = command(&bench, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let out = bench.path("out");
    while !out.join("charge.json").exists() {
        sleep(Duration::from_millis(2));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let draw = out.join("private/draw.json");
    let text = fs::read_to_string(&draw).unwrap();
    assert!(
        !fs::read_to_string(out.join("charge.json")).unwrap().contains(&text[9..30]),
        "the salt is secret"
    );
    let last_message = |expected: &str| {
        let output = command(&bench, &["--resume"]).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.lines().last().unwrap().contains(expected), "{message}");
    };
    fs::write(&draw, text.replacen("\"setting\":", "\"setting\": ", 1)).unwrap();
    last_message("draw.json: this secret of the sweep was altered");
    fs::remove_file(&draw).unwrap();
    last_message("draw.json: this secret of the sweep is lost");
    fs::write(&draw, text).unwrap();
    fs::remove_file(out.join("private/progress.json")).unwrap();
    last_message("progress.json: this secret of the sweep is lost");
    fs::remove_file(&draw).unwrap();
    assert!(!draw.exists() && !out.join("best").exists());
    assert!(verify_sweep(&out).unwrap_err().to_string().contains("not finished"));
}

/// A Poisson number can be 0. Then nothing is released, but ε is spent.
#[test]
fn no_trial_is_a_result_too() {
    let bench = bench(&best(1.0));
    let key = (0..).find(|key| number(1.0, *key) == 0).unwrap().to_string();
    let shown = String::from_utf8(finish(&bench, &["--test-key", &key]).stdout).unwrap();
    assert!(shown.contains("the drawn number of trials was 0"), "{shown}");
    let out = bench.path("out");
    assert!(!out.join("best").exists() && !out.join("private").exists());
    assert!(verify_sweep(&out).unwrap().scores().is_empty());
}

/// A search spends all of its ε before its first trial begins, whatever its outcome. Oracle: the
/// sweep that was not killed.
#[test]
fn a_killed_search_counts_in_the_history_by_its_charge() {
    let (bench, other) = (bench(&best(4.0)), bench(&best(4.0)));
    let (out, copy) = (bench.path("out"), bench.path("copy"));
    let mut process = command(&bench, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !out.join("charge.json").exists() && process.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(1));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let history = |folders: &[&PathBuf]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
        command.arg("history").args(folders).args(["--delta", "1e-4", "--json"]).output().unwrap()
    };
    let together = |folders: &[&PathBuf]| {
        let output = history(folders);
        assert!(output.status.success(), "{}", stderr(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        (found["epsilon"]["upper"].as_f64().unwrap(), found["stages"][0]["finished"].as_bool().unwrap())
    };
    let charge = read(out.join("charge.json"));
    let event: DpEvent = serde_json::from_value(charge["event"].clone()).unwrap();
    let spent = epsilon(&event);
    assert!((19.99..=20.0).contains(&spent), "{spent}");
    assert_eq!(together(&[&out]), (spent, false));
    fs::create_dir(&copy).unwrap();
    for name in ["charge.json", "sweep.json", "plan.json"] {
        fs::copy(out.join(name), copy.join(name)).unwrap();
    }
    assert_eq!(together(&[&copy, &out]), (spent, false), "one search");
    finish(&bench, &["--resume"]);
    assert_eq!(together(&[&out]), (spent, true));
    // The drawn number of trials is 0 in one of 55 runs.
    let winner = out.join("best");
    let folders: Vec<&PathBuf> =
        [&out, &winner, &copy].into_iter().filter(|folder| folder.exists()).collect();
    assert_eq!(together(&folders).0, spent, "the best trial is part of the search");
    finish(&other, &[]);
    let both = epsilon(&DpEvent::Composed { events: vec![event.clone(), event] });
    assert_eq!(together(&[&out, &other.path("out")]).0, both, "two searches that look alike are two");

    fs::write(copy.join("charge.json"), charge.to_string()).unwrap();
    assert_eq!(history(&[&copy]).status.code(), Some(1), "not as the sweep wrote it");
    let known = super::bench(&best(4.0));
    finish(&known, &["--test-key", "1"]);
    let message = stderr(&history(&[&known.path("out")]));
    assert!(message.contains("NOT PRIVATE: the noise was made from a known key"), "{message}");
}
