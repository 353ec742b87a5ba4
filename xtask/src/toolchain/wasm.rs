//! Compiles for `wasm32-unknown-unknown` with whatever compiler the machine has.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{Job, note, on_path};

/// The compilation target for browsers.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's packages with a compiler and the sources of its standard library.
const DEBIAN: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld"];

/// Release profile for code that a browser downloads. Native builds keep theirs.
const SMALL: [(&str, &str); 4] =
    [("OPT_LEVEL", "z"), ("LTO", "fat"), ("CODEGEN_UNITS", "1"), ("STRIP", "symbols")];

/// Further settings for downloaded code when the standard library is built too: small algorithms, and panics without a
/// message.
const SMALLER: [(&str, &str); 5] = [
    // `strip_wasm` removes the names from the finished module.
    ("CARGO_PROFILE_RELEASE_STRIP", "false"),
    ("CARGO_UNSTABLE_BUILD_STD_FEATURES", "optimize_for_size"),
    ("CARGO_UNSTABLE_PANIC_IMMEDIATE_ABORT", "true"),
    ("CARGO_PROFILE_RELEASE_PANIC", "immediate-abort"),
    (
        "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS",
        "-Zlocation-detail=none -Zinline-mir=no --cfg=sha2_backend_soft=\"compact\"",
    ),
];

/// The origin of the target's standard library.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    /// The standard library is installed with the current compiler.
    Plain,
    /// The standard library is built from the sources of another compiler.
    BuildStd {
        /// Folder with the `rustc` and `cargo` of that compiler.
        bin: PathBuf,
        /// Linker, if the compiler includes none.
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
        let version = Job::new(bin.join("rustc"), root).args(["--version"]).probe();
        (complete && version.as_deref().is_some_and(is_supported))
            .then(|| Mode::BuildStd { linker: linker(&sysroot), bin })
    })
}

/// Finds a mode, or installs what is missing.
///
/// # Errors
/// If nothing can be found or installed. The message says what to run.
pub fn find_or_install(root: &Path) -> Result<Mode> {
    if let Some(mode) = find(root) {
        return Ok(mode);
    }
    if on_path("rustup").is_some() {
        note("the compiler lacks the WASM target: installing it with rustup");
        if Job::new("rustup", root).args(["target", "add", TARGET]).run().is_ok()
            && let Some(mode) = find(root)
        {
            return Ok(mode);
        }
    }
    if super::tools::may_install_packages() {
        note("no installed compiler can build for WASM: installing Debian's compiler and sources");
        super::tools::install_packages(root, &DEBIAN)?;
        if let Some(mode) = find(root) {
            return Ok(mode);
        }
    }
    bail!(
        "no installed compiler can build for {TARGET}. Run one of:\n  rustup target add {TARGET}\n  \
         sudo apt-get install --no-install-recommends {}\nor set WEB_RUSTC to a rustc that has rust-src",
        DEBIAN.join(" ")
    )
}

/// Returns the target folder for WASM, a separate one so that native and WASM artifacts do not replace each other.
pub fn target_dir(root: &Path) -> PathBuf {
    super::tools::target_dir(root).join("wasm")
}

