//! Runs of several ranks. They need `mpirun`; `cargo xtask setup` installs it. `cargo xtask campaign ranks` runs every family and
//! kills more ranks.
#![cfg(feature = "mpi")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::ranks::{messages, on_ranks, ranks_of, signal};
use common::{Bench, ROBERTA, ledger, reservations, stderr, tiny, tiny_with_vocabulary, word_tokenizer};
use serde_json::{Value, json};
use training::verify::verify_run;

/// After this time a run is stuck.
const HANGS_AFTER: Duration = Duration::from_secs(10);

/// Records of users with a text and a target.
const PAIRS: &str = "pairs.jsonl";

/// File with the same records as elements of an array.
const ARRAY: &str = "pairs.json";

/// Records of users with several labels each, which lie apart.
const LABELS: &str = "labels.jsonl";

/// A public tokenizer.
const WORDS: &str = "words.json";

fn write_files(bench: &Bench) {
    std::fs::write(bench.path(WORDS), word_tokenizer(&ROBERTA).to_string()).unwrap();
    let line = |n: usize| {
        format!(
            "{{\"who\":\"u{}\",\"text\":\"note {n} of {}\",\"target\":\"{n}\"}}\n",
            n % 40,
            "a long day ".repeat(n % 9)
        )
    };
    let lines: Vec<String> = (0..120).map(line).collect();
    std::fs::write(bench.path(PAIRS), lines.concat()).unwrap();
    let labelled = |n: usize| {
        let label = ["anger", "grief", "joy"][n / 40];
        format!("{{\"who\":\"u{}\",\"label\":\"{label}\",\"text\":\"note {n}\"}}\n", n % 40)
    };
    std::fs::write(bench.path(LABELS), (0..120).map(labelled).collect::<String>()).unwrap();
    std::fs::write(bench.path(ARRAY), format!("[{}]", lines.join(",\n"))).unwrap();
}

/// Whether this is a campaign, which takes every family and kills fifty times.
fn is_campaign() -> bool {
    std::env::var_os("CAMPAIGN_MINUTES").is_some()
}

fn run(bench: &Bench, count: usize, out: &str, arguments: &[&str]) -> Output {
    let command = bench.command(out, arguments);
    if count == 1 { bench.run(out, arguments) } else { on_ranks(count, &command).output().unwrap() }
}

