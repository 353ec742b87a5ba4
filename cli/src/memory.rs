//! Keeps this process's memory from other processes and from the disk.

/// Keeps the memory of this process, which holds private text and the key of the noise, from the
/// disk: a crash leaves no core dump. `no_other_process` also hides it from other processes of the
/// same user, including debuggers. It must be false for processes that exchange messages by reading
/// each other's memory, as those of MPI do.
///
/// If the system refuses, nothing changes.
pub fn leave_no_core_dump(no_other_process: bool) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        // A limit of 0 has no effect if the system pipes dumps to a program. A limit of 1 does, and
        // leaves no file either.
        let limit = Rlimit { current: Some(1), maximum: Some(1) };
        if setrlimit(Resource::Core, limit).is_err() {
            let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        }
    }
    #[cfg(target_os = "linux")]
    if no_other_process {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = no_other_process;
}
