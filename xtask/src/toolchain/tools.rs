//! Tools of a pinned version: used where they are, installed from source where they are not.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{Job, note, on_path};

/// Version of trunk that builds the page.
pub const TRUNK: &str = "0.21.14";

/// Version of cargo-deny that `check` uses.
pub const DENY: &str = "0.20.2";

/// A tool cargo can install.
pub struct Tool {
    /// Crate.
    pub name: &'static str,
    /// Program that answers `--version`.
    pub program: &'static str,
    /// The version the project is built with.
    pub version: String,
    /// Whether the crate's own lock file is used.
    pub locked: bool,
}

impl Tool {
    /// The page's builder.
    pub fn trunk() -> Self {
        Self { name: "trunk", program: "trunk", version: TRUNK.into(), locked: true }
    }

    /// The binding generator, which must be of the very version the workspace's lock file names. Its own lock file
    /// is not used: the version of a crate it names has been withdrawn from some registries.
    pub fn wasm_bindgen(root: &Path) -> Result<Self> {
        let path = root.join("Cargo.lock");
        let lock = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let version = locked_version(&lock, "wasm-bindgen")
            .context("Cargo.lock names no wasm-bindgen; run `cargo metadata` once so that it is complete")?;
        Ok(Self { name: "wasm-bindgen-cli", program: "wasm-bindgen", version, locked: false })
    }

    /// The folder of the tool at the right version, if the machine has it.
    pub fn find(&self, root: &Path) -> Option<PathBuf> {
        search_path(root).into_iter().find(|folder| {
            let program = folder.join(self.program);
            let answer =
                program.is_file().then(|| Job::new(&program, root).args(["--version"]).probe()).flatten();
            answer.is_some_and(|text| text.split_whitespace().any(|word| word == self.version))
        })
    }

    /// Finds the tool, or builds it: beside the user's other tools when they have none of that name, else in the
    /// target folder, so that theirs stays as it is.
    pub fn find_or_install(&self, root: &Path) -> Result<()> {
        if self.find(root).is_some() {
            return Ok(());
        }
        note(&format!("{} {} is not here: building it (some minutes, once)", self.name, self.version));
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

/// Version of `package` in a lock file's text.
pub fn locked_version(lock: &str, package: &str) -> Option<String> {
    let mut lines = lock.lines();
    lines.find(|line| *line == format!("name = \"{package}\""))?;
    let version = lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')?;
    Some(version.to_string())
}

/// The folder cargo builds into.
pub fn target_dir(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}

fn tools_dir(root: &Path) -> PathBuf {
    target_dir(root).join("tools")
}

/// PATH, with the project's own tools first and cargo's folder last.
pub fn search_path(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![tools_dir(root).join("bin")];
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let default_home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    folders.extend(cargo_home.or_else(default_home).map(|home| home.join("bin")));
    folders
}

/// Whether this process may install Debian packages: root, on a system with apt.
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
    // A fresh image has no package lists yet; an old one, stale ones.
    install().or_else(|_| {
        Job::new("apt-get", root).args(["update"]).run()?;
        install()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_package_with_the_very_name() {
        let lock = "name = \"wasm-bindgen-macro\"\nversion = \"9.9.9\"\n\nname = \"wasm-bindgen\"\nversion = \"0.2.1\"\n";
        assert_eq!(locked_version(lock, "wasm-bindgen").as_deref(), Some("0.2.1"));
        assert_eq!(locked_version(lock, "trunk"), None);
    }
}
