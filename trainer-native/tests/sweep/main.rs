//! Sweeps: charged before they begin, resumed after a kill, and verified from their files alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod best;
#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use accountant::{Delta, DpEvent, NeighboringRelation};
use common::{Bench, stderr, tiny, tiny_with_vocabulary};
use serde_json::{Value, json};
use training::sweep::verify_sweep;
use training::verify::verify_run;

const RATE: &str = "training.learning_rate.peak";

/// A folder with a plan of fifteen steps and a sweep of it.
fn bench(sweep: &Value) -> Bench {
    let mut plan = tiny();
    plan["training"]["steps"] = json!(15);
    plan["privacy"]["spare_steps"] = json!(300);
    let bench = Bench::new(&plan);
    fs::write(bench.path("sweep.json"), sweep.to_string()).unwrap();
    bench
}

fn all() -> Value {
    let vary = json!({ RATE: [1e-3, 1e-2] });
    json!({ "plan": "plan.json", "vary": vary, "trials": { "all": { "seeds": 2 } }, "epsilon": 20 })
}

fn best(mean: f64) -> Value {
    let vary = json!({ RATE: [1e-4, 1e-3, 1e-2] });
    json!({ "plan": "plan.json", "vary": vary, "trials": { "best": { "poisson": { "mean": mean } } }, "epsilon": 20 })
}

fn command(bench: &Bench, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    command.arg("sweep").arg("--sweep").arg(bench.path("sweep.json"));
    command.arg("--out").arg(bench.path("out")).args(arguments);
    command
}