/// Creates a job for a program that runs cargo for the target.
pub fn job(program: &str, folder: &Path, root: &Path, mode: &Mode) -> Result<Job> {
    let mut paths = super::tools::search_path(root);
    let mut job = Job::new(program, folder).env("CARGO_TARGET_DIR", target_dir(root));
    for (setting, value) in SMALL {
        job = job.env(&format!("CARGO_PROFILE_RELEASE_{setting}"), value);
    }
    if let Mode::BuildStd { bin, linker } = mode {
        paths.insert(0, linked(root, bin)?);
        // Lists in the environment are separated by blanks; Debian's cargo takes no commas.
        job = job.env("RUSTC_BOOTSTRAP", "1").env("CARGO_UNSTABLE_BUILD_STD", "std panic_abort");
        if let Some(linker) = linker {
            job = job.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
    }
    let path = env::join_paths(paths).context("PATH contains a folder whose name is not valid in a list")?;
    Ok(job.env("PATH", path))
}

/// Creates a job as [`job`] does, for code that a browser downloads: with a standard library built for size, if its sources are there.
pub fn small_job(program: &str, folder: &Path, root: &Path, mode: &Mode) -> Result<Job> {
    let mode = smallest(root, mode);
    let job = job(program, folder, root, &mode)?;
    Ok(match mode {
        Mode::Plain => job,
        Mode::BuildStd { .. } => SMALLER.iter().fold(job, |job, (setting, value)| job.env(setting, value)),
    })
}

/// Returns the mode with the smallest code.
pub fn smallest(root: &Path, mode: &Mode) -> Mode {
    let current = sysroot(root, Path::new("rustc")).filter(|sysroot| has_sources(sysroot));
    match (mode, current) {
        (Mode::Plain, Some(sysroot)) => Mode::BuildStd { linker: linker(&sysroot), bin: sysroot.join("bin") },
        _ => mode.clone(),
    }
}

/// Installs the sources of the current compiler's standard library, if they are missing and rustup can. Only the size of the
/// page depends on them.
pub fn try_to_install_sources(root: &Path) {
    let has = sysroot(root, Path::new("rustc")).is_some_and(|sysroot| has_sources(&sysroot));
    if !has && on_path("rustup").is_some() {
        let _ = Job::new("rustup", root).args(["component", "add", "rust-src"]).run();
    }
}

/// Makes a folder with links to this compiler only, so that other programs of its `bin` do not hide the user's tools.
fn linked(root: &Path, bin: &Path) -> Result<PathBuf> {
    let folder = super::tools::target_dir(root).join("wasm-toolchain");
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    for name in ["rustc", "cargo"] {
        let link = folder.join(name);
        if std::fs::read_link(&link).ok().as_deref() != Some(bin.join(name).as_path()) {
            // The link is absent or names another compiler. The next call reports any other obstacle.
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

/// Returns whether the workspace compiles with a compiler that names its version like this: `rustc 1.95.0 (…)`.
fn is_supported(version: &str) -> bool {
    let numbers = |text: &str| -> Option<(u32, u32)> {
        let mut parts = text.split('.').map(|part| part.parse().ok());
        Some((parts.next()??, parts.next()??))
    };
    let found = version.split_whitespace().nth(1).and_then(numbers);
    found.is_some_and(|found| numbers(env!("CARGO_PKG_RUST_VERSION")).is_some_and(|least| found >= least))
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

/// Returns the linker that Debian installs, or `None` if the compiler includes `rust-lld`.
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
    fn an_old_compiler_is_not_used() {
        for (version, want) in [
            ("rustc 1.85.0 (4d91de4e4 2025-02-17) (built from a source tarball)", false),
            (concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"), ".0 (59807616e 2026-04-14)"), true),
            ("rustc 2.0.0", true),
            ("rustc", false),
            ("rustc 1.x", false),
        ] {
            assert_eq!(is_supported(version), want, "{version}");
        }
    }

    #[test]
    fn a_compiler_is_usable_only_with_its_target_or_its_sources() {
        let folder = env::temp_dir().join(format!("xtask-sysroot-{}", std::process::id()));
        let library = folder.join("lib/rustlib").join(TARGET).join("lib");
        std::fs::create_dir_all(&library).unwrap();
        assert!(!has_target(&folder), "an empty folder is not a target");
        std::fs::write(library.join("libcore-1.rlib"), "").unwrap();
        assert!(has_target(&folder));
        assert!(!has_sources(&folder));
        std::fs::create_dir_all(folder.join("lib/rustlib/src/rust/library")).unwrap();
        std::fs::write(folder.join("lib/rustlib/src/rust/library/Cargo.lock"), "").unwrap();
        assert!(has_sources(&folder));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
