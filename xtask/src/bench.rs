//! Measurements beside the checks: the crates' benches, and the papers' tables.

use std::path::Path;

use anyhow::{Result, bail};

use crate::process::Job;

/// Runs the benches of a crate.
pub fn run(root: &Path, subject: &str, rest: &[&str]) -> Result<bool> {
    let package = match subject {
        "accountant" => "accountant",
        "tokenizer" => "dp-tokenizer",
        "trainer" => "trainer-native",
        other => bail!("`bench {other}` is not known; allowed: accountant, tokenizer, trainer"),
    };
    let venv = match rest {
        [] => None,
        ["--venv", path] => Some(*path),
        other => bail!("`{}` is no option of bench; allowed: --venv PATH", other.join(" ")),
    };
    let mut job = Job::cargo(root).args(["bench", "--package", package]);
    if let Some(venv) = venv {
        job = job.env("PEERS_PYTHON", Path::new(venv).join("bin/python"));
    }
    job.run().map(|()| true)
}

/// Runs the papers' tables and shows them.
pub fn papers(root: &Path) -> Result<bool> {
    let test = ["test", "--release", "--package", "tests", "--test", "papers", "--", "--nocapture"];
    Job::cargo(root).args(test).run().map(|()| true)
}