fn model(bench: &Bench, count: usize, out: &str, arguments: &[&str]) -> Vec<u8> {
    let output = run(bench, count, out, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    std::fs::read(bench.path(out).join("model.safetensors")).unwrap()
}

fn plan(family: &str, objective: &str) -> Value {
    let mut plan = tiny();
    plan["model"] =
        json!({ "family": family, "d_model": 16, "layers": 1, "heads": 2, "d_ff": 32, "context": 24 });
    match family {
        "feed_forward" => {
            plan["model"] = json!({ "family": family, "d_model": 5, "layers": 2, "heads": 1, "d_ff": 12, "context": 10,
                "history": 4, "hidden": [12, 6] });
        }
        "bart" | "mbart" | "marian" => {
            plan["model"]["decoder_context"] = json!(12);
            plan["data"] = json!({ "source": { "path": PAIRS }, "units": 120 });
            plan.as_object_mut().unwrap().remove("evaluation");
        }
        "roberta" => plan["tokenizer"] = json!({ "public": { "path": WORDS, "made_from": "public_text" } }),
        "phi" => plan["model"]["d_model"] = json!(20),
        // Its 64 rotated coordinates are in one head.
        "gptj" => plan["model"]["d_model"] = json!(128),
        "gpt_neo" => plan["model"]["context"] = json!(264),
        "modernbert" => plan["model"]["context"] = json!(160),
        _ => {}
    }
    plan["training"]["objective"] = json!(objective);
    plan["training"]["steps"] = json!(4);
    plan["training"]["learning_rate"] = json!({ "peak": 1e-2 });
    if let Some(evaluation) = plan.get_mut("evaluation") {
        evaluation["every"] = json!(2);
    }
    plan["performance"]["physical_batch"] = json!(4);
    plan
}

/// Plans of the families, the first of them for every check.
fn plans() -> Vec<Value> {
    let mut bert = plan("bert", "masked_lm_next_sentence");
    bert["training"]["optimizer"] = json!({ "lamb": {} });
    bert["training"]["clipping"] = json!("per_layer");
    let mut t5 = plan("t5", "span_corruption");
    t5["training"]["optimizer"] = json!({ "adafactor": {} });
    t5["training"]["dropout"] = json!(0.1);
    t5["privacy"]["sampling"] = json!("balls_in_bins");
    let mut adaptive = plan("gpt2", "causal_lm");
    adaptive["training"]["clipping"] = json!({ "adaptive": { "count_noise": 1.0 } });
    let mut exact = tiny_with_vocabulary();
    exact["privacy"]["arithmetic"] = json!("exact");
    exact["privacy"]["sampling"] = json!({ "cyclic_poisson": { "bands": 3 } });
    exact["training"]["steps"] = json!(3);
    exact["training"]["warm_start"] = json!({ "steps": 3 });
    exact["training"]["learning_rate"] = json!({ "peak": 1e-2 });
    // The text stays in its file. A user's records lie apart.
    let mut of_users = plan("gpt2", "causal_lm");
    of_users["data"] = json!({ "source": { "path": PAIRS }, "units": 40, "user_field": "who" });
    of_users["privacy"]["unit"] = json!("user");
    // Each rank reads the pairs of its own micro-batches.
    let mut pairs = plan("marian", "text_to_text");
    pairs["data"] = json!({ "source": { "path": ARRAY }, "units": 40, "user_field": "who" });
    pairs["privacy"]["unit"] = json!("user");
    // Each rank counts the labels of its own share.
    let mut histogram = plan("gpt2", "text_to_text");
    histogram["data"] = json!({
        "source": { "path": LABELS }, "units": 40, "user_field": "who", "text_field": "label", "target_field": "text",
        "label_histogram": { "labels": ["anger", "grief", "joy"], "noise_multiplier": 4 }
    });
    histogram["privacy"]["unit"] = json!("user");
    histogram.as_object_mut().unwrap().remove("evaluation");
    let mut plans = vec![bert, t5, adaptive, exact, of_users, pairs, histogram];
    if is_campaign() {
        let of_family = |(name, _): (&str, &str)| {
            let objective = plan::Family::named(name).unwrap().objectives()[0];
            plan(name, serde_json::to_value(objective).unwrap().as_str().unwrap())
        };
        plans.extend(plan::Family::NAMES.map(of_family));
    }
    plans
}

/// The lines of a file, apart from digests of other files and the ranks' line.
fn lines_without_ranks(path: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter(|line| !line.starts_with("| ranks |") && !line.contains("ledger, last line"))
        .map(str::to_owned)
        .collect()
}

/// Oracle: one process with the same test key. The first plan sums in floating point within a micro-batch, the fourth in exact
/// arithmetic.
#[test]
fn ranks_that_divide_sums_train_the_same_bits() {
    for plan in [0, 3].map(|at| plans().swap_remove(at)) {
        let bench = Bench::new(&plan);
        let alone = model(&bench, 1, "alone", &["--test-key", "5"]);
        let options = ["--test-key", "5", "--divide-sums-above", "0"];
        let output = run(&bench, 2, "divided", &options);
        let said = stderr(&output);
        assert!(
            output.status.success() && said.contains("each rank keeps a part of the sums alone"),
            "{said}"
        );
        assert!(std::fs::read(bench.path("divided/model.safetensors")).unwrap() == alone, "{plan}");
    }
    let refused = run(&Bench::new(&tiny()), 2, "private", &["--divide-sums-above", "0"]);
    assert!(!refused.status.success() && stderr(&refused).contains("--test-key"), "{}", stderr(&refused));
}

/// Oracle: one process with the same test key.
#[test]
fn any_number_of_ranks_trains_the_same_bits_under_the_same_certificate() {
    let counts: &[usize] = if is_campaign() { &[2, 4] } else { &[2] };
    for plan in plans() {
        let bench = Bench::new(&plan);
        write_files(&bench);
        let alone = model(&bench, 1, "alone", &["--test-key", "5"]);
        for &count in counts {
            let out = format!("ranks{count}");
            assert!(model(&bench, count, &out, &["--test-key", "5"]) == alone, "{count} ranks: {plan}");
            let [a, b] = ["alone", &out].map(|out| bench.path(out));
            let metrics = |run: &Path| std::fs::read(run.join("metrics.jsonl")).unwrap();
            assert_eq!(metrics(&a), metrics(&b));
            let [mut steps, mut others] = [&a, &b].map(|run| ledger(run));
            steps.remove(0);
            let header = others.remove(0);
            assert_eq!(steps, others);
            assert_eq!(header["computation"]["placement"], json!({ "ranks": count, "hosts": 1 }));
            let [a, b] = [a, b].map(|run| lines_without_ranks(&run.join("certificate.md")));
            let more: Vec<&String> = b.difference(&a).collect();
            assert!(
                a.is_subset(&b) && more.len() == 1 && more[0].contains("network between them are trusted"),
                "{more:?}"
            );
            assert_eq!(
                verify_run(&bench.path(&out)).unwrap().steps_done,
                plan["training"]["steps"].as_u64().unwrap()
            );
        }
    }
}

/// Oracle: one process with the same test key. A user's records are in the shares of three ranks, and count as those of one unit.
#[test]
fn any_number_of_ranks_releases_the_same_vocabulary() {
    const NOTES: &str = "notes.jsonl";
    let note = |n: usize| {
        let text = format!("a fever on day {}, then {} cough", n % 3, "no ".repeat(n % 11));
        format!("{{\"who\":\"u{}\",\"text\":\"{text} and rest\"}}\n", n % 300)
    };
    let notes: String = (0..900).map(note).collect();
    for unit in [json!("user"), json!("record"), json!({ "words": 3 })] {
        let mut plan = tiny_with_vocabulary();
        plan["data"] = json!({ "source": { "path": NOTES }, "units": 300, "user_field": "who" });
        plan["privacy"]["unit"] = unit.clone();
        plan["training"]["steps"] = json!(6);
        plan.as_object_mut().unwrap().remove("evaluation");
        let bench = Bench::new(&plan);
        std::fs::write(bench.path(NOTES), &notes).unwrap();
        let released = |count| {
            let out = format!("ranks{count}");
            model(&bench, count, &out, &["--test-key", "5"]);
            std::fs::read_to_string(bench.path(&out).join("tokenizer.json")).unwrap()
        };
        let alone = released(1);
        assert!(alone.contains("\"▁fever\""), "{unit}: no word was released");
        for count in [2, 3] {
            assert!(released(count) == alone, "{unit}: {count} ranks");
        }
    }
}

/// All ranks share the key of a private run. With two keys they would add noise at different places
/// and draw different lots.
#[test]
fn a_private_run_of_several_ranks_ends_and_verifies() {
    let bench = Bench::new(&tiny_with_vocabulary());
    model(&bench, 2, "run", &[]);
    let summary = verify_run(&bench.path("run")).unwrap();
    assert!(summary.private);
    let certificate = std::fs::read_to_string(bench.path("run/certificate.md")).unwrap();
    assert!(certificate.contains("| ranks | 2 on one machine |"), "{certificate}");
}

/// Waits until a run ends, and fails if it hangs.
fn wait(mut child: Child, out: &Path) -> bool {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            while !ranks_of(out).is_empty() {
                assert!(begun.elapsed() < HANGS_AFTER, "a rank outlives the run");
                sleep(Duration::from_millis(20));
            }
            return status.success();
        }
        assert!(begun.elapsed() < HANGS_AFTER, "the run hangs after one of its processes was killed");
        sleep(Duration::from_millis(10));
    }
}

