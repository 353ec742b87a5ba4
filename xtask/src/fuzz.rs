//! Fuzzes every parser of a user file with libFuzzer, on any stable compiler.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{Job, note};
use crate::toolchain::tools;

/// The targets of `tests/fuzz`, with the folders of their seed inputs.
pub const TARGETS: [(&str, &[&str]); 12] = [
    ("events", &["tests/fuzz/seeds/events"]),
    ("plan", &["plan/presets"]),
    ("tokenizer_json", &["tokenizer/tests/fixtures", "tests/fuzz/seeds/tokenizer_json"]),
    ("sentencepiece", &["tokenizer/tests/fixtures"]),
    ("vocabulary", &["tokenizer/tests/fixtures", "tests/fuzz/seeds/vocabulary"]),
    ("corpus", &["tests/fuzz/seeds/corpus"]),
    ("tables", &["tests/fuzz/seeds/tables"]),
    ("tokens", &["tests/fuzz/seeds/tokens"]),
    ("parquet", &["tests/fuzz/seeds/parquet"]),
    ("statement", &["tests/fuzz/seeds/statement"]),
    ("stages", &["tests/fuzz/seeds/stages"]),
    ("postprocess", &["tests/fuzz/seeds/postprocess"]),
];

/// Flags that make the compiler count coverage for libFuzzer. The address sanitizer would need a nightly compiler; the
/// fuzzed crates have no unsafe code.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// A file system in memory.
const MEMORY: &str = "/dev/shm";

/// Runs one target or all of them. Returns false if an input crashes, hangs or takes too much memory; libFuzzer prints
/// its path.
pub fn run(root: &Path, rest: &[&str]) -> Result<bool> {
    let (target, seconds) = match rest {
        [] => (None, "60"),
        [one] if one.parse::<u32>().is_ok() => (None, *one),
        [target] => (Some(*target), "60"),
        [target, seconds] if seconds.parse::<u32>().is_ok() => (Some(*target), *seconds),
        other => bail!("`{}` is not allowed; give a target, a number of seconds, or both", other.join(" ")),
    };
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = target.filter(|target| !names.contains(target)) {
        bail!("`{unknown}` is not a target; allowed: {}", names.join(", "));
    }
    let built = build(root)?;
    let mut passed = true;
    for (name, seeds) in TARGETS.iter().filter(|(name, _)| target.is_none_or(|wanted| wanted == *name)) {
        if let Err(error) = fuzz_target(root, &built, name, seeds, seconds) {
            note(&format!("{name}: {error:#}"));
            passed = false;
        }
    }
    Ok(passed)
}

fn build(root: &Path) -> Result<PathBuf> {
    let folder = root.join("tests/fuzz");
    let version = Job::new("rustc", &folder).args(["-vV"]).output()?;
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).context("`rustc -vV` names no host")?;
    let target_dir = tools::target_dir(root).join("fuzz");
    // With an explicit target, build scripts and macros are compiled without coverage.
    Job::cargo(&folder)
        .args(["build", "--release", "--target", host])
        .env("CARGO_TARGET_DIR", &target_dir)
        .env("RUSTFLAGS", FLAGS)
        .run()?;
    Ok(target_dir.join(host).join("release"))
}

fn fuzz_target(root: &Path, built: &Path, name: &str, seeds: &[&str], seconds: &str) -> Result<()> {
    let found = tools::target_dir(root).join("fuzz-found").join(name);
    let (inputs, failures) = (found.join("inputs"), found.join("failures"));
    for folder in [&inputs, &failures] {
        std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    let dictionary = root.join("tests/fuzz").join(format!("{name}.dict"));
    let mut job = Job::new(built.join(name), root)
        .args([format!("-max_total_time={seconds}"), format!("-artifact_prefix={}/", failures.display())])
        .args([
            "-timeout=60",
            "-rss_limit_mb=2048",
            "-max_len=32768",
            "-print_final_stats=1",
            "-verbosity=0",
        ]);
    // Some targets write thousands of files per second.
    if Path::new(MEMORY).is_dir() {
        job = job.env("TMPDIR", MEMORY);
    }
    if dictionary.is_file() {
        job = job.args([format!("-dict={}", dictionary.display())]);
    }
    job.args([inputs]).args(seeds.iter().map(|seed| root.join(seed))).run()
}
