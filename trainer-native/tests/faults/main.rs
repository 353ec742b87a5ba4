//! Runs under kills, failing disks, losses of power, flipped bits, copies and second processes: no charge is lost, nothing
//! panics or hangs, and every refusal is one clear line.
//!
//! The tests take seconds. `cargo xtask campaign faults --minutes M` runs them all at once for M minutes
//! with other random choices.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and reports its figures"
)]
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
mod replay;
mod shim;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Bench, stderr, tiny, tiny_with_vocabulary};
use serde_json::{Value, json};
use training::verify::verify_run;

use crate::replay::{Disk, Loss, parse};
use crate::shim::{Fault, in_time, watched};

/// Length of a campaign, and its random choices.
struct Campaign {
    until: Instant,
    cases: u64,
    /// Largest number of cases of an ordinary test.
    most: u64,
    random: fastrand::Rng,
}

impl Campaign {
    /// Creates a campaign of `cases` cases, or of as many as fit into the minutes in
    /// `CAMPAIGN_MINUTES`.
    fn of(cases: u64) -> Self {
        let minutes: Option<f64> = std::env::var("CAMPAIGN_MINUTES").ok().and_then(|text| text.parse().ok());
        Self {
            until: Instant::now() + Duration::from_secs_f64(60.0 * minutes.unwrap_or(60.0)),
            cases: 0,
            most: minutes.map_or(cases, |_| u64::MAX),
            random: minutes.map_or_else(|| fastrand::Rng::with_seed(7), |_| fastrand::Rng::new()),
        }
    }

    fn goes_on(&mut self) -> bool {
        let goes_on = self.cases < self.most && Instant::now() < self.until;
        self.cases += u64::from(goes_on);
        goes_on
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.u64(..n)
    }

    fn done(&self, what: &str) {
        println!("{what}: {} cases, no charge lost, no panic, no hang", self.cases);
    }
}

/// A short plan of each kind of sampling, with spare steps for many crashes.
fn plan(sampling: u64) -> Value {
    let mut plan = if sampling == 4 { tiny_with_vocabulary() } else { tiny() };
    plan["training"]["steps"] = json!(20);
    plan["privacy"]["spare_steps"] = json!(2000);
    plan["performance"]["checkpoint_every"] = json!(3);
    let (name, relation) = match sampling {
        1 => (json!("shuffle"), "zero_out"),
        2 => (json!("balls_in_bins"), "add_or_remove_one"),
        3 => (json!({ "truncated_poisson": { "largest_batch": 40 } }), "zero_out"),
        _ => (json!("poisson"), "add_or_remove_one"),
    };
    plan["privacy"]["sampling"] = name;
    plan["privacy"]["relation"] = json!(relation);
    plan
}

const SAMPLINGS: u64 = 5;

/// The whole lines of a ledger.
fn lines(run: &Path) -> Vec<String> {
    let text = fs::read(run.join("ledger.jsonl")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::to_owned).collect()
}

/// Checks that a refusal is one line with the program's name, and that nothing panicked.
fn assert_clear(output: &Output, context: &str) {
    let message = stderr(output);
    assert!(!message.contains("panicked"), "{context}: {message}");
    if !output.status.success() {
        let last = message.lines().last().unwrap_or_default();
        let code = output.status.code();
        assert!(matches!(code, Some(1 | 2 | 130)), "{context}: {code:?}: {message}");
        assert!(last.starts_with("trainer-native: ") && last.len() > 40, "{context}: {message}");
    }
}

/// Resumes `out` until it is done, and verifies it. Returns false if a refusal is right because a
/// release was lost.
fn finish(bench: &Bench, out: &str, context: &str) -> bool {
    let before = lines(&bench.path(out));
    let output = in_time(&mut bench.command(out, &bench.resumed(out, &[])));
    assert_clear(&output, context);
    let after = lines(&bench.path(out));
    assert_eq!(after[..before.len().min(after.len())], before[..], "{context}: a line was lost");
    if output.status.success() {
        let summary = verify_run(&bench.path(out)).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(summary.epsilon.unwrap().upper <= 8.0, "{context}");
        return true;
    }
    assert!(stderr(&output).contains("its result is lost"), "{context}: {}", stderr(&output));
    false
}