/// PITFALLS 8, 9. Oracle: the uninterrupted run of one process with the same test key.
#[test]
fn killed_ranks_lose_no_charge_and_any_number_of_ranks_goes_on_to_the_same_weights() {
    let mut plan = tiny();
    plan["privacy"]["spare_steps"] = json!(4000);
    plan["training"]["steps"] = json!(80);
    let bench = Bench::new(&plan);
    let whole = bench.model("whole", &["--test-key", "5"]);
    let mut random = fastrand::Rng::with_seed(3);
    let mut kills = if is_campaign() { 50 } else { 2 };
    let mut folders = 0;
    while kills > 0 {
        folders += 1;
        let (out, mut charged) = (format!("killed{folders}"), 0);
        let folder = bench.path(&out);
        loop {
            let most = if is_campaign() { 4 } else { 3 };
            let count = random.usize(if charged == 0 { 2..=most } else { 1..=most });
            let arguments = bench.resumed(&out, &["--test-key", "5"]);
            if kills == 0 {
                assert!(model(&bench, count, &out, &arguments) == whole);
                break;
            }
            let mut command = on_ranks(count, &bench.command(&out, &arguments));
            let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            sleep(Duration::from_millis(300 + random.u64(..1500)));
            let ranks = ranks_of(&folder);
            // Now and then mpirun itself.
            let victim = if random.u8(..8) == 0 { None } else { ranks.get(random.usize(..count)) };
            kill_if_alive(*victim.unwrap_or(&child.id()));
            if wait(child, &folder) {
                break;
            }
            kills -= 1;
            if folder.join("ledger.jsonl").exists() {
                assert!(reservations(&folder) >= charged, "a reservation was lost");
                charged = reservations(&folder);
            }
        }
        assert!(std::fs::read(folder.join("model.safetensors")).unwrap() == whole);
        assert_eq!(verify_run(&folder).unwrap().steps_done, 80);
    }
}

