//! Builds the page and tests it in headless Chromium and Firefox.

mod bundle;
mod csp_hashes;
mod service_worker;
mod strip_wasm;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process::{Job, note};
use crate::setup;
use crate::toolchain::{browser, native, tools, wasm};

/// Runs a task of `cargo xtask web`.
pub fn run(root: &Path, task: &str, rest: &[&str]) -> Result<bool> {
    let release = match rest {
        [] => false,
        ["--release"] => true,
        other => bail!("`{}` is not an option of `web {task}`; allowed: --release", other.join(" ")),
    };
    match task {
        "build" => build(root, release),
        "serve" => serve(root, release),
        "test" => Ok(unit_tests(root)? && build(root, release)? && end_to_end(root)?),
        "vectors" => vectors(root),
        other => bail!("`web {other}` is not a task; allowed: build, serve, test, vectors"),
    }
}

/// Compiles `crates` for the browser, so that code which works only natively is found in its own crate.
pub fn compile(root: &Path, crates: &[&str]) -> Result<bool> {
    let mode = setup::page_tools(root)?;
    let mut job = wasm::job("cargo", root, root, &mode)?.args([
        "build",
        "--lib",
        "--release",
        "--target",
        wasm::TARGET,
        // The crates are compiled without their command lines, as the page and the packages use them, so later stages
        // reuse the result.
        "--no-default-features",
    ]);
    for name in crates {
        job = job.args(["--package", name]);
    }
    job.run().map(|()| true)
}

/// Builds the page into `dist/`, with the hash of its start script in the content security policy.
pub fn build(root: &Path, release: bool) -> Result<bool> {
    let dist = root.join("dist");
    bundle::run(root, &dist, release)?;
    csp_hashes::run(&dist.join("index.html"))?;
    strip_wasm::run(&dist)?;
    if release {
        optimize(root, &dist)?;
    }
    service_worker::run(&dist)?;
    Ok(true)
}

