//! Files made to exhaust a machine or to stop the trainer without a clear message. Each is refused
//! in one line that names it, within memory and time proportional to its size.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

#[path = "../common/mod.rs"]
mod common;

mod checkpoints;
#[path = "../../../tests/src/limited.rs"]
mod limited;
mod plans;
mod runs;
mod texts;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Memory that a process may map, in KiB, and the time that it may take.
const MEMORY: u64 = 3_000_000;
const TIME: Duration = Duration::from_secs(60);
/// Exit codes of a refusal, and of a run that fails its verification.
const REFUSED: &[i32] = &[2];
const FALSE: &[i32] = &[1, 2];

/// Objects that an archive can hold in place of a file.
#[derive(Clone, Copy)]
pub(crate) enum Other {
    Pipe,
    LinkTo(&'static str),
    /// Number of zero bytes, which take no space on the disk.
    Hole(u64),
    /// A safetensors file with a tensor of this many bytes, which take no space on the disk.
    Tensor(u64),
}

impl Other {
    fn make(self, path: &Path) {
        let _ = fs::remove_file(path);
        match self {
            Self::Pipe => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
            Self::LinkTo(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            Self::Tensor(bytes) => {
                let header =
                    format!(r#"{{"a":{{"dtype":"U8","shape":[{bytes}],"data_offsets":[0,{bytes}]}}}}"#);
                let start = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
                fs::write(path, &start).unwrap();
                fs::File::options()
                    .append(true)
                    .open(path)
                    .unwrap()
                    .set_len(start.len() as u64 + bytes)
                    .unwrap();
            }
            Self::Hole(bytes) => fs::File::create(path).unwrap().set_len(bytes).unwrap(),
        }
    }
}

/// Files and the command that reads them. In the command, {} stands for their folder.
pub(crate) struct Hostile {
    name: String,
    files: Vec<(String, Vec<u8>)>,
    /// Objects in place of files: pipes, or links.
    others: Vec<(String, Other)>,
    command: String,
    /// A part of the message.
    names: &'static str,
    codes: &'static [i32],
}

impl Hostile {
    pub(crate) fn new(name: impl Into<String>, command: &str, names: &'static str) -> Self {
        Self {
            name: name.into(),
            files: Vec::new(),
            others: Vec::new(),
            command: command.to_owned(),
            names,
            codes: REFUSED,
        }
    }

    pub(crate) fn file(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.to_owned(), bytes.into()));
        self
    }

    pub(crate) fn other(mut self, path: &str, other: Other) -> Self {
        self.others.push((path.to_owned(), other));
        self
    }

    /// The command may read the file, or describe its fault.
    pub(crate) fn or_read(self) -> Self {
        Self { codes: &[0, 2], ..self }
    }

    pub(crate) fn or_false(self) -> Self {
        Self { codes: FALSE, ..self }
    }

    /// Returns the fault that was found, if any. Beside its files, the folder has the contents of
    /// `beside`.
    fn fault(&self, beside: Option<&Path>) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        if let Some(beside) = beside {
            copy(beside, folder);
        }
        for (path, bytes) in &self.files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        for (path, other) in &self.others {
            other.make(&folder.join(path));
        }
        let mut command = limited::command(env!("CARGO_BIN_EXE_trainer-native"), MEMORY);
        command
            .current_dir(folder)
            .args(self.command.split(' ').map(|word| word.replace("{}", folder.to_str().unwrap())));
        let stream = |name: &str| fs::File::create(folder.join(name)).unwrap();
        command.env("XDG_STATE_HOME", folder.join("state")).stdin(Stdio::null());
        let mut child = command.stdout(stream("stdout")).stderr(stream("stderr")).spawn().unwrap();
        let started = Instant::now();
        let Some(status) = limited::end_within(&mut child, TIME) else {
            return Some(format!("took more than {TIME:?}"));
        };
        let said = String::from_utf8_lossy(&fs::read(folder.join("stderr")).unwrap()).into_owned();
        let is_clear = status.success()
            || said.lines().count() == 1 && said.starts_with("trainer-native: ") && said.contains(self.names);
        let is_short = said.len() < 2000 && fs::metadata(folder.join("stdout")).unwrap().len() < (1 << 20);
        let is_known = status.code().is_some_and(|code| self.codes.contains(&code));
        let shown: String = said.chars().take(400).collect();
        (!is_clear || !is_short || !is_known || said.contains("panicked")).then(|| {
            format!(
                "{:?} {:?}, {:?}, {} bytes: {shown}",
                status.code(),
                status.signal(),
                started.elapsed(),
                said.len()
            )
        })
    }
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Returns nested brackets.
pub(crate) fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    open.repeat(depth) + inner + &close.repeat(depth)
}

fn hold(all: &[Hostile], least: usize, beside: Option<&Path>) {
    assert!(all.len() >= least, "{}", all.len());
    let faults: Vec<String> = all
        .iter()
        .filter_map(|hostile| Some(format!("{}: {}", hostile.name, hostile.fault(beside)?)))
        .collect();
    assert!(faults.is_empty(), "{} of {}\n{}", faults.len(), all.len(), faults.join("\n"));
}

#[test]
fn hostile_checkpoints_cost_no_more_than_their_size_allows() {
    hold(&checkpoints::all(), 50, None);
}

#[test]
fn hostile_plans_cost_no_more_than_their_size_allows() {
    hold(&plans::all(), 40, None);
}

#[test]
fn hostile_texts_cost_no_more_than_their_size_allows() {
    hold(&texts::all(), 25, None);
}

#[test]
fn hostile_run_folders_cost_no_more_than_their_size_allows() {
    let (bench, run) = common::finished_run();
    hold(&runs::all(&run), 30, Some(bench.folder.path()));
}