fn finish(bench: &Bench, arguments: &[&str]) -> Output {
    let output = command(bench, arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

fn refused(bench: &Bench, arguments: &[&str], expected: &str) {
    let output = command(bench, arguments).output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(expected) && message.lines().count() == 1, "{expected}: {message}");
}

fn read(path: PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns the event of one trial of the plan, written by hand: fifteen steps and 300 spare ones at
/// q = 20/300.
fn trial(noise_multiplier: f64) -> DpEvent {
    let times = |count| {
        let step = DpEvent::PoissonSampledGaussian { sampling_probability: 20.0 / 300.0, noise_multiplier };
        DpEvent::SelfComposed { event: Box::new(step), count }
    };
    DpEvent::Composed { events: vec![times(15), times(300)] }
}

fn epsilon(event: &DpEvent) -> f64 {
    let delta = Delta::new(1e-4).unwrap();
    accountant::epsilon(event, delta, NeighboringRelation::AddOrRemoveOne).unwrap().upper
}

#[test]
fn published_trials_are_charged_together_and_each_certificate_says_so() {
    let bench = bench(&all());
    let shown = String::from_utf8(finish(&bench, &[]).stdout).unwrap();
    let out = bench.path("out");
    let certificate = read(out.join("certificate.json"));
    let noise = certificate["noise_multipliers"]["training"].as_f64().unwrap();
    let event = DpEvent::SelfComposed { event: Box::new(trial(noise)), count: 4 };
    let spent = epsilon(&DpEvent::Composed { events: vec![event] });
    assert!((19.99..=20.0).contains(&spent), "{spent}");
    assert_eq!(certificate["epsilon"]["upper"].as_f64(), Some(spent));
    for (place, setting) in certificate["findings"]["all"].as_array().unwrap().iter().enumerate() {
        let score = |seed: usize| {
            let run = out.join(format!("trials/{}-{}", place + 1, seed + 1));
            let own = read(run.join("certificate.json"));
            assert_eq!(own["guarantee"]["epsilon"]["upper"].as_f64(), Some(spent), "not the ε of one run");
            assert_eq!(verify_run(&run).unwrap().epsilon.unwrap().upper, spent);
            let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
            let last: Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
            assert_eq!(last["epsilon"].as_f64(), Some(spent));
            read(run.join("evaluation.json"))["perplexity"].as_f64().unwrap()
        };
        let (one, two) = (score(0), score(1));
        assert!(one != two, "each run has randomness of its own");
        // Two values: the mean, and |a − b|/√2.
        let figure = |name: &str| setting[name].as_f64().unwrap();
        assert!((figure("mean") - 0.5 * (one + two)).abs() < 1e-9);
        assert!((figure("standard_deviation") - (one - two).abs() / 2_f64.sqrt()).abs() < 1e-9);
    }
    assert!(shown.contains(&format!("{RATE} = 0.01: perplexity per token or label")), "{shown}");
    assert_eq!(verify_sweep(&out).unwrap().epsilon.upper, spent);
    refused(&bench, &[], "already holds a sweep");
    assert!(!out.join("private").exists());
}

#[test]
fn a_sweep_whose_files_are_not_those_of_its_trials_is_refused() {
    let (first, second) = (bench(&all()), bench(&all()));
    for (bench, key) in [(&first, "3"), (&second, "4")] {
        finish(bench, &["--test-key", key]);
    }
    let out = first.path("out");
    verify_sweep(&out).unwrap();
    let fails = |what: &str| {
        let error = verify_sweep(&out).expect_err(what).to_string();
        assert!(error.contains(what), "{what}: {error}");
    };
    let swap = |one: &Path, other: &Path| {
        let parked = out.join("parked");
        fs::rename(one, &parked).unwrap();
        fs::rename(other, one).unwrap();
        fs::rename(&parked, other).unwrap();
    };
    let run = |name: &str| out.join("trials").join(name);
    // A run of another sweep, a run of another setting, another run of the same setting, a run outside any sweep.
    let foreign = second.path("out/trials/1-1");
    for (other, what) in [
        (foreign, "no trial of this sweep"),
        (run("2-1"), "none of this sweep's settings"),
        (run("1-2"), "certificate.json"),
    ] {
        swap(&run("1-1"), &other);
        fails(what);
        swap(&run("1-1"), &other);
    }
    verify_sweep(&out).unwrap();
    for (name, from, to, what) in [
        ("charge.json", "\"count\": 4", "\"count\": 3", "charge.json"),
        ("sweep.json", "\"seeds\":2", "\"seeds\":1", "sweep.json"),
        ("plan.json", "300", "301", "plan.json"),
        ("certificate.json", "\"epsilon_limit\": 20", "\"epsilon_limit\": 10", "certificate.json"),
        ("certificate.md", "20", "10", "certificate.md"),
        ("trials/1-1/evaluation.json", "\"tokens\"", "\"tokens\" ", "evaluation.json"),
    ] {
        let text = fs::read_to_string(out.join(name)).unwrap();
        assert!(text.contains(from), "{name}");
        fs::write(out.join(name), text.replace(from, to)).unwrap();
        fails(what);
        fs::write(out.join(name), text).unwrap();
    }
    fs::remove_dir_all(run("2-2")).unwrap();
    assert!(verify_sweep(&out).is_err());
}

/// A trial belongs to its sweep. It cannot be continued as a separate run, whose certificate would
/// state its own ε.
#[test]
fn a_trial_cannot_be_made_a_run_of_its_own() {
    let bench = bench(&all());
    finish(&bench, &["--test-key", "3"]);
    let trial = bench.path("out/trials/1-1");
    let output = Command::new(env!("CARGO_BIN_EXE_trainer-native"))
        .arg("--plan")
        .arg(trial.join("plan.json"))
        .arg("--out")
        .arg(&trial)
        .args(["--resume", "--test-key"])
        .arg(common::ledger(&trial)[0]["randomness"]["test_key"]["key"].to_string())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("as a trial of a sweep"), "{}", stderr(&output));
    // Without the sweep in its header, the ledger is another one, which matches no digest.
    let path = trial.join("ledger.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let start = text.find(",\"search\":").unwrap();
    let end = start + text[start..].find("},\"sha256\"").unwrap();
    fs::write(&path, format!("{}{}", &text[..start], &text[end - 1..])).unwrap();
    assert!(verify_run(&trial).is_err());
}

#[test]
fn wrong_sweeps_are_refused_in_one_line_before_anything_is_written() {
    let bench = bench(&all());
    refused(&bench, &["--resume"], "holds no sweep that could be resumed");
    for (change, expected) in [
        (json!({ "plan": "absent.json" }), "absent.json"),
        (json!({ "epsilon": 0 }), "epsilon: 0; allowed: a number > 0"),
        (json!({ "vary": { "training.rate": [1] } }), "vary: training.rate: unknown field"),
        (json!({ "vary": { RATE: [1e-3, "slow"] } }), "vary: training.learning_rate.peak: \"slow\""),
        (json!({ "trials": { "best": { "poisson": { "mean": 0 } } } }), "trials.best.poisson.mean: 0"),
        (json!({ "trials": 3 }), "line 1"),
    ] {
        let mut sweep = all();
        for (field, value) in change.as_object().unwrap() {
            sweep[field] = value.clone();
        }
        fs::write(bench.path("sweep.json"), sweep.to_string()).unwrap();
        refused(&bench, &[], expected);
        assert!(!bench.path("out").exists(), "{expected}");
    }
    fs::write(bench.path("sweep.json"), b"{\xff}").unwrap();
    refused(&bench, &[], "not UTF-8");
    fs::write(bench.path("sweep.json"), all().to_string()).unwrap();
    fs::create_dir(bench.path("out")).unwrap();
    fs::write(bench.path("out/notes.txt"), "mine").unwrap();
    refused(&bench, &[], "holds notes.txt, which no sweep wrote");
    fs::remove_file(bench.path("out/notes.txt")).unwrap();
    finish(&bench, &["--test-key", "3"]);
    refused(&bench, &["--resume"], "with another --test-key");
    let mut sweep = all();
    sweep["epsilon"] = json!(21);
    fs::write(bench.path("sweep.json"), sweep.to_string()).unwrap();
    refused(&bench, &["--resume", "--test-key", "3"], "with another sweep file");
}

/// Only one ledger contains the release, every trial uses its result, and a kill in between loses
/// neither.
#[test]
fn trials_share_one_private_vocabulary_that_is_charged_once() {
    let bench = bench(&best(3.0));
    let mut plan = tiny_with_vocabulary();
    plan["privacy"]["spare_steps"] = json!(100);
    fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    let key = (0..).find(|key| best::number(3.0, *key) == 2).unwrap().to_string();
    let out = bench.path("out");
    let mut process = command(&bench, &["--test-key", &key]);
    let mut process = process.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !out.join("vocabulary/tokenizer.json").exists() {
        sleep(Duration::from_millis(1));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    finish(&bench, &["--test-key", &key, "--resume"]);
    verify_sweep(&out).unwrap();
    let releases =
        |run: PathBuf| common::ledger(&run).iter().filter(|entry| entry["kind"] == "release").count();
    assert_eq!((releases(out.join("vocabulary")), releases(out.join("best"))), (1, 0));
    for run in ["vocabulary", "best"] {
        assert!(
            !out.join(run).join(".corpus-digest").exists(),
            "{run}: a digest beside its key tells the text"
        );
    }
    let tokenizer = |run: &str| fs::read(out.join(run).join("tokenizer.json")).unwrap();
    assert!(tokenizer("vocabulary") == tokenizer("best"));
    // The best trial alone says the same.
    let spent = verify_run(&out.join("best")).unwrap().epsilon.unwrap().upper;
    assert_eq!(read(out.join("certificate.json"))["epsilon"]["upper"].as_f64(), Some(spent));
    let text = fs::read_to_string(out.join("vocabulary/tokenizer.json")).unwrap();
    fs::write(out.join("vocabulary/tokenizer.json"), format!("{text} ")).unwrap();
    assert!(verify_sweep(&out).unwrap_err().to_string().contains("not the vocabulary"));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A sweep that was killed, and folders with: its result, the sweep as it was killed, a copy of the result, and a result that went
/// on from a copy on another computer.
fn went_on_twice(bench: &Bench) -> [PathBuf; 4] {
    let [out, begun, finished, other] = ["out", "begun", "finished", "other"].map(|name| bench.path(name));
    // A copy can go on if no trial had begun when the sweep was killed. On a busy machine one may have, and the sweep is begun anew.
    let is_killed_in_time = || {
        let mut process = command(bench, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !out.join("charge.json").exists() && process.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        process.kill().unwrap();
        process.wait().unwrap();
        let mut inside = fs::read_dir(&out).unwrap().flatten();
        !inside.any(|entry| entry.path().join("ledger.jsonl").exists())
    };
    while !is_killed_in_time() {
        fs::remove_dir_all(&out).unwrap();
    }
    copy(&out, &begun);
    finish(bench, &["--resume"]);
    copy(&out, &finished);
    copy(&begun, &other);
    // The notes of this computer are not read there.
    let mut elsewhere = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    elsewhere.arg("sweep").arg("--sweep").arg(bench.path("sweep.json")).arg("--out").arg(&other);
    let resumed = elsewhere.arg("--resume").env("XDG_STATE_HOME", bench.path("elsewhere")).output().unwrap();
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    [out, begun, finished, other]
}

/// ε of a sweep that was carried out once, and of one that was carried out twice. Oracle: the accountant on the charge.
fn once_and_twice(sweep: &Path) -> [f64; 2] {
    let event: DpEvent = serde_json::from_value(read(sweep.join("charge.json"))["event"].clone()).unwrap();
    [epsilon(&event), epsilon(&DpEvent::Composed { events: vec![event.clone(), event] })]
}

fn together<P: AsRef<Path>>(folders: &[P]) -> f64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    command.arg("history").args(folders.iter().map(AsRef::as_ref));
    let output = command.args(["--delta", "1e-4", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    found["epsilon"]["upper"].as_f64().unwrap()
}

/// A copied sweep that was finished twice released two results.
#[test]
fn both_sweeps_that_went_on_from_a_copy_count_in_the_history_and_a_copy_of_one_does_not() {
    for sweep in [all(), best(4.0)] {
        let bench = bench(&sweep);
        let [out, begun, finished, other] = &went_on_twice(&bench);
        let [once, twice] = once_and_twice(out);
        for folders in [[out, begun], [begun, out], [out, finished], [begun, other]] {
            assert_eq!(together(&folders), once, "{folders:?}");
        }
        for folders in [[out, other, begun], [begun, other, out], [other, begun, finished]] {
            assert_eq!(together(&folders), twice, "{folders:?}");
        }
    }
}

/// One charge pays for as many trials as the sweep publishes, and for one vocabulary.
#[test]
fn trials_of_two_copies_of_a_sweep_count_as_two_sweeps_once_one_charge_does_not_pay_for_them() {
    let bench = bench(&all());
    let [out, begun, finished, other] = &went_on_twice(&bench);
    let [once, twice] = once_and_twice(out);
    let trials = |sweep: &Path| ["1-1", "1-2", "2-1", "2-2"].map(|name| sweep.join("trials").join(name));
    let (own, copied, others) = (trials(out), trials(finished), trials(other));
    let one = std::slice::from_ref;
    for folders in [
        own.to_vec(),
        [&own[..], &copied].concat(),
        [&own[..3], &others[3..]].concat(),
        [one(begun), &own].concat(),
        [&own[1..], one(out), &copied].concat(),
    ] {
        assert_eq!(together(&folders), once, "{folders:?}");
    }
    for folders in [
        [&own[..], &others].concat(),
        [&others[..], &own[..1]].concat(),
        [one(out), &others[3..]].concat(),
        [&others[3..], one(out)].concat(),
    ] {
        assert_eq!(together(&folders), twice, "{folders:?}");
    }
}

#[test]
fn two_copies_of_a_sweep_that_released_a_vocabulary_each_count_twice() {
    let bench = bench(&all());
    let mut plan = tiny_with_vocabulary();
    plan["privacy"]["spare_steps"] = json!(100);
    fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    let [out, _, finished, other] = &went_on_twice(&bench);
    let [once, twice] = once_and_twice(out);
    let [vocabulary, trial] = ["vocabulary", "trials/1-1"];
    for folders in [
        [out.join(vocabulary), out.join(trial)],
        [out.join(vocabulary), finished.join(vocabulary)],
        [out.join("trials/2-1"), finished.join(trial)],
    ] {
        assert_eq!(together(&folders), once, "{folders:?}");
    }
    for folders in [
        [out.join(vocabulary), other.join(vocabulary)],
        [out.join(vocabulary), other.join(trial)],
        [out.join("trials/2-1"), other.join(trial)],
    ] {
        assert_eq!(together(&folders), twice, "{folders:?}");
    }
}
