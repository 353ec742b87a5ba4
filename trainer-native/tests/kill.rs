//! A run that is stopped at any moment goes on to the same weights, and no step goes uncharged.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use common::{Bench, ledger, reservations, stderr, tiny, tiny_with_vocabulary};
use serde_json::json;
use trainer_native::verify::verify_run;

/// Moments that look random and are the same every time.
struct Moments(u64);

impl Moments {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// PITFALLS 8, 9. Oracle: the uninterrupted run with the same test key.
#[test]
fn twenty_kills_change_no_weight_and_lose_no_charge() {
    let mut plan = tiny();
    plan["training"]["steps"] = json!(150);
    let bench = Bench::new(&plan);
    let whole = bench.model("whole", &["--test-key", "5"]);
    let mut moments = Moments(0x9E37_79B9_7F4A_7C15);
    let (mut kills, mut folders) = (0, 0);
    while kills < 20 {
        folders += 1;
        let out = format!("killed{folders}");
        let run = bench.path(&out);
        let mut charged = 0;
        while kills < 20 {
            let mut command = bench.command(&out, &["--test-key", "5", "--resume"]);
            let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            sleep(Duration::from_millis(moments.next(120)));
            process.kill().unwrap();
            if process.wait().unwrap().success() {
                break;
            }
            kills += 1;
            if run.join("ledger.jsonl").exists() {
                assert!(reservations(&run) >= charged, "a reservation was lost");
                charged = reservations(&run);
            }
        }
        assert_eq!(bench.model(&out, &["--test-key", "5", "--resume"]), whole);
        let summary = verify_run(&run).unwrap();
        assert_eq!(summary.steps_done, 150);
        assert!(reservations(&run) >= charged.max(150));
        assert_every_attempt_is_charged(&run, 150);
        let untouched = verify_run(&bench.path("whole")).unwrap();
        assert!(summary.epsilon.unwrap().upper >= untouched.epsilon.unwrap().upper);
    }
}

/// Each process reserves every step from its checkpoint on, those that an earlier process had reserved included.
fn assert_every_attempt_is_charged(run: &std::path::Path, steps: u64) {
    let (mut next, mut torn) = (0, false);
    for entry in ledger(run) {
        match entry["kind"].as_str().unwrap() {
            "resume" => {
                next = entry["steps_done"].as_u64().unwrap();
                torn = entry["torn_bytes"].as_u64().unwrap() > 0;
            }
            // The line after a torn one charges what it would have reserved.
            "step" if torn => torn = false,
            "step" => {
                assert_eq!(entry["step"].as_u64(), Some(next));
                next += 1;
            }
            "completed" => assert_eq!(next, steps),
            _ => {}
        }
    }
}

/// A known key gives the same vocabulary again, so that a run killed during its release can go on.
#[test]
fn kills_during_the_vocabulary_release_change_nothing_under_a_test_key() {
    let bench = Bench::new(&tiny_with_vocabulary());
    let whole = bench.model("whole", &["--test-key", "5"]);
    for milliseconds in [10, 20, 30, 40, 60] {
        let out = format!("killed{milliseconds}");
        let mut command = bench.command(&out, &["--test-key", "5"]);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(milliseconds));
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(bench.model(&out, &["--test-key", "5", "--resume"]), whole);
        assert_eq!(ledger(&bench.path(&out)).iter().filter(|entry| entry["kind"] == "release").count(), 1);
        verify_run(&bench.path(&out)).unwrap();
    }
}

