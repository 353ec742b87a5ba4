//! `cargo xtask test` and `check`: the cheapest checks first.

use std::path::Path;

use anyhow::{Context, Result};

use crate::process::Job;
use crate::stages::Stages;
use crate::toolchain::tools::{self, Tool};
use crate::{js, setup, tidy, web};

/// Crates that the page is made of and that must compile for the browser; the page itself has its own stages.
const BROWSER_CRATES: [&str; 3] = ["accountant", "plan", "dp-tokenizer"];

/// Builds the programs too, with the features that everything native is compiled with once; a build of single packages
/// would compile their dependencies again with others.
pub const NATIVE_TESTS: [&str; 5] = ["test", "--release", "--workspace", "--exclude", "web"];

/// Everything CI runs.
pub fn test(root: &Path) -> Result<bool> {
    let mut stages = Stages::default();
    all_tests(root, &mut stages);
    Ok(stages.close())
}

/// `test`, then what only a change to dependencies or documentation can break.
pub fn check(root: &Path) -> Result<bool> {
    let mut stages = Stages::default();
    all_tests(root, &mut stages);
    stages.run("dependencies (cargo-deny)", || deny(root));
    stages.run("documentation", || {
        let doc = ["doc", "--no-deps", "--workspace", "--release"];
        passed(Job::cargo(root).args(doc).env("RUSTDOCFLAGS", "-Dwarnings"))
    });
    Ok(stages.close())
}

fn all_tests(root: &Path, stages: &mut Stages) {
    stages.run("format", || passed(Job::cargo(root).args(["fmt", "--all", "--check"])));
    stages.run("tidy", || tidy::run(root));
    stages.run("setup", || setup::run(root));
    // Release everywhere: the numerics are too slow without it, and the dependencies are compiled once.
    stages.run("clippy", || {
        let lint = ["clippy", "--workspace", "--all-targets", "--release", "--", "-D", "warnings"];
        passed(Job::cargo(root).args(lint))
    });
    // The page itself is tested in a browser below; here, what of it runs anywhere.
    // Property tests draw the same cases each time here, so that a change is judged by what it changes; plain
    // `cargo test` draws others.
    stages.run("native tests", || {
        let trainer = tools::target_dir(root).join("release/trainer-native");
        let job = Job::cargo(root).args(NATIVE_TESTS).args(["--no-fail-fast"]);
        passed(job.env("PROPTEST_RNG_SEED", "20261121").env("TRAINER", trainer))
    });
    stages.run("native figures of the page", || {
        passed(Job::cargo(root).args(["test", "--release", "--package", "web", "--no-default-features"]))
    });
    stages.run("WASM build", || web::compile(root, &BROWSER_CRATES));
    stages.run("WASM tests in Chromium", || web::unit_tests(root));
    stages.run("accountant in Node and Chromium", || js::run(root));
    stages.run("page build", || web::build(root, true));
    stages.run("page end to end in Chromium", || web::end_to_end(root));
}

fn passed(job: Job) -> Result<bool> {
    job.run().map(|()| true)
}

fn deny(root: &Path) -> Result<bool> {
    let tool = Tool { name: "cargo-deny", program: "cargo-deny", version: tools::DENY.into(), locked: true };
    tool.find_or_install(root).context("cargo-deny")?;
    passed(Job::cargo(root).args(["deny", "--all-features", "check", "bans", "licenses", "sources"]))
}
