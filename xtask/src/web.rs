//! The page: built by trunk, tested in headless Chromium.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process::{Job, note};
use crate::toolchain::{browser, tools, wasm};
use crate::{offline, seal, setup, slim, verify};

/// `cargo xtask web …`.
pub fn run(root: &Path, chore: &str, rest: &[&str]) -> Result<bool> {
    let release = match rest {
        [] => false,
        ["--release"] => true,
        other => bail!("`{}` is no option of `web {chore}`; allowed: --release", other.join(" ")),
    };
    match chore {
        "build" => build(root, release),
        "serve" => serve(root, release),
        "test" => Ok(unit_tests(root)? && build(root, release)? && end_to_end(root)?),
        "vectors" => vectors(root),
        other => bail!("`web {other}` is no chore; allowed: build, serve, test, vectors"),
    }
}

/// Compiles `crates` for the browser, so that a native habit in one of them is found where it is.
pub fn compile(root: &Path, crates: &[&str]) -> Result<bool> {
    let mode = setup::page_tools(root)?;
    let mut job = wasm::job("cargo", root, root, &mode)?.args([
        "build",
        "--lib",
        "--release",
        "--target",
        wasm::TARGET,
    ]);
    for name in crates {
        job = job.args(["--package", name]);
    }
    job.run().map(|()| true)
}

/// The page into `dist/`, with the checksum of its start script in the content security policy.
pub fn build(root: &Path, release: bool) -> Result<bool> {
    trunk(root, "build", release)?.run()?;
    let dist = root.join("dist");
    seal::run(&dist.join("index.html"))?;
    slim::run(&dist)?;
    if release {
        shrink(root, &dist)?;
    }
    offline::run(&dist)?;
    Ok(true)
}

/// What the compiler's modules use. With every feature allowed the optimiser writes what today's browsers refuse.
const FEATURES: [&str; 7] = [
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// Every module in `folder` through Binaryen's optimiser, for size. The tests in the browser run what comes out.
fn shrink(root: &Path, folder: &Path) -> Result<()> {
    browser::node_packages(root)?;
    let optimizer = root.join("web/e2e/node_modules/binaryen/bin/wasm-opt");
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            let file = path.as_os_str();
            Job::new("node", root)
                .args([optimizer.as_os_str()])
                .args(["-Oz", "--converge", "--strip-producers"])
                .args(FEATURES)
                .args([file, "-o".as_ref(), file])
                .run()?;
        }
    }
    Ok(())
}

/// The `wasm_bindgen_test`s, in headless Chromium.
pub fn unit_tests(root: &Path) -> Result<bool> {
    let mode = setup::page_tools(root)?;
    let browser = browser::find_or_install(root)?;
    let runner = "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER";
    wasm::job("cargo", root, root, &mode)?
        .env(runner, "wasm-bindgen-test-runner")
        .env("CHROMEDRIVER", browser.driver)
        .env("WASM_BINDGEN_TEST_TIMEOUT", "240")
        .args(["test", "--release", "--target", wasm::TARGET, "--package", "web"])
        // What is compared needs no page around it.
        .args(["--no-default-features", "--test", "parity"])
        .run()
        .map(|()| true)
}

/// The script that uses the built page as a person does. Screenshots land in `<target>/web-e2e`, or where
/// `$WEB_SHOTS` says.
pub fn end_to_end(root: &Path) -> Result<bool> {
    let browser = browser::find_or_install(root)?;
    browser::node_packages(root)?;
    Job::cargo(root).args(verify::NATIVE_TESTS).args(["--no-run"]).run()?;
    let shots = std::env::var_os("WEB_SHOTS")
        .map_or_else(|| tools::target_dir(root).join("web-e2e"), std::path::PathBuf::from);
    std::fs::create_dir_all(&shots).with_context(|| format!("creating {}", shots.display()))?;
    Job::new("node", &root.join("web/e2e"))
        .args(["run.mjs"])
        .env("CHROMIUM", browser.chromium)
        .env("PAGE", root.join("dist"))
        .env("OUT", shots)
        .env("DOWNLOAD_LIMIT", download_limit(root))
        .env("TRAINER", tools::target_dir(root).join("release/trainer-native"))
        .env("ACCOUNTANT", tools::target_dir(root).join("release/accountant"))
        .run()
        .map(|()| true)
}

/// Bytes, after brotli, that a first visit may take. A standard library that comes compiled brings the texts of its panics.
fn download_limit(root: &Path) -> &'static str {
    if wasm::find(root) == Some(wasm::Mode::Plain) { "400000" } else { "300000" }
}

fn serve(root: &Path, release: bool) -> Result<bool> {
    note("the page will be at http://127.0.0.1:8080/");
    trunk(root, "serve", release)?.run().map(|()| true)
}

fn trunk(root: &Path, chore: &str, release: bool) -> Result<Job> {
    let mode = setup::page_tools(root)?;
    let build = if release { wasm::small_job } else { wasm::job };
    let mut job = build("trunk", root, root, &mode)?
        .env("TRUNK_SKIP_VERSION_CHECK", "true")
        // Every tool is here already: nothing has to be fetched.
        .env("TRUNK_OFFLINE", "true")
        // Trunk reads NO_COLOR as a boolean and refuses the customary `1`.
        .env("NO_COLOR", "true")
        .args([chore]);
    if release {
        job = job.args(["--release"]);
    }
    Ok(job)
}

/// Writes the figures the browser test compares with.
fn vectors(root: &Path) -> Result<bool> {
    let test =
        ["test", "--release", "--package", "web", "--no-default-features", "--test", "parity", "the_vectors"];
    Job::cargo(root).args(test).env("WRITE_VECTORS", "1").run().map(|()| true)
}