/// PITFALLS 8: the private run may not release its vocabulary a second time.
#[test]
fn a_private_run_killed_between_charge_and_release_is_refused() {
    let bench = Bench::new(&tiny_with_vocabulary());
    bench.model("run", &[]);
    let run = bench.path("run");
    // What a kill right after the reservation leaves: the header and the release's line.
    let text = std::fs::read_to_string(run.join("ledger.jsonl")).unwrap();
    let two: String = text.split_inclusive('\n').take(2).collect();
    assert!(two.contains("\"kind\":\"release\""));
    for name in ["model.safetensors", "tokenizer.json"] {
        std::fs::remove_file(run.join(name)).unwrap();
    }
    std::fs::write(run.join("ledger.jsonl"), two).unwrap();
    let output = bench.run("run", &["--resume"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("its privacy is spent and its result is lost"), "{}", stderr(&output));
}

#[test]
fn an_interrupt_checkpoints_exits_130_and_the_run_goes_on_to_the_same_weights() {
    let mut plan = tiny();
    plan["training"]["steps"] = json!(150);
    // No checkpoint of its own accord: only the interrupt's.
    plan["performance"]["checkpoint_every"] = json!(100_000);
    let bench = Bench::new(&plan);
    let whole = bench.model("whole", &["--test-key", "9"]);
    let process = bench
        .command("run", &["--test-key", "9"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !bench.path("run").join("metrics.jsonl").exists() {
        sleep(Duration::from_millis(2));
    }
    sleep(Duration::from_millis(40));
    let kill = std::process::Command::new("kill").arg("-INT").arg(process.id().to_string()).status();
    assert!(kill.unwrap().success());
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let message = stderr(&output);
    let last = message.lines().last().unwrap();
    assert!(last.contains("--resume") && last.contains("--test-key 9"), "{last}");
    let before = reservations(&bench.path("run"));
    assert!(before > 0 && before < 150);
    assert_eq!(bench.model("run", &["--test-key", "9", "--resume"]), whole);
    assert_eq!(reservations(&bench.path("run")), 150, "an orderly stop burns no step");
}

/// A private run resumed draws new noise, is charged again, and ends early where the spare steps do not pay for it.
#[test]
fn a_run_whose_spare_steps_are_used_up_ends_early_within_the_certified_epsilon() {
    let mut plan = tiny();
    plan["privacy"]["spare_steps"] = json!(3);
    plan["performance"]["checkpoint_every"] = json!(100_000);
    let bench = Bench::new(&plan);
    let mut process = bench.command("run", &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let run = bench.path("run");
    while !run.join("ledger.jsonl").exists() || reservations_or_none(&run) < 10 {
        sleep(Duration::from_millis(1));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let burned = reservations(&run) as u64;
    assert!((10..60).contains(&burned));
    bench.model("run", &["--resume"]);
    let summary = verify_run(&run).unwrap();
    assert!(summary.private);
    assert_eq!(summary.steps_done, (60 + 3 - burned).min(60));
    let certificate: serde_json::Value =
        serde_json::from_slice(&std::fs::read(run.join("certificate.json")).unwrap()).unwrap();
    let upper = |name: &str| certificate["guarantee"][name]["upper"].as_f64().unwrap();
    assert!(upper("epsilon") <= upper("planned_epsilon"));
    assert_eq!(certificate["ledger"]["burned"].as_u64(), Some(burned));
    if burned > 3 {
        let text = std::fs::read_to_string(run.join("certificate.md")).unwrap();
        assert!(text.contains("ended early"));
    }
}

/// The last line may be half written while the process lives.
fn reservations_or_none(run: &std::path::Path) -> usize {
    let text = std::fs::read_to_string(run.join("ledger.jsonl")).unwrap_or_default();
    text.matches("\"kind\":\"step\"").count()
}

/// The torn line is charged as the step it would have reserved, and the run goes on.
#[test]
fn a_torn_last_line_is_charged_and_the_run_goes_on_to_the_same_weights() {
    let bench = Bench::new(&tiny());
    let whole = bench.model("whole", &["--test-key", "5"]);
    let mut process = bench
        .command("run", &["--test-key", "5"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let run = bench.path("run");
    while !run.join("checkpoint.safetensors").exists() {
        sleep(Duration::from_millis(1));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let before = reservations(&run);
    let path = run.join("ledger.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"sequence\":");
    std::fs::write(&path, text).unwrap();
    assert_eq!(bench.model("run", &["--test-key", "5", "--resume"]), whole);
    let entries = ledger(&run);
    let at = entries.iter().position(|entry| entry["kind"] == "resume").unwrap();
    assert_eq!(entries[at]["torn_bytes"], 12);
    assert_eq!(
        (entries[at + 1]["kind"].as_str(), entries[at + 1]["step"].as_u64()),
        (Some("step"), Some(before as u64))
    );
    let charged = |entry: &&serde_json::Value| entry["step"].as_u64() == Some(before as u64);
    assert_eq!(entries.iter().filter(charged).count(), 2, "once for the torn line, once for the step itself");
    assert_every_attempt_is_charged(&run, 60);
    verify_run(&run).unwrap();
}