#[test]
fn random_kills_over_all_samplings_lose_no_charge() {
    let mut campaign = Campaign::of(4);
    let mut kills = 0;
    while campaign.goes_on() {
        let sampling = campaign.cases % SAMPLINGS;
        let bench = Bench::new(&plan(sampling));
        let run = bench.path("run");
        let mut charged = Vec::new();
        for _ in 0..1 + campaign.below(4) {
            kills += 1;
            let mut command = bench.command("run", &bench.resumed("run", &[]));
            let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(campaign.below(250)));
            // A closed terminal sends SIGHUP: the run saves its state and ends.
            let signal = if campaign.below(4) == 0 { "-HUP" } else { "-KILL" };
            let sent =
                Command::new("kill").args([signal, &process.id().to_string()]).stderr(Stdio::null()).status();
            assert!(sent.is_ok());
            process.wait().unwrap();
            let now = lines(&run);
            assert_eq!(now[..charged.len()], charged[..], "sampling {sampling}: a line was lost");
            charged = now;
        }
        finish(&bench, "run", &format!("sampling {sampling}"));
        assert_eq!(lines(&run)[..charged.len()], charged[..]);
    }
    campaign.done(&format!("{kills} kills"));
}

#[test]
fn every_failed_write_is_one_clear_line_and_the_run_goes_on() {
    let mut campaign = Campaign::of(5);
    // Changes of a whole run, by sampling.
    let mut changes = [0; SAMPLINGS as usize];
    // A campaign begins with a disk that becomes full, at each change of a run of each sampling
    // scheme.
    let (mut full, is_campaign) = (0, campaign.most == u64::MAX);
    while campaign.goes_on() {
        let sampling = campaign.cases % SAMPLINGS;
        // The key is known, so no process waits for a disk that never recovers.
        let bench = Bench::new(&plan(sampling));
        let count = &mut changes[sampling as usize];
        if *count == 0 {
            let log = bench.path("log");
            let whole = watched(
                &mut bench.command("whole", &["--test-key", "5"]),
                &bench.path("whole"),
                Some(&log),
                None,
            );
            assert!(whole.status.success(), "{}", stderr(&whole));
            *count = parse(&fs::read(log).unwrap()).len() as u64;
        }
        let errno = if campaign.below(2) == 0 { 28 } else { 5 };
        let mut fault = Fault { at: 1 + campaign.below(*count), errno, stays: campaign.below(2) == 0 };
        let each = 1 + (campaign.cases - 1) / SAMPLINGS;
        if is_campaign && each <= *count {
            fault = Fault { at: each, errno: 28, stays: true };
            full += 1;
        }
        let context = format!("sampling {sampling}, {fault:?}");
        let output =
            watched(&mut bench.command("run", &["--test-key", "5"]), &bench.path("run"), None, Some(fault));
        assert_clear(&output, &context);
        let before = lines(&bench.path("run"));
        if output.status.success() {
            verify_run(&bench.path("run")).unwrap_or_else(|error| panic!("{context}: {error}"));
            continue;
        }
        let resumed = in_time(&mut bench.command("run", &bench.resumed("run", &["--test-key", "5"])));
        assert!(resumed.status.success(), "{context}: {}", stderr(&resumed));
        assert_eq!(lines(&bench.path("run"))[..before.len()], before[..], "{context}");
        verify_run(&bench.path("run")).unwrap_or_else(|error| panic!("{context}: {error}"));
    }
    campaign.done(&format!(
        "failed writes, {full} of them a disk full from one change on, of {changes:?} changes"
    ));
}

/// Power is lost after each prefix of the changes of a run. All states are checked for the ledger's lines; some are resumed.
#[test]
fn after_any_loss_of_power_each_charge_that_paid_for_something_is_there() {
    let mut campaign = Campaign::of(1);
    let (mut states, mut resumed) = (0, 0);
    while campaign.goes_on() {
        let sampling = campaign.below(SAMPLINGS);
        let bench = Bench::new(&plan(sampling));
        let (run, log) = (bench.path("deep/run"), bench.path("log"));
        let whole = watched(&mut bench.command("deep/run", &[]), bench.folder.path(), Some(&log), None);
        assert!(whole.status.success(), "{}", stderr(&whole));
        let changes = parse(&fs::read(log).unwrap());
        let ledger = run.join("ledger.jsonl");
        let mut disk = Disk::default();
        let mut confirmed = 0;
        for (number, change) in changes.iter().enumerate() {
            disk.apply(change);
            // Everything in the ledger when its last `fdatasync` returned has paid for something by
            // now.
            let safe = disk.safe(&ledger).len();
            assert!(safe >= confirmed, "change {number}: a line that was safe is not any more");
            confirmed = safe;
            for loss in Loss::ALL {
                let files = disk.after(loss);
                let held = files.get(&ledger).map_or(&[][..], Vec::as_slice);
                assert!(held.starts_with(disk.safe(&ledger)), "change {number}, {loss:?}: a charge is lost");
                states += 1;
                if campaign.below(changes.len() as u64 * 6) < 4 {
                    let _ = fs::remove_dir_all(&run);
                    let _ = fs::remove_dir_all(bench.path("state"));
                    fs::create_dir_all(&run).unwrap();
                    for (path, bytes) in &files {
                        fs::create_dir_all(path.parent().unwrap()).unwrap();
                        fs::write(path, bytes).unwrap();
                    }
                    resumed += 1;
                    resume_after_loss(
                        &bench,
                        &format!("sampling {sampling}, change {number} {change:?}, {loss:?}"),
                    );
                }
            }
        }
    }
    println!("losses of power: {states} states, {resumed} resumed, no charge lost, no panic, no hang");
}

