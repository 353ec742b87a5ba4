//! Every chore of the project: `cargo xtask help` lists them.

mod bench;
mod fuzz;
mod js;
mod offline;
mod process;
mod seal;
mod setup;
mod slim;
mod stages;
mod tidy;
mod toolchain;
mod verify;
mod web;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const HELP: &str = "\
cargo xtask <chore>

  setup                  find or install what the checks need; say exactly what to run where that is not possible
  test                   everything CI runs: format, tidy, clippy, native tests, WASM tests in Chromium, the page end to end
  check                  test, then cargo-deny and the documentation
  tidy                   dependency law, file and function sizes, names, leftovers, numerics of certified code
  web build [--release]  the page into dist/
  web serve [--release]  the page on loopback, rebuilt when a file changes
  web test [--release]   WASM unit tests and the end-to-end script alone
  web vectors            write web/tests/vectors.json anew from the native build
  js                     the accountant as a package for Node and web pages, used in both
  fuzz [TARGET] [SECONDS]   readers of users' files against libFuzzer, a minute each unless said otherwise
  bench <crate> [--venv PATH]   accountant, tokenizer or trainer; PATH: a Python environment with the peers to compare with
  conformance --venv PATH [NAME ...]   ids, offsets and decoded texts beside the tokenizers that PATH, a Python environment, has
  papers                 the tables of the papers, published beside recomputed

Variables: CARGO_TARGET_DIR, CHROMIUM, CHROMEDRIVER, WEB_RUSTC (a rustc with rust-src, for WASM).";

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

/// False when a check found something, which it has printed.
fn run(args: &[&str]) -> Result<bool> {
    let root = root()?;
    match args {
        [] | ["help" | "--help" | "-h"] => {
            writeln!(std::io::stdout(), "{HELP}").context("writing to stdout")?;
            Ok(true)
        }
        ["setup"] => setup::run(&root),
        ["tidy"] => tidy::run(&root),
        ["test"] => verify::test(&root),
        ["check"] => verify::check(&root),
        ["web", chore, rest @ ..] => web::run(&root, chore, rest),
        ["fuzz", rest @ ..] => fuzz::run(&root, rest),
        ["js"] => js::run(&root),
        ["bench", subject, rest @ ..] => bench::run(&root, subject, rest),
        ["conformance", "--venv", venv, corpora @ ..] => bench::conformance(&root, Path::new(venv), corpora),
        ["papers"] => bench::papers(&root),
        other => bail!("`{}` is no chore; see `cargo xtask help`", other.join(" ")),
    }
}

fn root() -> Result<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.parent().context("xtask lies in the workspace")?;
    if root.join("Cargo.toml").is_file() {
        return Ok(root.to_path_buf());
    }
    // The tree was moved after xtask was built.
    std::env::current_dir().context("finding the workspace")
}
