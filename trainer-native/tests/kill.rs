//! A run that is stopped at any moment resumes to the same weights, and every step is charged.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use common::{Bench, ledger, reservations, stderr, tiny, tiny_with_vocabulary};
use serde_json::{Value, json};
use training::verify::verify_run;

/// Number of kills in a test; `DP_KILLS` sets another number for longer trials.
fn kills(unless_told: u32) -> u32 {
    std::env::var("DP_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(unless_told)
}

/// Long enough to be killed in its middle.
fn tiny_of_150_steps() -> Value {
    let mut plan = tiny();
    plan["training"]["steps"] = json!(150);
    plan
}

/// PITFALLS 8, 9. Oracle: the uninterrupted run with the same test key.
#[test]
fn twenty_kills_change_no_weight_and_lose_no_charge() {
    assert_kills_change_nothing(&tiny_of_150_steps(), kills(20));
}

/// Kills a run with charges for a pass, adaptive clipping, and optimizer state of several shapes.
/// All of these are in the checkpoint.
#[test]
fn kills_in_the_middle_of_a_shuffled_pass_change_no_weight_and_lose_no_charge() {
    let mut plan = tiny_of_150_steps();
    plan["training"]["optimizer"] = json!({ "adafactor": {} });
    plan["training"]["clipping"] = json!({ "adaptive": { "count_noise": 1.0 } });
    plan["privacy"]["sampling"] = json!("shuffle");
    plan["privacy"]["relation"] = json!("zero_out");
    plan["privacy"]["spare_steps"] = json!(2000);
    assert_kills_change_nothing(&plan, kills(10));
}

/// The best weights so far are in a separate file. Dropout is drawn again for repeated steps.
#[test]
fn kills_change_neither_the_best_weights_nor_what_is_dropped() {
    let mut plan = tiny_of_150_steps();
    plan["training"]["learning_rate"] = json!({ "peak": 0.2 });
    plan["training"]["dropout"] = json!(0.2);
    plan["evaluation"]["every"] = json!(10);
    plan["evaluation"]["keep_best"] = json!(true);
    assert_kills_change_nothing(&plan, kills(5));
}

/// Starts a process that resumes a run, in which no file may exceed `blocks` of 512 bytes.
fn start(bench: &Bench, out: &str, blocks: Option<u64>) -> std::process::Child {
    let mut command = bench.command(out, &bench.resumed(out, &["--test-key", "5"]));
    if let Some(blocks) = blocks {
        let mut limited = std::process::Command::new("sh");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        limited.arg("-c").arg(script).arg(command.get_program()).args(command.get_args());
        command = limited;
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Balls in bins draw their sizes one after another, so a resumed process draws the earlier ones
/// again.
#[test]
fn kills_in_the_middle_of_balls_in_bins_change_no_weight_and_lose_no_charge() {
    let mut plan = tiny_of_150_steps();
    plan["training"]["optimizer"] = json!({ "lamb": {} });
    plan["training"]["clipping"] = json!("per_layer");
    plan["privacy"]["sampling"] = json!("balls_in_bins");
    plan["privacy"]["spare_steps"] = json!(2000);
    assert_kills_change_nothing(&plan, kills(5));
}

/// Correlated noise takes back noise that earlier processes drew. A known key draws it again.
#[test]
fn kills_in_the_middle_of_correlated_noise_change_no_weight_and_lose_no_charge() {
    let mut plan = tiny_of_150_steps();
    plan["privacy"]["sampling"] = json!({ "cyclic_poisson": { "bands": 4 } });
    plan["privacy"]["spare_steps"] = json!(2000);
    assert_kills_change_nothing(&plan, kills(5));
}

/// One band is DP-SGD with Poisson sampling: the same batches, noise and ε.
#[test]
fn one_band_trains_the_model_of_poisson_sampling() {
    let mut plan = tiny();
    let poisson = Bench::new(&plan);
    plan["privacy"]["sampling"] = json!({ "cyclic_poisson": { "bands": 1 } });
    let cyclic = Bench::new(&plan);
    let key = ["--test-key", "5"];
    assert_eq!(cyclic.model("run", &key), poisson.model("run", &key));
    let epsilon = |bench: &Bench| verify_run(&bench.path("run")).unwrap().epsilon;
    assert_eq!(epsilon(&cyclic), epsilon(&poisson));
}

fn assert_kills_change_nothing(plan: &serde_json::Value, kills: u32) {
    let bench = Bench::new(plan);
    let whole = bench.model("whole", &["--test-key", "5"]);
    let untouched = verify_run(&bench.path("whole")).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let (mut killed, mut folders) = (0, 0);
    while killed < kills {
        folders += 1;
        let out = format!("killed{folders}");
        let run = bench.path(&out);
        let mut charged = 0;
        while killed < kills {
            // Every fourth fault is a full disk, somewhere between the header and the model.
            let blocks = (random.u64(..4) == 0).then(|| 1 + random.u64(..64));
            let mut process = start(&bench, &out, blocks);
            sleep(Duration::from_millis(random.u64(..120)));
            // A full disk ends the process by itself.
            if blocks.is_none() {
                process.kill().unwrap();
            }
            if process.wait().unwrap().success() {
                break;
            }
            killed += 1;
            if run.join("ledger.jsonl").exists() {
                assert!(reservations(&run) >= charged, "a reservation was lost");
                charged = reservations(&run);
            }
        }
        assert_eq!(bench.model(&out, &bench.resumed(&out, &["--test-key", "5"])), whole);
        let summary = verify_run(&run).unwrap();
        assert_eq!(summary.steps_done, 150);
        assert!(reservations(&run) >= charged.max(150));
        assert_every_attempt_is_charged(&run, 150);
        assert!(summary.epsilon.unwrap().upper >= untouched.epsilon.unwrap().upper);
    }
}

/// A private run draws the rest of a pass in a new order, so a unit may take part again. The pass is charged again, even
/// after an orderly stop, and the run ends early if no spare pass is left.
#[test]
fn a_pass_that_a_stop_interrupts_is_charged_again() {
    assert_interrupted_passes_are_charged_again(json!("shuffle"), "shuffled_gaussian", 15);
}

/// A private process begins a new block of noise, in which each unit belongs to another part.
#[test]
fn a_stop_ends_a_block_of_correlated_noise_and_its_pass_is_charged_again() {
    let cyclic = json!({ "cyclic_poisson": { "bands": 5 } });
    assert_interrupted_passes_are_charged_again(cyclic, "cyclic_poisson_sampled_gaussian", 5);
}

/// `batches`: steps of a pass.
fn assert_interrupted_passes_are_charged_again(sampling: Value, event: &str, batches: u64) {
    let mut plan = tiny();
    plan["privacy"]["sampling"] = sampling;
    plan["privacy"]["relation"] = json!("zero_out");
    plan["privacy"]["spare_steps"] = json!(0);
    plan["training"]["steps"] = json!(150);
    let bench = Bench::new(&plan);
    let process = bench.command("run", &[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let run = bench.path("run");
    while reservations_or_none(&run) < 20 {
        sleep(Duration::from_millis(1));
    }
    // `timeout` and shells send a signal to the process and to its group: two are one request.
    for _ in 0..2 {
        let kill = std::process::Command::new("kill").arg("-INT").arg(process.id().to_string()).status();
        assert!(kill.unwrap().success());
    }
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(common::stderr(&output).contains("after this step, with a checkpoint"));
    let stopped = reservations(&run) as u64;
    bench.model("run", &["--resume"]);
    let summary = verify_run(&run).unwrap();
    let passes = ledger(&run)
        .iter()
        .filter(|entry| entry["kind"] == "step" && entry["event"]["type"] == event)
        .count() as u64;
    // The plan pays for as many passes as 150 steps have in any case.
    assert_eq!(passes, 150 / batches);
    let whole_passes = stopped.is_multiple_of(batches);
    assert_eq!(summary.steps_done, if whole_passes { 150 } else { 150 - batches });
    assert!(summary.epsilon.unwrap().upper <= 8.0);
}

/// Each process reserves every step after its checkpoint, including those that an earlier process reserved.
fn assert_every_attempt_is_charged(run: &std::path::Path, steps: u64) {
    let (mut next, mut torn) = (0, false);
    for entry in ledger(run) {
        match entry["kind"].as_str().unwrap() {
            "resume" => {
                next = entry["steps_done"].as_u64().unwrap();
                torn = entry["torn_bytes"].as_u64().unwrap() > 0;
            }
            // The line after a torn line charges what the torn line would have reserved.
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

/// A known key gives the same vocabulary again, so a run killed during its release can resume.
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
        assert_eq!(bench.model(&out, &bench.resumed(&out, &["--test-key", "5"])), whole);
        assert_eq!(ledger(&bench.path(&out)).iter().filter(|entry| entry["kind"] == "release").count(), 1);
        verify_run(&bench.path(&out)).unwrap();
    }
}

/// Starts a run and kills it once its release is charged. Returns the first two lines of its ledger, which are what a kill right
/// after the charge leaves: the header and the release's line.
fn killed_at_release(bench: &Bench, out: &str, arguments: &[&str]) -> [String; 2] {
    let mut command = bench.command(out, arguments);
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let text = || std::fs::read_to_string(bench.path(out).join("ledger.jsonl")).unwrap_or_default();
    while !text().contains("\"kind\":\"release\"") {
        sleep(Duration::from_micros(200));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let lines: Vec<String> = text().split_inclusive('\n').take(2).map(str::to_owned).collect();
    lines.try_into().unwrap()
}

/// After a torn line, nobody knows whether the release ran. A known key gives its result again.
#[test]
fn a_torn_line_that_may_be_the_releases_ends_only_a_run_with_a_secret_key() {
    let mut plan = tiny_with_vocabulary();
    plan["data"] = json!({ "source": { "embedded": { "records": 6000, "seed": 7 } }, "units": 6000 });
    let bench = Bench::new(&plan);
    let tear = |out: &str, key: &[&str]| {
        let [header, release] = killed_at_release(&bench, out, key);
        let torn = header + &release[..release.len() / 2];
        std::fs::write(bench.path(out).join("ledger.jsonl"), torn).unwrap();
    };
    tear("secret", &[]);
    let refused = bench.run("secret", &["--resume"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("its result is lost"), "{}", stderr(&refused));
    tear("known", &["--test-key", "5"]);
    let whole = bench.model("whole", &["--test-key", "5"]);
    assert_eq!(bench.model("known", &["--resume", "--test-key", "5"]), whole);
    verify_run(&bench.path("known")).unwrap();
}

/// PITFALLS 8: the private run may not release its vocabulary a second time, nor accept any file in
/// place of the lost one.
#[test]
fn a_private_run_killed_between_charge_and_release_is_refused() {
    let mut plan = tiny_with_vocabulary();
    plan["data"] = json!({ "source": { "embedded": { "records": 6000, "seed": 7 } }, "units": 6000 });
    let bench = Bench::new(&plan);
    let run = bench.path("run");
    let [header, release] = killed_at_release(&bench, "run", &[]);
    std::fs::write(run.join("ledger.jsonl"), header + &release).unwrap();
    for foreign in [false, true] {
        if foreign {
            std::fs::write(run.join("tokenizer.json"), tokenizer::Tokenizer::bytes(&[]).unwrap().to_json())
                .unwrap();
        }
        let output = bench.run("run", &["--resume"]);
        assert_eq!(output.status.code(), Some(2));
        let message = stderr(&output);
        assert!(message.contains("its privacy is spent and its result is lost"), "{message}");
    }
}

#[test]
fn an_interrupt_checkpoints_exits_130_and_the_run_goes_on_to_the_same_weights() {
    let mut plan = tiny_of_150_steps();
    // No regular checkpoint, only the interrupt's.
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

/// The step takes a minute or more. The second signal ends it: no checkpoint was written, and the step stays charged.
#[test]
fn a_signal_more_than_a_second_after_the_first_ends_the_run_at_once() {
    let mut plan = tiny();
    plan["model"] =
        json!({ "family": "gpt2", "d_model": 512, "layers": 8, "heads": 8, "d_ff": 2048, "context": 256 });
    plan["training"]["expected_batch_size"] = json!(280);
    plan["training"]["steps"] = json!(6);
    plan.as_object_mut().unwrap().remove("evaluation");
    let bench = Bench::new(&plan);
    let run = bench.path("run");
    let mut command = bench.command("run", &["--test-key", "9"]);
    let process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while reservations_or_none(&run) < 1 {
        sleep(Duration::from_millis(10));
    }
    let signal = || {
        let kill = std::process::Command::new("kill").arg("-INT").arg(process.id().to_string()).status();
        assert!(kill.unwrap().success());
    };
    signal();
    sleep(Duration::from_millis(1500));
    signal();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(!stderr(&output).contains("--resume"), "{}", stderr(&output));
    assert!(reservations(&run) == 1 && !run.join("checkpoint.safetensors").exists());
}

/// A signal during the vocabulary release: the release is charged once, finished and saved, and no step is taken. The run
/// resumes to the same weights.
#[test]
fn an_interrupt_in_the_release_saves_the_vocabulary_and_makes_no_step() {
    let mut plan = tiny_with_vocabulary();
    plan["data"] = json!({ "source": { "embedded": { "records": 6000, "seed": 7 } }, "units": 6000 });
    let bench = Bench::new(&plan);
    let whole = bench.model("whole", &["--test-key", "9"]);
    let run = bench.path("run");
    let mut command = bench.command("run", &["--test-key", "9"]);
    let process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let charged = || {
        std::fs::read_to_string(run.join("ledger.jsonl"))
            .is_ok_and(|text| text.contains("\"kind\":\"release\""))
    };
    while !charged() {
        sleep(Duration::from_micros(200));
    }
    // `timeout` sends its signal to the process and to its group: two signals are one request.
    for _ in 0..2 {
        let kill = std::process::Command::new("kill").arg("-TERM").arg(process.id().to_string()).status();
        assert!(kill.unwrap().success());
    }
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).lines().last().unwrap().contains("--resume"), "{}", stderr(&output));
    assert_eq!(reservations(&run), 0);
    assert!(
        ledger(&run).iter().any(|entry| entry["kind"] == "tokenizer") && run.join("tokenizer.json").exists()
    );
    assert_eq!(bench.model("run", &["--test-key", "9", "--resume"]), whole);
    assert_eq!(ledger(&run).iter().filter(|entry| entry["kind"] == "release").count(), 1);
    verify_run(&run).unwrap();
}

/// A resumed private run draws new noise, is charged again, and ends early if the spare steps do not pay for it.
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

/// The last line may be incomplete while the process is running.
fn reservations_or_none(run: &std::path::Path) -> usize {
    let text = std::fs::read_to_string(run.join("ledger.jsonl")).unwrap_or_default();
    text.matches("\"kind\":\"step\"").count()
}

/// The torn line is charged as the step it would have reserved, and the run resumes.
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