/// The files were written anew, as after a repair of the file system, so the ledger is a copy.
fn resume_after_loss(bench: &Bench, context: &str) {
    let run = bench.path("deep/run");
    let before = lines(&run);
    let begun = run.join("ledger.jsonl").exists();
    let arguments: &[&str] = if begun { &["--resume", "--copied"] } else { &[] };
    let output = in_time(&mut bench.command("deep/run", arguments));
    assert_clear(&output, context);
    assert_eq!(lines(&run)[..before.len()], before[..], "{context}");
    if output.status.success() {
        verify_run(&run).unwrap_or_else(|error| panic!("{context}: {error}"));
    } else {
        assert!(stderr(&output).contains("its result is lost"), "{context}: {}", stderr(&output));
    }
}

/// A run of a random sampling, in the folder `run`, that was killed after its first checkpoint.
fn stopped(campaign: &mut Campaign) -> (u64, Bench) {
    let sampling = campaign.below(SAMPLINGS);
    let bench = Bench::new(&plan(sampling));
    let mut process = bench.command("run", &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let checkpoint = bench.path("run").join("checkpoint.safetensors");
    while !checkpoint.exists() && process.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    (sampling, bench)
}

#[test]
fn a_flipped_bit_is_refused_or_harmless() {
    let mut campaign = Campaign::of(3);
    let (mut refused, mut harmless) = (0, 0);
    while campaign.goes_on() {
        let (sampling, bench) = stopped(&mut campaign);
        let mut files: Vec<_> =
            fs::read_dir(bench.path("run")).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.metadata().unwrap().len() > 0);
        files.sort();
        let path = &files[campaign.below(files.len() as u64) as usize];
        let mut bytes = fs::read(path).unwrap();
        let at = campaign.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << campaign.below(8);
        fs::write(path, bytes).unwrap();
        let context = format!("sampling {sampling}, {} byte {at}", path.display());
        let before = lines(&bench.path("run"));
        let output = in_time(&mut bench.command("run", &["--resume"]));
        assert_clear(&output, &context);
        if output.status.success() {
            harmless += 1;
            verify_run(&bench.path("run")).unwrap_or_else(|error| panic!("{context}: {error}"));
            // Without the last line end, the last line is a torn one, which is charged.
            let kept = before.len().saturating_sub(1);
            assert_eq!(lines(&bench.path("run"))[..kept], before[..kept], "{context}");
        } else {
            refused += 1;
        }
    }
    println!("flipped bits: {refused} refused, {harmless} harmless, no panic, no hang");
}

#[test]
fn copies_and_second_processes_are_refused() {
    let mut campaign = Campaign::of(1);
    while campaign.goes_on() {
        let (_, bench) = stopped(&mut campaign);
        if verify_run(&bench.path("run")).is_ok() {
            continue;
        }
        let copy = |from: &str, to: &str| {
            let status = Command::new("cp").arg("-a").arg(bench.path(from)).arg(bench.path(to)).status();
            assert!(status.unwrap().success());
        };
        copy("run", "copy");
        let output = in_time(&mut bench.command("copy", &["--resume"]));
        assert!(
            stderr(&output).contains("--copied") && output.status.code() == Some(2),
            "{}",
            stderr(&output)
        );
        // Two processes run at once without the lock file: one of them is refused.
        let _ = fs::remove_file(bench.path("run/.lock"));
        let start = || {
            bench.command("run", &["--resume"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let one = start();
        let _ = fs::remove_file(bench.path("run/.lock"));
        let outputs = [start(), one].map(|process| process.wait_with_output().unwrap());
        assert!(outputs.iter().any(|output| output.status.success()));
        outputs.iter().for_each(|output| assert_clear(output, "two processes"));
        verify_run(&bench.path("run")).unwrap();
        // An older state of the folder replaces the run.
        fs::remove_dir_all(bench.path("run")).unwrap();
        copy("copy", "run");
        let output = in_time(&mut bench.command("run", &["--resume"]));
        assert!(stderr(&output).contains("--copied"), "{}", stderr(&output));
    }
    campaign.done("copies and second processes");
}