/// The WASM features that the compiler uses. With all features enabled, Binaryen emits code that current browsers refuse.
const FEATURES: [&str; 7] = [
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// Passes of Binaryen for what a first visit loads.
const PASSES: [&str; 8] =
    ["-Oz", "--flatten", "--rereloop", "-Oz", "--gufa", "-Oz", "--reorder-functions", "--converge"];

/// Passes for the modules of workers that read files: the longer list would make these 1 % smaller and takes eight times as long.
const SHORT_PASSES: [&str; 1] = ["-Oz"];
const READERS: [&str; 2] = ["parquet_bg", "vocabulary_bg"];

/// Makes every file of code in `folder` smaller: WASM with Binaryen, and scripts with terser. The browser tests run the result.
fn optimize(root: &Path, folder: &Path) -> Result<()> {
    browser::node_packages(root)?;
    let packages = root.join("web/e2e/node_modules");
    let minifier = packages.join("terser/bin/terser");
    let scripts = strip_wasm::files(folder, "js")?;
    for path in scripts.iter().filter(|path| !path.ends_with(service_worker::SERVICE_WORKER)) {
        let script = path.as_os_str();
        Job::new("node", root)
            .args([minifier.as_os_str(), script, "--module".as_ref()])
            .args(["--compress".as_ref(), "--mangle".as_ref(), "-o".as_ref(), script])
            .run()?;
    }
    let optimizer = packages.join("binaryen/bin/wasm-opt");
    for path in strip_wasm::files(folder, "wasm")? {
        let file = path.as_os_str();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let passes = if READERS.contains(&&*stem) { &SHORT_PASSES[..] } else { &PASSES[..] };
        Job::new("node", root)
            .args([optimizer.as_os_str()])
            // No object lies at the start of memory, where the stack ends, so an address plus a small number does not
            // wrap.
            .args(passes)
            .args(["--strip-producers", "--low-memory-unused"])
            .args(FEATURES)
            .args([file, "-o".as_ref(), file])
            .run()?;
    }
    Ok(())
}

/// Test targets that compare native and WASM results in headless Chromium. A `webdriver.json` is beside each crate's
/// Cargo.toml.
const BROWSER_TESTS: [BrowserTest; 2] = [
    BrowserTest { package: "web", target: "parity" },
    BrowserTest { package: "dp-tokenizer", target: "parity" },
];

struct BrowserTest {
    package: &'static str,
    target: &'static str,
}

/// Runs [`BROWSER_TESTS`].
pub fn unit_tests(root: &Path) -> Result<bool> {
    let mode = setup::page_tools(root)?;
    let browser = browser::find_or_install(root)?;
    let runner = "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER";
    for test in BROWSER_TESTS {
        wasm::job("cargo", root, root, &mode)?
            .env(runner, "wasm-bindgen-test-runner")
            .env("CHROMEDRIVER", &browser.driver)
            .env("WASM_BINDGEN_TEST_TIMEOUT", "240")
            .args(["test", "--release", "--target", wasm::TARGET, "--package", test.package])
            // The test needs neither the page nor a command line.
            .args(["--no-default-features", "--test", test.target])
            .run()?;
    }
    Ok(true)
}

/// Runs the script that uses the built page as a person does. Screenshots go to `$WEB_SHOTS`, by default
/// `<target>/web-e2e`.
pub fn end_to_end(root: &Path) -> Result<bool> {
    let browser = browser::find_or_install(root)?;
    browser::node_packages(root)?;
    native::tests(root).args(["--no-run"]).run()?;
    let shots = std::env::var_os("WEB_SHOTS")
        .map_or_else(|| tools::target_dir(root).join("web-e2e"), std::path::PathBuf::from);
    std::fs::create_dir_all(&shots).with_context(|| format!("creating {}", shots.display()))?;
    Job::new("node", &root.join("web/e2e"))
        .args(["run.mjs"])
        .env("CHROMIUM", browser.chromium)
        .env("FIREFOX", browser::firefox(root)?)
        .env("PAGE", root.join("dist"))
        .env("OUT", shots)
        .env("PICTURE", root.join("docs/page.png"))
        .env("DOWNLOAD_LIMIT", download_limit(root))
        .env("TRAINER", tools::target_dir(root).join("release/trainer-native"))
        .env("ACCOUNTANT", tools::target_dir(root).join("release/accountant"))
        .run()
        .map(|()| true)
}

/// Returns the limit on a first visit, in bytes after brotli. A precompiled standard library also contains its panic
/// messages.
fn download_limit(root: &Path) -> &'static str {
    match wasm::find(root).map(|mode| wasm::smallest(root, &mode)) {
        Some(wasm::Mode::Plain) => "340000",
        _ => "290000",
    }
}

/// Serves the page with trunk, which this task alone needs.
fn serve(root: &Path, release: bool) -> Result<bool> {
    let mode = setup::page_tools(root)?;
    tools::Tool::trunk().find_or_install(root)?;
    note("the page will be at http://127.0.0.1:8080/");
    let build = if release { wasm::small_job } else { wasm::job };
    let mut job = build("trunk", root, root, &mode)?
        .env("TRUNK_SKIP_VERSION_CHECK", "true")
        // All tools are installed, so trunk must not download any.
        .env("TRUNK_OFFLINE", "true")
        // Trunk reads NO_COLOR as a boolean and refuses the usual `1`.
        .env("NO_COLOR", "true")
        .args(["serve"]);
    if release {
        job = job.args(["--release"]);
    }
    job.run().map(|()| true)
}

/// Writes the results that the browser tests compare with.
fn vectors(root: &Path) -> Result<bool> {
    for test in BROWSER_TESTS {
        Job::cargo(root)
            .args(["test", "--release", "--package", test.package, "--no-default-features"])
            .args(["--test", test.target, "the_vectors"])
            .env("WRITE_VECTORS", "1")
            .run()?;
    }
    Ok(true)
}
