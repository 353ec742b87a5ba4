//! Finds tools with a pinned version, or builds them from source.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{Job, note, on_path};

/// The version of trunk that builds the page.
pub const TRUNK: &str = "0.21.14";

/// The version of cargo-deny that `check` uses.
pub const DENY: &str = "0.20.2";

/// The version of cargo-semver-checks that `check` uses.
pub const SEMVER_CHECKS: &str = "0.51.0";

/// A tool that cargo can install.
pub struct Tool {
    /// Name of the crate.
    pub name: &'static str,
    /// Program that answers `--version`.
    pub program: &'static str,
    /// The required version.
    pub version: String,
    /// Whether the crate's own lock file is used.
    pub locked: bool,
}

impl Tool {
    /// Describes the builder of the page.
    pub fn trunk() -> Self {
        Self { name: "trunk", program: "trunk", version: TRUNK.into(), locked: true }
    }

    /// Describes the binding generator, in exactly the version of the workspace's lock file. Its own lock file is not
    /// used: it names a crate version that some registries have withdrawn.
    pub fn wasm_bindgen(root: &Path) -> Result<Self> {
        let path = root.join("Cargo.lock");
        let lock = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let version = locked_version(&lock, "wasm-bindgen")
            .context("Cargo.lock does not contain wasm-bindgen; run `cargo metadata` to complete it")?;
        Ok(Self { name: "wasm-bindgen-cli", program: "wasm-bindgen", version, locked: false })
    }

    /// Returns the folder that contains the tool in the required version, if any.
    pub fn find(&self, root: &Path) -> Option<PathBuf> {
        search_path(root).into_iter().find(|folder| {
            let program = folder.join(self.program);
            let answer =
                program.is_file().then(|| Job::new(&program, root).args(["--version"]).probe()).flatten();
            answer.is_some_and(|text| text.split_whitespace().any(|word| word == self.version))
        })
    }

    /// Finds the tool, or builds it. If the user has another version of it, the new one goes into the target folder, so
    /// that theirs is kept.
    pub fn find_or_install(&self, root: &Path) -> Result<()> {
        if self.find(root).is_some() {
            return Ok(());
        }
        note(&format!("{} {} is missing: building it once takes some minutes", self.name, self.version));
        let mut job = Job::cargo(root).args(["install", self.name, "--version", &self.version]);
        if self.locked {
            job = job.args(["--locked"]);
        }
        if on_path(self.program).is_some() {
            job = job.args(["--root".as_ref(), tools_dir(root).as_os_str()]);
        }
        job.run()?;
        self.find(root).map(drop).with_context(|| format!("{} was installed but is not on PATH", self.name))
    }
}

/// Returns the version of `package` in the text of a lock file.
pub fn locked_version(lock: &str, package: &str) -> Option<String> {
    let mut lines = lock.lines();
    lines.find(|line| *line == format!("name = \"{package}\""))?;
    let version = lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')?;
    Some(version.to_string())
}

/// Returns cargo's target folder.
pub fn target_dir(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}

fn tools_dir(root: &Path) -> PathBuf {
    target_dir(root).join("tools")
}

/// Returns the folders in which tools are searched: the project's own, then PATH, then cargo's folder.
pub fn search_path(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![tools_dir(root).join("bin")];
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let default_home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    folders.extend(cargo_home.or_else(default_home).map(|home| home.join("bin")));
    folders
}

/// Returns whether this process may install Debian packages: it is root, on a system with apt.
pub fn may_install_packages() -> bool {
    let user = Job::new("id", Path::new("/")).args(["-u"]).probe();
    on_path("apt-get").is_some() && user.is_some_and(|id| id.trim() == "0")
}

/// Installs Debian packages.
pub fn install_packages(root: &Path, packages: &[&str]) -> Result<()> {
    if !may_install_packages() {
        bail!("run: sudo apt-get install --no-install-recommends {}", packages.join(" "));
    }
    let install = || {
        Job::new("apt-get", root)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["install", "-y", "--no-install-recommends"])
            .args(packages)
            .run()
    };
    // The package lists may be missing or out of date.
    install().or_else(|_| {
        Job::new("apt-get", root).args(["update"]).run()?;
        install()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_belongs_to_the_package_with_exactly_that_name() {
        let lock = "name = \"wasm-bindgen-macro\"\nversion = \"9.9.9\"\n\nname = \"wasm-bindgen\"\nversion = \"0.2.1\"\n";
        assert_eq!(locked_version(lock, "wasm-bindgen").as_deref(), Some("0.2.1"));
        assert_eq!(locked_version(lock, "trunk"), None);
    }
}
