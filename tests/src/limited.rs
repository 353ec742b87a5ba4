//! Programs under a limit of memory and time.

use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// A command that runs `program`, which may map `memory` KiB and leaves no core dump.
pub fn command(program: &str, memory: u64) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -c 0; ulimit -v {memory}; exec \"$0\" \"$@\""), program]);
    command
}

/// How a process ended, or `None` where it took longer than `limit` and was stopped.
pub fn end_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if started.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
