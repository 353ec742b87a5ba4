//! Builds the Python package and tests it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process::Job;
use crate::toolchain::{native, tools};

/// The module that Python loads.
const MODULE: &str = "_native.abi3.so";

/// Tests the package with the module that the workspace's build makes, so that nothing is compiled twice.
pub fn test(root: &Path) -> Result<bool> {
    native::build(root).run()?;
    let package = tools::target_dir(root).join("python-package/private_lm");
    std::fs::create_dir_all(&package).with_context(|| format!("creating {}", package.display()))?;
    let sources = root.join("python/private_lm");
    for entry in std::fs::read_dir(&sources).with_context(|| format!("reading {}", sources.display()))? {
        let from = entry?.path();
        if let (true, Some(name)) = (from.is_file(), from.file_name()) {
            std::fs::copy(&from, package.join(name))
                .with_context(|| format!("copying {}", from.display()))?;
        }
    }
    let built = tools::target_dir(root).join("release/lib_native.so");
    std::fs::copy(&built, package.join(MODULE)).with_context(|| format!("copying {}", built.display()))?;
    let packages = package.parent().unwrap_or(root).to_owned();
    pytest(root, &environment(root, "python-venv")?).map(|job| job.env("PYTHONPATH", packages))?.run()?;
    Ok(true)
}

/// Builds the wheel, installs it into a new environment, and tests it there.
pub fn wheel(root: &Path) -> Result<bool> {
    let (tools_python, out) = (environment(root, "python-venv")?, tools::target_dir(root).join("python"));
    let maturin = tools_python.with_file_name("maturin");
    // maturin finds the oldest manylinux standard whose symbols the wheel needs.
    Job::new(maturin, &root.join("python"))
        .args(["build", "--release", "--locked", "--out"])
        .args([&out])
        .run()?;
    let clean = tools::target_dir(root).join("python-clean-venv");
    if clean.exists() {
        std::fs::remove_dir_all(&clean).with_context(|| format!("removing {}", clean.display()))?;
    }
    let python = environment(root, "python-clean-venv")?;
    let install = ["-m", "pip", "install", "--quiet", "--no-index", "--find-links"];
    Job::new(&python, root).args(install).args([out.as_os_str(), "private-lm".as_ref()]).run()?;
    pytest(root, &python)?.run()?;
    Ok(true)
}

fn pytest(root: &Path, python: &Path) -> Result<Job> {
    Ok(Job::new(python, &root.join("python/tests")).args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]))
}

/// Creates a virtual environment in the target folder, with the packages that the tests need, and returns its Python.
fn environment(root: &Path, name: &str) -> Result<PathBuf> {
    let folder = tools::target_dir(root).join(name);
    let python = folder.join("bin/python");
    let requirements = root.join("python/tests/requirements.txt");
    if !python.is_file() {
        let make =
            || Job::new("python3", root).args(["-m".as_ref(), "venv".as_ref(), folder.as_os_str()]).run();
        make().or_else(|_| {
            tools::install_packages(root, &["python3", "python3-venv"])?;
            make()
        })?;
    }
    let list = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    Job::new(&python, root).args(list).args([requirements]).run()?;
    Ok(python)
}
