//! A way to compile for `wasm32-unknown-unknown`, whatever compiler the machine has.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{Job, note, on_path};

/// The target of everything that runs in a browser.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's packages that bring a compiler together with the sources of its standard library.
const DEBIAN: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld"];

/// The release profile of what a browser downloads. Native builds keep theirs.
const SMALL: [(&str, &str); 4] =
    [("OPT_LEVEL", "z"), ("LTO", "fat"), ("CODEGEN_UNITS", "1"), ("STRIP", "symbols")];

/// What a build that is downloaded takes from a compiler that builds its own standard library: small algorithms, and panics
/// that stop the module instead of telling where they were.
const SMALLER: [(&str, &str); 5] = [
    // The names are taken out of the finished module.
    ("CARGO_PROFILE_RELEASE_STRIP", "false"),
    ("CARGO_UNSTABLE_BUILD_STD_FEATURES", "optimize_for_size"),
    ("CARGO_UNSTABLE_PANIC_IMMEDIATE_ABORT", "true"),
    ("CARGO_PROFILE_RELEASE_PANIC", "immediate-abort"),
    ("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", "-Zlocation-detail=none"),
];

/// How the standard library of the target is had.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    /// The current compiler has it.
    Plain,
    /// It is built from the sources beside this compiler (`bin/rustc`, `bin/cargo`).
    BuildStd {
        /// Folder with that compiler's `rustc` and `cargo`.
        bin: PathBuf,
        /// Linker, where the compiler brings none.
        linker: Option<PathBuf>,
    },
}

/// Finds a mode without changing the machine.
pub fn find(root: &Path) -> Option<Mode> {
    let current = sysroot(root, Path::new("rustc"));
    if current.as_deref().is_some_and(has_target) {
        return Some(Mode::Plain);
    }
    let named = [env::var_os("WEB_RUSTC").map(PathBuf::from), Some(PathBuf::from("/usr/bin/rustc"))];
    let others = named.into_iter().flatten().filter_map(|rustc| sysroot(root, &rustc));
    current.into_iter().chain(others).find_map(|sysroot| {
        let bin = sysroot.join("bin");
        let complete = has_sources(&sysroot) && bin.join("rustc").is_file() && bin.join("cargo").is_file();
        complete.then(|| Mode::BuildStd { linker: linker(&sysroot), bin })
    })
}

/// Finds a mode, installing what is missing where this process may.
///
/// # Errors
/// When nothing can be found or installed: the message says what to run.
pub fn find_or_install(root: &Path) -> Result<Mode> {
    if let Some(mode) = find(root) {
        return Ok(mode);
    }
    if env::var_os("RUSTUP_AUTO_INSTALL").is_none_or(|value| value != "0") && on_path("rustup").is_some() {
        note("the compiler lacks the WASM target: asking rustup for it");
        if Job::new("rustup", root).args(["target", "add", TARGET]).run().is_ok()
            && let Some(mode) = find(root)
        {
            return Ok(mode);
        }
    }
    if super::tools::may_install_packages() {
        note("no compiler here can build for WASM: installing Debian's, which brings the sources it needs");
        super::tools::install_packages(root, &DEBIAN)?;
        if let Some(mode) = find(root) {
            return Ok(mode);
        }
    }
    bail!(
        "no compiler here can build for {TARGET}. Run one of:\n  rustup target add {TARGET}\n  \
         sudo apt-get install --no-install-recommends {}\nor set WEB_RUSTC to a rustc that has rust-src",
        DEBIAN.join(" ")
    )
}

/// Where WASM artifacts live, apart from native ones so that neither evicts the other.
pub fn target_dir(root: &Path) -> PathBuf {
    super::tools::target_dir(root).join("wasm")
}