fn kill_if_alive(process: u32) {
    let _ = Command::new("kill").args(["-KILL", &process.to_string()]).stderr(Stdio::null()).status();
}

/// A stop of any rank stops all ranks, after a checkpoint. mpirun passes SIGUSR1 on to all ranks.
#[test]
fn a_signal_saves_the_run_and_one_message_says_how_to_go_on() {
    stops_after(ranks_in, |_, ranks| signal("-TERM", ranks[1]));
    stops_after(ranks_in, |mpirun, _| signal("-USR1", mpirun));
}

/// `timeout` sends its signal to the process and to its group: two signals are one request. A rank stands still, as in a step of more than
/// a second.
#[test]
fn timeout_and_the_script_of_the_recipes_save_the_run() {
    let script = |bench: &Bench| {
        let ranks = ranks_in(bench);
        let mut command = Command::new("timeout");
        command.args(["60", "bash", concat!(env!("CARGO_MANIFEST_DIR"), "/../cluster/mpirun.sh")]);
        command.args(ranks.get_args());
        command.envs(ranks.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    };
    stops_after(script, |timeout, ranks| {
        signal("-STOP", ranks[1]);
        signal("-TERM", timeout);
        sleep(Duration::from_millis(2500));
        signal("-CONT", ranks[1]);
    });
    stops_after(ranks_in, |_, ranks| {
        [ranks[0], ranks[1]].repeat(2).into_iter().for_each(|rank| signal("-TERM", rank));
    });
}

/// The command that trains on two ranks in the folder `run`.
fn ranks_in(bench: &Bench) -> Command {
    on_ranks(2, &bench.command("run", &["--test-key", "9"]))
}

/// Starts two ranks in the folder `run`, and waits until three steps are charged.
fn after_three_steps(bench: &Bench, mut command: Command) -> Child {
    let out = bench.path("run");
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while !out.join("ledger.jsonl").exists() || reservations_so_far(&out) < 3 {
        sleep(Duration::from_millis(5));
    }
    child
}

fn stops_after(start: impl Fn(&Bench) -> Command, stop: impl Fn(u32, &[u32])) {
    let mut plan = tiny();
    plan["training"]["steps"] = json!(400);
    plan["performance"]["checkpoint_every"] = json!(100_000);
    let bench = Bench::new(&plan);
    let out = bench.path("run");
    let child = after_three_steps(&bench, start(&bench));
    stop(child.id(), &ranks_of(&out));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let messages = messages(&output);
    assert_eq!(messages.len(), 1, "{}", stderr(&output));
    assert!(messages[0].contains("continue with: mpirun -np 2 trainer-native --plan"), "{messages:?}");
    let stopped = reservations(&out) as u64;
    assert!((3..400).contains(&stopped) && out.join("checkpoint.safetensors").exists());
    let resumed = ledger_after_resume(&bench);
    assert_eq!(resumed["steps_done"].as_u64(), Some(stopped), "an orderly stop burns no step");
}

/// After a rank is killed, and after Ctrl-C, mpirun ends the others, which say how to continue.
#[test]
fn ranks_that_mpirun_ends_say_how_to_go_on() {
    let ways: [fn(&Child, &[u32]); 2] =
        [|_, ranks| signal("-KILL", ranks[1]), |mpirun, _| signal("-INT", mpirun.id())];
    for ends in ways {
        let mut plan = tiny();
        plan["training"]["steps"] = json!(400);
        let bench = Bench::new(&plan);
        let child = after_three_steps(&bench, ranks_in(&bench));
        ends(&child, &ranks_of(&bench.path("run")));
        let output = child.wait_with_output().unwrap();
        let message = stderr(&output);
        let said = message.lines().filter(|line| line.contains("continue with: mpirun -np 2")).count();
        // The first time before the first step.
        assert!(!output.status.success() && said == 2, "{message}");
        assert!(ledger_after_resume(&bench)["steps_done"].is_u64());
    }
}

/// The digest of a text in its files does not depend on the number of ranks. A changed record is in the share of one rank alone.
#[test]
fn another_number_of_ranks_goes_on_with_the_same_text_and_refuses_a_changed_record() {
    let mut plan = plan("gpt2", "causal_lm");
    plan["data"] = json!({ "source": { "path": PAIRS }, "units": 40, "user_field": "who" });
    plan["privacy"]["unit"] = json!("user");
    plan["training"]["steps"] = json!(400);
    plan.as_object_mut().unwrap().remove("evaluation");
    let bench = Bench::new(&plan);
    write_files(&bench);
    let child = after_three_steps(&bench, ranks_in(&bench));
    signal("-USR1", child.id());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    let text = std::fs::read_to_string(bench.path(PAIRS)).unwrap();
    std::fs::write(bench.path(PAIRS), text.replacen("note 100 ", "note 900 ", 1)).unwrap();
    for count in [1, 3] {
        let refused = run(&bench, count, "run", &["--test-key", "9", "--resume"]);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("is not the text that the run began with"), "{said}");
    }
    std::fs::write(bench.path(PAIRS), &text).unwrap();
    let alone = model(&bench, 1, "alone", &["--test-key", "9"]);
    assert!(model(&bench, 3, "run", &["--test-key", "9", "--resume"]) == alone);
}

