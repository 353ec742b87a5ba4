//! Runs other programs. Each command is printed, and named if it fails. Variables of a parent cargo are removed.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// Variables that `cargo xtask` sets for this process and that a nested cargo of another toolchain must not see.
const PARENT_CARGO: [&str; 6] =
    ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH"];

/// A program about to run.
pub struct Job {
    command: Command,
    shown: String,
}

impl Job {
    /// Creates a job that runs `program` in `folder`.
    pub fn new(program: impl AsRef<OsStr>, folder: &Path) -> Self {
        let mut command = Command::new(&program);
        command.current_dir(folder);
        for name in PARENT_CARGO {
            command.env_remove(name);
        }
        Self { command, shown: program.as_ref().to_string_lossy().into_owned() }
    }

    /// Creates a job for the cargo of the toolchain that the folder selects.
    pub fn cargo(folder: &Path) -> Self {
        Self::new("cargo", folder)
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            self.shown.push(' ');
            self.shown.push_str(&arg.as_ref().to_string_lossy());
            self.command.arg(arg);
        }
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs the program with inherited standard streams.
    pub fn run(mut self) -> Result<()> {
        note(&format!("$ {}", self.shown));
        let status = self.command.status().with_context(|| format!("cannot start `{}`", self.shown))?;
        if status.success() { Ok(()) } else { bail!("`{}` failed: {status}", self.shown) }
    }

    /// Starts the program with both streams in a file, to run beside what follows.
    pub fn start(mut self, log: &Path) -> Result<Beside> {
        note(&format!("$ {} (beside what follows; its output: {})", self.shown, log.display()));
        let out = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        let error = out.try_clone().with_context(|| format!("sharing {}", log.display()))?;
        let started = self.command.stdin(Stdio::null()).stdout(out).stderr(error).spawn();
        let child = started.with_context(|| format!("cannot start `{}`", self.shown))?;
        Ok(Beside { child, log: log.to_owned() })
    }

    /// Runs the program and returns its standard output.
    pub fn output(mut self) -> Result<String> {
        let output = self
            .command
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start `{}`", self.shown))?;
        if !output.status.success() {
            bail!("`{}` failed: {}", self.shown, output.status);
        }
        String::from_utf8(output.stdout)
            .with_context(|| format!("the output of `{}` is not UTF-8", self.shown))
    }

    /// Returns the standard output of the program if it succeeds, else `None` without a message.
    pub fn probe(mut self) -> Option<String> {
        let output = self.command.stderr(Stdio::null()).output().ok()?;
        if output.status.success() { String::from_utf8(output.stdout).ok() } else { None }
    }
}

/// A program that runs beside this one.
pub struct Beside {
    child: Child,
    log: PathBuf,
}

impl Beside {
    /// Waits for the end, and shows the output. Returns whether the program succeeded.
    pub fn wait(mut self) -> Result<bool> {
        let status = self.child.wait().context("waiting for a program")?;
        let output = std::fs::read(&self.log).with_context(|| format!("reading {}", self.log.display()))?;
        note(&String::from_utf8_lossy(&output));
        Ok(status.success())
    }
}

/// Writes a line of progress to stderr.
pub fn note(line: &str) {
    eprintln!("{line}");
}

/// Returns the first file called `program` on PATH.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
