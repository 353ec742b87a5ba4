//! A workplace for end-to-end tests: plans, texts, and the trainer as a user runs it.
//!
//! The environment variable `TRAINER` names the trainer's program. Without it, the tests build the program once, with the
//! release profile, in their own target folder.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use plan::{CertifiedPlan, Plan, PlanFile};
use serde_json::{Value, json};
use tempfile::TempDir;

static TRAINER: LazyLock<PathBuf> = LazyLock::new(|| match std::env::var_os("TRAINER") {
    Some(path) => PathBuf::from(path),
    None => built("trainer-native"),
});

fn built(package: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test");
    // target/release/deps/test
    let target = test.ancestors().nth(3).expect("a test in a target folder");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", package, "--bins", "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(built.is_ok_and(|status| status.success()), "{package} cannot be built");
    target.join("release").join(program_name(package))
}

fn program_name(package: &str) -> String {
    format!("{package}{}", std::env::consts::EXE_SUFFIX)
}

/// The program of a package: beside the trainer, where the tests of the workspace put it, or else built now.
#[must_use]
pub fn program_path(package: &str) -> PathBuf {
    let beside = trainer_path().with_file_name(program_name(package));
    if beside.is_file() { beside } else { built(package) }
}

/// The trainer's program, for tests that do not use [`Workplace::trainer`].
#[must_use]
pub fn trainer_path() -> &'static Path {
    &TRAINER
}

/// A plan that certifies and trains within a second: fixed noise, byte tokens, a few thousand parameters, three steps.
#[must_use]
pub fn tiny_plan() -> Value {
    json!({
        "version": 1,
        "name": "tiny",
        "data": { "source": { "embedded": { "records": 200, "seed": 7 } }, "units": 200 },
        "privacy": {
            "unit": "record", "relation": "add_or_remove_one", "delta": 1e-6, "epsilon": 8.0,
            "noise_multipliers": { "training": 1.0 }, "sampling": "poisson", "spare_steps": 2
        },
        "tokenizer": "bytes",
        "model": { "family": "gpt2", "d_model": 16, "layers": 1, "heads": 2, "d_ff": 32, "context": 16 },
        "training": {
            "objective": "causal_lm", "expected_batch_size": 20, "steps": 3, "l2_clip_norm": 1.0,
            "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-3 }
        },
        "performance": { "device": "cpu", "physical_batch": 8, "precision": "f32", "checkpoint_every": 1 }
    })
}

/// A plan with other values at some JSON pointers. Null removes the field.
#[must_use]
pub fn altered(mut plan: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').expect("a JSON pointer");
        let parent = plan.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object of the plan");
        if value.is_null() {
            parent.remove(field);
        } else {
            parent.insert(field.to_owned(), value.clone());
        }
    }
    plan
}

/// The certified plan, obtained without the trainer.
///
/// # Panics
/// If the plan is refused.
#[must_use]
pub fn certified(plan: &Value) -> CertifiedPlan {
    let plan = PlanFile::parse(&plan.to_string()).and_then(Plan::try_from);
    plan.and_then(Plan::certify).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// How a program ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Exit code; −1 after a signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A temporary folder.
pub struct Workplace {
    folder: TempDir,
}

impl Default for Workplace {
    fn default() -> Self {
        Self::new()
    }
}

impl Workplace {
    /// An empty folder.
    ///
    /// # Panics
    /// If it cannot be created.
    #[must_use]
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// The path of a file in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// The sorted names of the files in a subfolder, including hidden ones. Empty if the subfolder does not exist.
    #[must_use]
    pub fn list(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs the trainer in this folder.
    ///
    /// # Panics
    /// If it does not start.
    pub fn trainer<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Outcome {
        let mut command = Command::new(trainer_path());
        let output = command.args(arguments).current_dir(self.folder.path()).output();
        output.expect("the trainer starts").into()
    }

    /// Writes the plan as `plan.json` and trains into `run`, with additional arguments.
    pub fn train(&self, plan: &Value, arguments: &[&str]) -> Outcome {
        self.write("plan.json", plan.to_string());
        self.trainer(["--plan", "plan.json", "--out", "run"].iter().chain(arguments))
    }
}
