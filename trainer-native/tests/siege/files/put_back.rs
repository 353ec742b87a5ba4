//! Older states of a folder, and what others can learn from the files and the memory of a run.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use accountant::{Delta, DpEvent, NeighboringRelation};
use serde_json::{Value, json};

use super::{stdout, verified};
use crate::common::{self, Bench, stderr, tiny};

/// Copies the files of a folder over those of another, as `cp -a from/. to/` does: numbers and times of creation stay.
fn put_back(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
    assert!(status.unwrap().success());
}

/// Runs until `steps` steps are charged, and kills the process.
fn killed_after(bench: &Bench, steps: usize, arguments: &[&str]) {
    let mut process =
        bench.command("run", arguments).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let charged = || bench.path("run/ledger.jsonl").exists() && lines(&bench.path("run")) >= steps;
    while !charged() && process.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    process.kill().unwrap();
    process.wait().unwrap();
}

fn lines(run: &Path) -> usize {
    std::fs::read_to_string(run.join("ledger.jsonl")).unwrap().lines().count()
}

fn long() -> Value {
    let mut plan = tiny();
    plan["training"]["steps"] = json!(4000);
    plan["performance"] = json!({ "checkpoint_every": 5 });
    plan
}

/// A backup that is copied over the run, or over the finished run, loses no charge.
#[test]
fn an_older_state_put_back_in_place_is_refused_while_the_run_lasts_and_after_it() {
    let bench = Bench::new(&long());
    let (run, backup) = (bench.path("run"), bench.path("backup"));
    killed_after(&bench, 20, &[]);
    std::fs::create_dir(&backup).unwrap();
    put_back(&run, &backup);
    killed_after(&bench, lines(&backup) + 75, &["--resume"]);
    let charged = lines(&run);
    assert!(charged >= lines(&backup) + 75);
    let latest = bench.path("latest");
    std::fs::create_dir(&latest).unwrap();
    put_back(&run, &latest);
    let is_refused = |arguments: &[&str]| {
        put_back(&backup, &run);
        let refused = bench.run("run", arguments);
        let text = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(text.contains("older state of the folder was put back"), "{text}");
    };
    is_refused(&["--resume"]);
    is_refused(&["--resume", "--copied"]);
    let message = stderr(&bench.run("run", &["--resume"]));
    // The process may have been killed between a line and its record in the mirror.
    let had = |lines: usize| message.contains(&format!("had {lines} lines"));
    assert!(had(charged) || had(charged - 1), "{message}");
    put_back(&latest, &run);
    // The mirror contains no time, no text, and no name of another run.
    let notes: Vec<_> = std::fs::read_dir(bench.path("state/trainer-native")).unwrap().collect();
    assert_eq!(notes.len(), 1);
    killed_after(&bench, charged + 10, &["--resume"]);
    // Where nothing is noted, it is said.
    std::fs::remove_dir_all(bench.path("state")).unwrap();
    std::fs::write(bench.path("state"), "").unwrap();
    let mut process = bench.command("run", &["--resume"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut screen = std::io::BufReader::new(process.stderr.take().unwrap());
    while !said.contains("would not be noticed") && screen.read_line(&mut said).unwrap() > 0 {}
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(said.contains("would not be noticed"), "{said}");
}

#[test]
fn a_run_is_not_finished_twice_from_one_state() {
    let mut plan = long();
    plan["training"]["steps"] = json!(60);
    let bench = Bench::new(&plan);
    let (run, backup) = (bench.path("run"), bench.path("backup"));
    killed_after(&bench, 20, &[]);
    std::fs::create_dir(&backup).unwrap();
    put_back(&run, &backup);
    bench.model("run", &["--resume"]);
    put_back(&backup, &run);
    let refused = bench.run("run", &["--resume"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("older state"), "{}", stderr(&refused));
}

/// No other user can read a run in progress, whatever the umask. A finished run has the umask's
/// rights, and its files tell no time.
#[cfg(unix)]
#[test]
fn a_run_is_its_owners_alone_until_it_is_finished_and_then_tells_no_time() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let mut plan = long();
    plan["training"]["steps"] = json!(200);
    plan["performance"]["snapshot_every"] = json!(50);
    let bench = Bench::new(&plan);
    let started = |arguments: &[&str]| {
        let command = bench.command("run", arguments);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "umask 000; exec \"$0\" \"$@\""])
            .arg(command.get_program())
            .args(command.get_args());
        shell.env("XDG_STATE_HOME", bench.path("state")).stderr(Stdio::null()).stdout(Stdio::null());
        shell.spawn().unwrap()
    };
    let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    let mut process = started(&[]);
    let checkpoint = bench.path("run/checkpoint.safetensors");
    while !checkpoint.exists() && process.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let run = bench.path("run");
    let of_run: Vec<_> =
        below(&run).into_iter().filter(|path| !path.starts_with(run.join("snapshots"))).collect();
    assert!(of_run.len() >= 6, "{of_run:?}");
    for path in of_run.iter().chain(&below(&bench.path("state"))) {
        assert_eq!(mode(path), if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
    assert_eq!(mode(&run), 0o700);
    assert!(started(&["--resume"]).wait().unwrap().success());
    assert_eq!(mode(&run), 0o700, "the folder is its owner's to open");
    for path in below(&run) {
        assert_eq!(mode(&path), if path.is_dir() { 0o777 } else { 0o666 }, "{}", path.display());
        assert_eq!(std::fs::metadata(&path).unwrap().mtime(), 946_684_800, "{}", path.display());
    }
    assert!(run.join("snapshots/50/model.safetensors").exists());
    let ledger = std::fs::read_to_string(run.join("ledger.jsonl")).unwrap();
    assert!(!ledger.contains("created_ns") && !ledger.contains("inode"), "the ledger has no clock");
}

/// Returns all files and folders below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            let inner = if path.is_dir() { below(&path) } else { Vec::new() };
            std::iter::once(path).chain(inner)
        })
        .collect()
}