/// The ledger line of a resumption, which a plan without remaining steps would not have.
fn ledger_after_resume(bench: &Bench) -> Value {
    let mut command = bench.command("run", &["--test-key", "9", "--resume"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let text = || std::fs::read_to_string(bench.path("run/ledger.jsonl")).unwrap();
    while !text().contains("\"kind\":\"resume\"") {
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let line = text().lines().find(|line| line.contains("\"kind\":\"resume\"")).unwrap().to_owned();
    serde_json::from_str::<Value>(&line).unwrap()["entry"].clone()
}

/// The last line may be incomplete while the run goes on.
fn reservations_so_far(run: &Path) -> usize {
    std::fs::read_to_string(run.join("ledger.jsonl")).unwrap_or_default().matches("\"kind\":\"step\"").count()
}

#[test]
fn a_refusal_is_one_message_and_ends_all_ranks() {
    let bench = Bench::new(&tiny());
    bench.model("run", &["--test-key", "5"]);
    let held = run(&bench, 2, "run", &["--test-key", "5"]);
    let public = run(&bench, 2, "other", &["--non-private"]);
    for (output, part) in [(held, "already holds a run"), (public, "without noise trains in one process")] {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let messages = messages(&output);
        assert!(messages.len() == 1 && messages[0].contains(part), "{}", stderr(&output));
    }
    assert!(!bench.path("other").exists());
}

#[test]
fn commands_that_are_no_run_take_one_process_and_devices_lists_the_ranks() {
    let program = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
        command.args(arguments);
        on_ranks(2, &command).output().unwrap()
    };
    let refused = program(&["history", ".", "--delta", "1e-6"]);
    assert_eq!((refused.status.code(), messages(&refused).len()), (Some(2), 1));
    let devices = String::from_utf8(program(&["devices"]).stdout).unwrap();
    assert_eq!(devices.matches("ranks: 2 on one machine").count(), 1, "{devices}");
}
