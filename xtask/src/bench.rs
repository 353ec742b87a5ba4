//! Runs the benchmarks of the crates, and recomputes the tables of the papers.

use std::path::Path;

use anyhow::{Result, bail};

use crate::js;
use crate::process::{Job, note, on_path};
use crate::toolchain::tools;

/// The options of `bench`.
#[derive(Default)]
struct Options<'a> {
    /// A Python environment with the libraries to compare with.
    venv: Option<&'a Path>,
    /// Tokenizers of other models.
    files: Option<&'a str>,
    /// The device of the trainer's steps.
    device: Option<&'a str>,
}

impl<'a> Options<'a> {
    fn of(subject: &str, rest: &[&'a str]) -> Result<Self> {
        let mut options = Self::default();
        for pair in rest.chunks(2) {
            match (subject, pair) {
                (_, ["--venv", path]) => options.venv = Some(Path::new(*path)),
                ("tokenizer", ["--files", folder]) => options.files = Some(folder),
                ("trainer", ["--device", device @ ("cpu" | "wgpu" | "cuda")]) => {
                    options.device = Some(device)
                }
                _ => bail!(
                    "`{}` is not an option of bench {subject}; allowed: --venv PATH; of tokenizer also --files FOLDER, of trainer also \
                     --device cpu|wgpu|cuda",
                    pair.join(" ")
                ),
            }
        }
        if options.files.is_some() && options.venv.is_none() {
            bail!("--files compares with other libraries; give --venv PATH too");
        }
        Ok(options)
    }

    /// The job of a benchmark, with what it reads from the environment.
    fn job(&self, root: &Path, name: &str) -> Job {
        // Building a single package would select other features of Burn than the workspace does,
        // and compile it again.
        let mut job = Job::cargo(root).args(["bench", "--workspace", "--bench", name]);
        if let Some(device @ ("wgpu" | "cuda")) = self.device {
            job = job.args(["--features".to_owned(), format!("trainer-native/{device}")]);
        }
        if let Some(device) = self.device {
            job = job.args(["--", "--device", device]);
        }
        if let Some(files) = self.files {
            job = job.env("CURRENT_TOKENIZERS", files);
        }
        match self.venv {
            Some(venv) => job.env("PEERS_PYTHON", venv.join("bin/python")),
            None => job,
        }
    }
}

/// Runs the benchmarks of a crate.
pub fn run(root: &Path, subject: &str, rest: &[&str]) -> Result<bool> {
    let options = Options::of(subject, rest)?;
    let package = match subject {
        "accountant" => "accountant",
        "tokenizer" => "dp-tokenizer",
        "trainer" => "training",
        "lora" => return lora(root, options.venv),
        "curves" => return curves(root, &options),
        other => bail!("`{other}` has no benchmarks; allowed: accountant, tokenizer, trainer, lora, curves"),
    };
    // The files of other models have a benchmark of their own.
    let is_wanted = |name: &String| options.files.is_none() || name == "current";
    let native = tools::target_dir(root).join("accountant-native.jsonl");
    for name in benches(&root.join(package).join("benches"))?.into_iter().filter(is_wanted) {
        options.job(root, &name).env("NATIVE_TIMES", &native).run()?;
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

/// Measures how a step of the trainer grows with its sizes, and draws the curves.
fn curves(root: &Path, options: &Options<'_>) -> Result<bool> {
    let points = options.job(root, "step").args(["--", "--curves"]).output()?;
    let file = tools::target_dir(root).join("curves.jsonl");
    std::fs::write(&file, points)?;
    let draw = Job::cargo(root).args([
        "run",
        "--release",
        "--package",
        "trainer-native",
        "--example",
        "curves",
        "--",
    ]);
    draw.args([file, tools::target_dir(root).join("curves")]).run().map(|()| true)
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