/// A crash leaves no core dump with the key, and no other process reads the memory.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_is_aborted_leaves_no_core_dump() {
    let bench = Bench::new(&long());
    let command = bench.command("run", &[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -c unlimited 2>/dev/null; exec \"$0\" \"$@\""]);
    shell.arg(command.get_program()).args(command.get_args()).current_dir(bench.folder.path());
    shell.env("XDG_STATE_HOME", bench.path("state")).stderr(Stdio::null()).stdout(Stdio::null());
    let mut process = shell.spawn().unwrap();
    let ledger = bench.path("run/ledger.jsonl");
    while !ledger.exists() && process.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", process.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[4..6], ["1", "1"], "{line}");
    // The files of a process that may be dumped belong to its user. Those of other processes belong
    // to root.
    if !is_root() {
        assert!(std::fs::read(format!("/proc/{}/environ", process.id())).is_err(), "memory can be read");
    }
    let killed = Command::new("kill").args(["-ABRT", &process.id().to_string()]).status();
    assert!(killed.unwrap().success());
    let ended = process.wait().unwrap();
    assert!(!std::os::unix::process::ExitStatusExt::core_dumped(&ended), "{ended:?}");
    let left = below(bench.folder.path());
    assert!(
        left.iter().all(|path| !path.file_name().unwrap().to_string_lossy().starts_with("core")),
        "{left:?}"
    );
}

