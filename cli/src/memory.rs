//! The memory of this process: kept from other processes and from the disk, and kept for the next step.

/// Settings of glibc's allocator for programs that need the same large blocks again and again. By default it gives each
/// block above 32 MiB back to the system, which clears its pages for the next one, and addresses it by pages of 4 KiB.
/// Only the first arena can hold such blocks, so there is no other; each thread caches more small blocks in return.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT: &str = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4294967296:\
                    glibc.malloc.trim_threshold=4611686018427387904:glibc.malloc.arena_max=1:\
                    glibc.malloc.tcache_count=200";

/// Makes the allocator keep freed memory for the next block, in large pages where the system has them. glibc reads its settings
/// when a program starts, so this replaces the process by the same program with the same arguments, and must come first.
/// Settings in the variable `GLIBC_TUNABLES` are left as they are. Does nothing with other allocators.
pub fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::env::{args_os, current_exe, var_os};
        use std::os::unix::process::CommandExt;
        let mut arguments = args_os();
        if let (None, Ok(program), Some(name)) = (var_os("GLIBC_TUNABLES"), current_exe(), arguments.next()) {
            // This returns only if the program cannot be started, and then it goes on as it is.
            let _ = std::process::Command::new(program)
                .arg0(name)
                .args(arguments)
                .env("GLIBC_TUNABLES", KEPT)
                .exec();
        }
    }
}

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
