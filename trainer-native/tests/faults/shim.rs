//! Runs the trainer on a disk that is watched, or that fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// `disk.c`, compiled once. A machine that builds Rust has a C compiler.
static SHIM: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("dp-disk-{}.so", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/disk.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&path)
        .arg(source)
        .arg("-ldl")
        .status();
    assert!(built.unwrap().success(), "disk.c cannot be compiled");
    path
});

/// A fault of the changes in a folder.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Number of the change that fails, from 1.
    pub at: u64,
    /// Error number: 28 for a full disk, 5 for a broken one.
    pub errno: i32,
    /// Whether all changes after it fail too.
    pub stays: bool,
}

/// Runs `command` with the shim around the folder `run`.
pub fn watched(command: &mut Command, run: &Path, log: Option<&Path>, fault: Option<Fault>) -> Output {
    command.env("LD_PRELOAD", &*SHIM).env("DISK_FOLDER", run);
    if let Some(log) = log {
        command.env("DISK_LOG", log);
    }
    if let Some(fault) = fault {
        command.env("DISK_FAULT_AT", fault.at.to_string()).env("DISK_ERRNO", fault.errno.to_string());
        if fault.stays {
            command.env("DISK_STAYS", "1");
        }
    }
    in_time(command)
}

/// Runs `command`, which must end by itself within a minute.
pub fn in_time(command: &mut Command) -> Output {
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("the trainer hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}
