//! Runs the benchmarks of the crates, and recomputes the tables of the papers.

use std::path::Path;

use anyhow::{Result, bail};

use crate::js;
use crate::process::{Job, note, on_path};
use crate::toolchain::tools;

/// Runs the benchmarks of a crate.
pub fn run(root: &Path, subject: &str, rest: &[&str]) -> Result<bool> {
    let (venv, files) = match rest {
        [] => (None, None),
        ["--venv", path] => (Some(Path::new(path)), None),
        ["--venv", path, "--files", files] if subject == "tokenizer" => (Some(Path::new(path)), Some(*files)),
        other => bail!(
            "`{}` is not an option of bench; allowed: --venv PATH, and after it for tokenizer --files FOLDER",
            other.join(" ")
        ),
    };
    let package = match subject {
        "accountant" => "accountant",
        "tokenizer" => "dp-tokenizer",
        "trainer" => "training",
        "lora" => return lora(root, venv),
        other => bail!("`{other}` has no benchmarks; allowed: accountant, tokenizer, trainer, lora"),
    };
    let mut jobs = Vec::new();
    // The files of other models have a benchmark of their own.
    let is_wanted = |name: &String| files.is_none() || name == "current";
    for name in benches(&root.join(package).join("benches"))?.into_iter().filter(is_wanted) {
        // Building a single package would select other features of Burn than the workspace does,
        // and compile it again.
        jobs.push(Job::cargo(root).args(["bench", "--workspace", "--bench", name.as_str()]));
    }
    let native = tools::target_dir(root).join("accountant-native.jsonl");
    for job in jobs {
        let job = job.env("NATIVE_TIMES", &native);
        let job = files.into_iter().fold(job, |job, files| job.env("CURRENT_TOKENIZERS", files));
        match venv {
            // The benchmarks that compare with other libraries read this variable.
            Some(venv) => job.env("PEERS_PYTHON", venv.join("bin/python")).run()?,
            None => job.run()?,
        }
    }
    if package == "accountant" {
        if on_path("node").is_none() {
            note(
                "Node is missing, so the WASM times are not measured; `cargo xtask setup` installs it or says how",
            );
            return Ok(true);
        }
        js::measure(root, &native)?;
    }
    Ok(true)
}

/// Compares steps that train adapters with those of peft and Opacus.
fn lora(root: &Path, venv: Option<&Path>) -> Result<bool> {
    let Some(venv) = venv else {
        bail!(
            "bench lora compares with peft and Opacus; give --venv PATH, with torch, transformers, peft and opacus"
        )
    };
    Job::cargo(root).args(["build", "--release", "--package", "trainer-native"]).run()?;
    let trainer = tools::target_dir(root).join("release/trainer-native");
    let script = root.join("trainer-native/benches/lora.py");
    Job::new(venv.join("bin/python"), root).args([script, trainer]).run().map(|()| true)
}

/// Returns the names of the benchmarks in a folder: its files, and its folders that contain a `main.rs`.
fn benches(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").is_file() {
            names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
    }
    names.sort();
    Ok(names)
}

/// Compares the tokenizer with other tokenizers on whole corpora.
pub fn conformance(root: &Path, venv: &Path, corpora: &[&str]) -> Result<bool> {
    let example = ["run", "--release", "--package", "dp-tokenizer", "--example", "conformance", "--"];
    let job = Job::cargo(root).args(example).args(corpora);
    job.env("PEERS_PYTHON", venv.join("bin/python")).run().map(|()| true)
}

/// Recomputes the tables of the papers and prints them. With options of the example `experiments`, also carries out the papers'
/// experiments.
pub fn papers(root: &Path, rest: &[&str]) -> Result<bool> {
    let test = ["test", "--release", "--package", "tests", "--test", "papers", "--", "--nocapture"];
    Job::cargo(root).args(test).run()?;
    if rest.is_empty() {
        return Ok(true);
    }
    experiments(root, "papers", rest)
}

/// Carries out the experiments of a table.
pub fn experiments(root: &Path, table: &str, rest: &[&str]) -> Result<bool> {
    let example =
        ["run", "--release", "--package", "trainer-native", "--example", "experiments", "--", table];
    Job::cargo(root).args(example).args(rest).run().map(|()| true)
}
