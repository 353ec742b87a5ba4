//! Fuzzing of every reader of a user's file, by libFuzzer, on any stable compiler.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{Job, note};
use crate::toolchain::tools;

/// A target of `tests/fuzz`, and where inputs to begin with lie.
const TARGETS: [(&str, &[&str]); 9] = [
    ("events", &["tests/fuzz/seeds/events"]),
    ("plan", &["plan/presets"]),
    ("tokenizer_json", &["dp-tokenizer/tests/fixtures", "tests/fuzz/seeds/tokenizer_json"]),
    ("sentencepiece", &["dp-tokenizer/tests/fixtures"]),
    ("vocabulary", &["dp-tokenizer/tests/fixtures", "tests/fuzz/seeds/vocabulary"]),
    ("corpus", &["tests/fuzz/seeds/corpus"]),
    ("tokens", &["tests/fuzz/seeds/tokens"]),
    ("parquet", &["tests/fuzz/seeds/parquet"]),
    ("statement", &["tests/fuzz/seeds/statement"]),
];

/// Coverage for libFuzzer. No address sanitizer, which needs a nightly compiler: the crates have no unsafe code of
/// their own.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// A folder in memory.
const MEMORY: &str = "/dev/shm";

/// Runs one target, or each, for so many seconds. False when an input was found that crashes, hangs or takes too much
/// memory; libFuzzer says where it lies.
pub fn run(root: &Path, rest: &[&str]) -> Result<bool> {
    let (target, seconds) = match rest {
        [] => (None, "60"),
        [one] if one.parse::<u32>().is_ok() => (None, *one),
        [target] => (Some(*target), "60"),
        [target, seconds] if seconds.parse::<u32>().is_ok() => (Some(*target), *seconds),
        other => bail!("`{}`: allowed are a target and a whole number of seconds", other.join(" ")),
    };
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = target.filter(|target| !names.contains(target)) {
        bail!("`{unknown}` is no target; allowed: {}", names.join(", "));
    }
    let built = build(root)?;
    let mut sound = true;
    for (name, seeds) in TARGETS.iter().filter(|(name, _)| target.is_none_or(|wanted| wanted == *name)) {
        if let Err(error) = attack(root, &built, name, seeds, seconds) {
            note(&format!("{name}: {error:#}"));
            sound = false;
        }
    }
    Ok(sound)
}

fn build(root: &Path) -> Result<PathBuf> {
    let folder = root.join("tests/fuzz");
    let version = Job::new("rustc", &folder).args(["-vV"]).output()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let target_dir = tools::target_dir(root).join("fuzz");
    // With a target named, build scripts and macros run without coverage.
    Job::cargo(&folder)
        .args(["build", "--release", "--target", host])
        .env("CARGO_TARGET_DIR", &target_dir)
        .env("RUSTFLAGS", FLAGS)
        .run()?;
    Ok(target_dir.join(host).join("release"))
}

fn attack(root: &Path, built: &Path, name: &str, seeds: &[&str], seconds: &str) -> Result<()> {
    let found = tools::target_dir(root).join("fuzz-found").join(name);
    let (inputs, faults) = (found.join("inputs"), found.join("faults"));
    for folder in [&inputs, &faults] {
        std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    let dictionary = root.join("tests/fuzz").join(format!("{name}.dict"));
    let mut job = Job::new(built.join(name), root)
        .args([format!("-max_total_time={seconds}"), format!("-artifact_prefix={}/", faults.display())])
        .args([
            "-timeout=60",
            "-rss_limit_mb=2048",
            "-max_len=32768",
            "-print_final_stats=1",
            "-verbosity=0",
        ]);
    // Targets that read files write thousands a second: into memory, where there is such a folder.
    if Path::new(MEMORY).is_dir() {
        job = job.env("TMPDIR", MEMORY);
    }
    if dictionary.is_file() {
        job = job.args([format!("-dict={}", dictionary.display())]);
    }
    job.args([inputs]).args(seeds.iter().map(|seed| root.join(seed))).run()
}