#[cfg(target_os = "linux")]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// The time at which a sweep's winner began would tell how many trials came before it.
#[cfg(unix)]
#[test]
fn a_published_sweep_tells_no_time_and_no_trial_of_it_begins_twice() {
    use std::os::unix::fs::MetadataExt;
    let mut plan = common::tiny_with_vocabulary();
    plan["training"]["steps"] = json!(6);
    let bench = Bench::new(&plan);
    let sweep = |name: &str, trials: Value| {
        let vary = json!({ "training.learning_rate.peak": [1e-3, 1e-2] });
        let sweep = json!({ "plan": "plan.json", "vary": vary, "trials": trials, "epsilon": 60 });
        std::fs::write(bench.path("sweep.json"), sweep.to_string()).unwrap();
        let out = bench.path(name);
        move |resume: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
            command.arg("sweep").arg("--sweep").arg(out.with_file_name("sweep.json")).arg("--out").arg(&out);
            command.args(resume).env("XDG_STATE_HOME", out.with_file_name("state"));
            command.output().unwrap()
        }
    };
    let best = sweep("best", json!({ "best": { "poisson": { "mean": 3.0 } } }));
    stdout(&best(&[]));
    let all = sweep("all", json!({ "all": { "seeds": 1 } }));
    stdout(&all(&[]));
    for name in ["best", "all"] {
        let folder = bench.path(name);
        for path in below(&folder).iter().chain([&folder]) {
            assert_eq!(std::fs::metadata(path).unwrap().mtime(), 946_684_800, "{}", path.display());
        }
        assert_eq!(verified(&folder).1["not_covered"], json!([]), "{name}");
    }
    std::fs::write(bench.path("all/trials/1-1/evaluation2.json"), "{}").unwrap();
    assert_eq!(verified(&bench.path("all")).1["not_covered"], json!(["trials/1-1/evaluation2.json"]));
    // The state before the last trial, and before the vocabulary.
    for name in ["trials/2-1", "vocabulary"] {
        std::fs::remove_dir_all(bench.path("all").join(name)).unwrap();
        let _ = std::fs::remove_file(bench.path("all/certificate.json"));
        let refused = all(&["--resume"]);
        assert_eq!(refused.status.code(), Some(2), "{name}: {}", stderr(&refused));
        assert!(stderr(&refused).contains("older state of the sweep"), "{name}: {}", stderr(&refused));
    }
}

/// Two runs that continue from one copied folder spend separately. Oracle: the accountant on the
/// steps of both ledgers.
#[test]
fn both_runs_that_went_on_from_a_copy_count_in_the_history() {
    let mut plan = long();
    plan["training"]["steps"] = json!(60);
    let bench = Bench::new(&plan);
    let (run, copy) = (bench.path("run"), bench.path("copy"));
    killed_after(&bench, 20, &[]);
    std::fs::create_dir(&copy).unwrap();
    put_back(&run, &copy);
    bench.model("run", &["--resume"]);
    let refused = bench.run("copy", &["--resume"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    // The copy continues on another computer, which does not have the records of this one.
    let elsewhere = |arguments: &[&str]| {
        bench.command("copy", arguments).env("XDG_STATE_HOME", bench.path("elsewhere")).output().unwrap()
    };
    let resumed = elsewhere(&["--resume", "--copied"]);
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    let history = |folders: &[&Path]| -> (f64, usize) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
        let output =
            command.arg("history").args(folders).args(["--delta", "1e-4", "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        (found["epsilon"]["upper"].as_f64().unwrap(), found["stages"].as_array().unwrap().len())
    };
    let steps = common::ledger(&run).into_iter().chain(common::ledger(&copy));
    let mut events: Vec<DpEvent> = steps
        .filter(|entry| entry["kind"] == "step")
        .map(|entry| serde_json::from_value(entry["event"].clone()).unwrap())
        .collect();
    let count = events.len() as u64;
    assert!(count >= 2 * 60 && events.iter().all(|event| *event == events[0]), "{count}");
    let step = DpEvent::SelfComposed { event: Box::new(events.remove(0)), count };
    let delta = Delta::new(1e-4).unwrap();
    let spent = accountant::epsilon(&step, delta, NeighboringRelation::AddOrRemoveOne).unwrap().upper;
    for folders in [[&run, &copy], [&copy, &run]] {
        let (epsilon, stages) = history(&folders.map(PathBuf::as_path));
        assert_eq!(stages, 2, "neither continues the other");
        assert!((epsilon / spent - 1.0).abs() < 1e-6, "{epsilon} {spent}");
    }
    assert!(history(&[&run]).0 < 0.9 * spent);
}
