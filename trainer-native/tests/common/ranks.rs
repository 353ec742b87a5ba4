//! The program on several ranks.

use std::path::Path;
use std::process::{Command, Output};

use super::stderr;

/// Returns the command that runs the program on several ranks of this machine, each with one thread, in the
/// environment of `command`.
pub fn on_ranks(count: usize, command: &Command) -> Command {
    let mut mpirun = Command::new("mpirun");
    mpirun
        .args(["--oversubscribe", "-np", &count.to_string()])
        .arg(command.get_program())
        .args(command.get_args())
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")])
        // Containers may forbid a process to read another's memory.
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        // Otherwise a rank that is killed while it holds a lock of PMIx can make mpirun wait
        // forever (openpmix#1233).
        .env("PMIX_MCA_gds", "hash");
    mpirun
}

/// The lines that the program itself wrote, without those of mpirun.
pub fn messages(output: &Output) -> Vec<String> {
    stderr(output).lines().filter(|line| line.contains("trainer-native: ")).map(str::to_owned).collect()
}

/// Processes whose command line has this folder, the first rank first.
pub fn ranks_of(out: &Path) -> Vec<u32> {
    let command_line = |process: &u32| std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let is_rank = |process: &u32| {
        let line = String::from_utf8_lossy(&command_line(process)).into_owned();
        let program = line.split('\0').next().unwrap_or_default();
        program.ends_with("trainer-native") && line.contains(&format!("{}\0", out.display()))
    };
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let mut processes: Vec<u32> =
        numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_rank).collect();
    processes.sort_unstable();
    processes
}

pub fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}
