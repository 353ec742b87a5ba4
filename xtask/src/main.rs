//! The project's tasks: `cargo xtask help` lists them.

mod bench;
mod campaign;
mod checks;
mod dist;
mod fuzz;
mod js;
mod process;
mod python;
mod setup;
mod stages;
mod tidy;
mod toolchain;
mod web;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const HELP: &str = "\
Usage: cargo xtask <task>

Checks
  setup    Find or install the tools that the checks need, or print the commands that install them
  test [native|browser]
           Run everything CI runs: format, tidy, clippy, native tests, WASM tests, the page end to end; or one part of it
  check    Run `test`, then cargo-deny, cargo-semver-checks, the packages of the crates and the documentation build
  tidy     Check dependencies between crates and modules, sizes, names, layout, paths, and the index of PRIVACY.md
  fuzz [TARGET] [SECONDS]
           Fuzz the parsers of user files with libFuzzer (default: every target, 60 seconds each)
  campaign <faults|inputs|audit|ranks|packages|fuzz> [--minutes M]
           Run the trainer under kills, failing disks, losses of power and flipped bits; give all programs bad inputs;
           audit right and broken private steps; train every family on several ranks and kill these fifty times, however long
           it takes; build each published crate from its package, as `cargo publish --dry-run`; or fuzz every target (default: 10 minutes)

Page and packages
  web build [--release]   Build the page into dist/
  web serve [--release]   Serve the page on 127.0.0.1:8080 and rebuild it when a file changes
  web test [--release]    Run the WASM tests and the end-to-end test of the page
  web vectors             Rewrite web/tests/vectors.json from the native build
  js                      Build and pack the JavaScript packages, and test them in Node and Chromium
  dist                    Build the release: an archive of programs, manual pages, completions, licences and a bill of materials; the
                          npm packages; and a check that the programs compile for 64-bit ARM
  python                  Build the Python wheel, install it into a new environment, and test it there

Measurements
  bench <accountant|tokenizer|trainer|lora|curves> [--venv PATH]
           Run the benchmarks of a crate; compare adapters with peft and Opacus; draw how a step grows with its sizes
  bench trainer --device <wgpu|cuda> [--venv PATH]
           Run the trainer's benchmark on a graphics processor
  bench tokenizer --venv PATH --files FOLDER
           Measure the tokenizers in a folder beside those of the Python there
  conformance --venv PATH [CORPUS ...]
           Compare token ids, offsets and decoded text with other tokenizers
  papers [--data DIR] [--only PAPER] [--seeds N] [--smoke]
           Print the published and the recomputed figures of the papers; with a folder of texts, repeat experiments of the
           papers at the scale of two cores, going on where an earlier call stopped (--seeds: repeat each run and print
           means; --smoke: two steps of each, on invented text if no folder is given)
  utility [--data DIR] [--only TEXT] [--seeds N] [--smoke]
           Train the plans of trainer-native/UTILITY.md, with privacy and without, and print their scores; options as for papers
  advice [--data DIR] [--only TEXT] [--seeds N] [--smoke]
           Train twelve plans of equal cost beside the advised one, for three budgets and two texts, and print their scores
           beside the predicted losses; options as for papers
  (--venv: a Python environment with the libraries to compare with)

Environment: CARGO_TARGET_DIR, CHROMIUM, CHROMEDRIVER, VK_ICD_FILENAMES (Vulkan driver manifest),
WEB_RUSTC (a rustc with rust-src, for WASM).";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            process::note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs one task. Returns false if a check failed; its output says why.
fn run(args: &[&str]) -> Result<bool> {
    let root = root()?;
    match args {
        [] | ["help" | "--help" | "-h"] => {
            writeln!(std::io::stdout(), "{HELP}").context("writing to stdout")?;
            Ok(true)
        }
        ["setup"] => setup::run(&root),
        ["tidy"] => tidy::run(&root),
        ["test"] => checks::test(&root, None),
        ["test", part] => checks::test(&root, Some(part)),
        ["check"] => checks::check(&root),
        ["web", task, rest @ ..] => web::run(&root, task, rest),
        ["fuzz", rest @ ..] => fuzz::run(&root, rest),
        ["campaign", rest @ ..] => campaign::run(&root, rest),
        ["js"] => js::run(&root),
        ["python"] => python::wheel(&root),
        ["dist"] => dist::run(&root),
        ["bench", subject, rest @ ..] => bench::run(&root, subject, rest),
        ["conformance", "--venv", venv, corpora @ ..] => bench::conformance(&root, Path::new(venv), corpora),
        ["papers", rest @ ..] => bench::papers(&root, rest),
        [table @ ("utility" | "advice"), rest @ ..] => bench::experiments(&root, table, rest),
        other => bail!("`{}` is not a task; run `cargo xtask help`", other.join(" ")),
    }
}

fn root() -> Result<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.parent().context("xtask is not in a workspace")?;
    if root.join("Cargo.toml").is_file() {
        return Ok(root.to_path_buf());
    }
    // The workspace may have been moved after xtask was built.
    std::env::current_dir().context("cannot find the workspace")
}