/// A program whose nested cargo compiles for the target in `mode`.
pub fn job(program: &str, folder: &Path, root: &Path, mode: &Mode) -> Result<Job> {
    let mut paths = super::tools::search_path(root);
    let mut job = Job::new(program, folder).env("CARGO_TARGET_DIR", target_dir(root));
    for (setting, value) in SMALL {
        job = job.env(&format!("CARGO_PROFILE_RELEASE_{setting}"), value);
    }
    if let Mode::BuildStd { bin, linker } = mode {
        paths.insert(0, linked(root, bin)?);
        job = job.env("RUSTC_BOOTSTRAP", "1").env("CARGO_UNSTABLE_BUILD_STD", "std,panic_abort");
        if let Some(linker) = linker {
            job = job.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
    }
    let path = env::join_paths(paths).context("PATH holds a folder whose name cannot be listed")?;
    Ok(job.env("PATH", path))
}

/// As [`job`], for what a browser downloads.
pub fn small_job(program: &str, folder: &Path, root: &Path, mode: &Mode) -> Result<Job> {
    let job = job(program, folder, root, mode)?;
    Ok(match mode {
        Mode::Plain => job,
        Mode::BuildStd { .. } => SMALLER.iter().fold(job, |job, (setting, value)| job.env(setting, value)),
    })
}

/// A folder that holds this compiler alone, so that nothing else of its `bin` shadows the user's tools.
fn linked(root: &Path, bin: &Path) -> Result<PathBuf> {
    let folder = super::tools::target_dir(root).join("wasm-toolchain");
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    for name in ["rustc", "cargo"] {
        let link = folder.join(name);
        if std::fs::read_link(&link).ok().as_deref() != Some(bin.join(name).as_path()) {
            // Absent, or of another compiler; what follows reports any other obstacle.
            let _ = std::fs::remove_file(&link);
            symlink(&bin.join(name), &link).with_context(|| format!("linking {}", link.display()))?;
        }
    }
    Ok(folder)
}

#[cfg(unix)]
fn symlink(to: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(to, link)
}

#[cfg(not(unix))]
fn symlink(to: &Path, link: &Path) -> std::io::Result<()> {
    std::fs::copy(to, link).map(drop)
}

fn sysroot(root: &Path, rustc: &Path) -> Option<PathBuf> {
    let answer = Job::new(rustc, root).args(["--print", "sysroot"]).probe()?;
    Some(PathBuf::from(answer.trim()))
}

fn has_target(sysroot: &Path) -> bool {
    let library = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    std::fs::read_dir(library).is_ok_and(|mut files| {
        files.any(|f| f.is_ok_and(|f| f.file_name().to_string_lossy().starts_with("libcore")))
    })
}

fn has_sources(sysroot: &Path) -> bool {
    sysroot.join("lib/rustlib/src/rust/library/Cargo.lock").is_file()
}

/// None when the compiler brings `rust-lld`.
fn linker(sysroot: &Path) -> Option<PathBuf> {
    let hosts = std::fs::read_dir(sysroot.join("lib/rustlib")).ok()?;
    let own = hosts.flatten().any(|host| host.path().join("bin/rust-lld").is_file());
    if own {
        None
    } else {
        on_path("wasm-ld").or_else(|| (14..30).rev().find_map(|v| on_path(&format!("wasm-ld-{v}"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_counts_only_with_its_target_or_its_sources() {
        let folder = env::temp_dir().join(format!("xtask-sysroot-{}", std::process::id()));
        let library = folder.join("lib/rustlib").join(TARGET).join("lib");
        std::fs::create_dir_all(&library).unwrap();
        assert!(!has_target(&folder), "an empty folder is no target");
        std::fs::write(library.join("libcore-1.rlib"), "").unwrap();
        assert!(has_target(&folder));
        assert!(!has_sources(&folder));
        std::fs::create_dir_all(folder.join("lib/rustlib/src/rust/library")).unwrap();
        std::fs::write(folder.join("lib/rustlib/src/rust/library/Cargo.lock"), "").unwrap();
        assert!(has_sources(&folder));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
