//! The browser that runs the page's tests, and Node, which drives it.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::tools::install_packages;
use crate::process::{Job, note, on_path};

/// Chromium and its driver.
pub struct Browser {
    /// The browser.
    pub chromium: PathBuf,
    /// The browser's WebDriver.
    pub driver: PathBuf,
}

/// Finds Chromium without changing the machine. `$CHROMIUM` and `$CHROMEDRIVER` take precedence.
pub fn find() -> Option<Browser> {
    let named = |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|file| file.is_file());
    let browsers = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let chromium = named("CHROMIUM").or_else(|| browsers.iter().find_map(|name| on_path(name)))?;
    let driver = named("CHROMEDRIVER").or_else(|| on_path("chromedriver"))?;
    Some(Browser { chromium, driver })
}

/// Finds Chromium, or installs it on Debian.
pub fn find_or_install(root: &Path) -> Result<Browser> {
    if let Some(browser) = find() {
        return Ok(browser);
    }
    note("the page's tests need Chromium and chromedriver");
    install_packages(root, &["chromium", "chromium-driver"])?;
    find().context("Chromium is installed but not on PATH; set CHROMIUM and CHROMEDRIVER to the programs")
}

/// Finds Firefox, or installs it on Debian. `$FIREFOX` takes precedence.
pub fn firefox(root: &Path) -> Result<PathBuf> {
    let named = || env::var_os("FIREFOX").map(PathBuf::from).filter(|file| file.is_file());
    let find = || named().or_else(|| on_path("firefox-esr")).or_else(|| on_path("firefox"));
    if let Some(firefox) = find() {
        return Ok(firefox);
    }
    note("the page's tests need Firefox");
    install_packages(root, &["firefox-esr"])?;
    find().context("Firefox is installed but not on PATH; set FIREFOX to the program")
}

/// Finds npm, or installs it on Debian. Then installs the Node packages of the end-to-end test and of the release build.
pub fn node_packages(root: &Path) -> Result<()> {
    if on_path("npm").is_none() {
        note("the page's tests need Node");
        install_packages(root, &["nodejs", "npm"])?;
    }
    let folder = root.join("web/e2e");
    let packages = ["playwright-core", "puppeteer-core", "axe-core", "binaryen", "terser"];
    if packages.iter().all(|name| folder.join("node_modules").join(name).is_dir()) {
        return Ok(());
    }
    Job::new("npm", &folder).args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).run()
}
