//! Finds an MPI library for the tests of runs on several ranks: Open MPI, and libclang, which reads its headers.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::tools::install_packages;
use crate::process::{Job, note, on_path};

/// Debian's packages with MPI and libclang.
const DEBIAN: [&str; 3] = ["openmpi-bin", "libopenmpi-dev", "libclang1-14"];

/// The variable with further arguments of libclang.
pub const VARIABLE: &str = "BINDGEN_EXTRA_CLANG_ARGS";

/// Finds the program that starts ranks, without changing the machine.
pub fn find() -> Option<PathBuf> {
    let has_clang =
        env::var_os("LIBCLANG_PATH").is_some() || on_path("clang").is_some() || has_library("libclang");
    on_path("mpicc").filter(|_| has_clang).and_then(|_| on_path("mpirun"))
}

/// Finds the library, or installs it on Debian.
///
/// # Errors
/// If it can be neither found nor installed. The message says what to run.
pub fn find_or_install(root: &Path) -> Result<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    note("the tests of several ranks need an MPI library and libclang");
    install_packages(root, &DEBIAN)?;
    find().context(
        "Open MPI is installed, but mpicc, mpirun or libclang was not found; set PATH and LIBCLANG_PATH",
    )
}

/// Returns the arguments with which libclang finds the compiler's own headers, which its Debian package does not
/// contain.
pub fn clang_arguments(root: &Path) -> String {
    let given = env::var(VARIABLE).ok();
    let folder = || Job::new("gcc", root).args(["-print-file-name=include"]).probe();
    given.or_else(|| folder().map(|folder| format!("-I{}", folder.trim()))).unwrap_or_default()
}

fn has_library(name: &str) -> bool {
    let root = Path::new("/");
    let listed = ["ldconfig", "/sbin/ldconfig"]
        .iter()
        .find_map(|program| Job::new(program, root).args(["-p"]).probe());
    listed.is_some_and(|libraries| libraries.contains(name))
}
