//! Runs `cargo xtask test` and `cargo xtask check`, cheapest stages first.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process::{Beside, Job};
use crate::stages::Stages;
use crate::toolchain::tools::{self, Tool};
use crate::toolchain::{mpi, native, vulkan};
use crate::{js, python, setup, tidy, web};

/// Crates of the page that must also compile for the browser on their own. The page itself has its own stages.
const BROWSER_CRATES: [&str; 4] = ["accountant", "plan", "tokenizer", "dp-tokenizer"];

/// Runs everything that CI runs, or one half of it.
pub fn test(root: &Path, part: Option<&str>) -> Result<bool> {
    let stages_of = match part {
        None => all_tests,
        Some("native") => native_stages,
        Some("browser") => browser_stages,
        Some(other) => {
            bail!("`{other}` is not a part of the tests; allowed: native, browser, or none for all")
        }
    };
    let mut stages = Stages::default();
    stages_of(root, &mut stages);
    Ok(stages.close())
}

/// Runs `test`, then the checks that only a change of dependencies or documentation can break.
pub fn check(root: &Path) -> Result<bool> {
    let mut stages = Stages::default();
    all_tests(root, &mut stages);
    stages.run("dependencies (cargo-deny)", || deny(root));
    stages.run("oldest supported compiler", || oldest_compiler(root));
    stages.run("public interfaces (cargo-semver-checks)", || semver(root));
    stages.run("packages of the crates", || package(root));
    stages.run("documentation", || {
        let doc = ["doc", "--no-deps", "--workspace", "--release"];
        passed(Job::cargo(root).args(doc).env("RUSTDOCFLAGS", "-Dwarnings"))
    });
    Ok(stages.close())
}

fn all_tests(root: &Path, stages: &mut Stages) {
    stages.run("format", || passed(Job::cargo(root).args(["fmt", "--all", "--check"])));
    stages.run("tidy", || tidy::run(root));
    stages.run("setup", || setup::run(root));
    // Many stages, such as the linking of a large program, use one core, so the tests in the browser run beside the native
    // ones. They have target folders of their own.
    let browser = start_browser_tests(root);
    native_stages(root, stages);
    stages.run("WASM, JavaScript packages and the page, since the native stages ended", || browser?.wait());
}

fn start_browser_tests(root: &Path) -> Result<Beside> {
    let target = tools::target_dir(root);
    std::fs::create_dir_all(&target).with_context(|| format!("creating {}", target.display()))?;
    let program = std::env::current_exe().context("finding this program")?;
    Job::new(program, root).args(["test", "browser"]).start(&target.join("browser-tests.log"))
}

/// Runs the checks and tests of native code.
fn native_stages(root: &Path, stages: &mut Stages) {
    // Everything is compiled in the release profile: the numerics are too slow without it, and dependencies are
    // compiled once.
    stages.run("clippy with wgpu, cuda and mpi", || {
        mpi::find_or_install(root)?;
        clippy(
            root,
            &[
                "--workspace",
                "--all-targets",
                "--features",
                "trainer-native/wgpu,trainer-native/cuda,trainer-native/mpi,web/page",
            ],
        )
    });
    stages.run("clippy of the trainer for the CPU alone", || clippy(root, &["--package", "trainer-native"]));
    // Property tests use a fixed seed here, so that a failure is due to the change under test. Plain `cargo test` uses a
    // new seed each time.
    stages.run("native tests, the wgpu device on software Vulkan, several ranks on this machine", || {
        let trainer = tools::target_dir(root).join("release/trainer-native");
        mpi::find_or_install(root)?;
        let job = native::tests(root)
            .args(["--no-fail-fast"])
            .env(vulkan::VARIABLE, vulkan::find_or_install(root)?);
        passed(job.env("PROPTEST_RNG_SEED", "20261121").env("TRAINER", trainer))
    });
    stages.run("Python package", || python::test(root));
}

/// Builds the code of the browser, and tests it there.
fn browser_stages(root: &Path, stages: &mut Stages) {
    stages.run("WASM build", || web::compile(root, &BROWSER_CRATES));
    stages.run("WASM tests in Chromium", || web::unit_tests(root));
    stages.run("JavaScript packages in Node and Chromium", || js::run(root));
    stages.run("page build", || web::build(root, true));
    stages.run("page end to end in Chromium", || web::end_to_end(root));
}

/// Checks every crate with the first compiler of the series that the workspace states as its oldest.
fn oldest_compiler(root: &Path) -> Result<bool> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).context("reading Cargo.toml")?;
    let stated = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    let oldest = stated.context("Cargo.toml states no rust-version")?;
    let current = Job::new("rustc", root).args(["--version"]).output()?;
    let job = match current.starts_with(&format!("rustc {oldest}.")) {
        true => Job::cargo(root),
        false => Job::new("rustup", root).args(["run", "--install", &format!("{oldest}.0"), "cargo"]),
    };
    passed(job.args(["check", "--release", "--workspace", "--all-targets"]))
}

/// Compares the public interface of each library with its interface when the version was set, so
/// that an incompatible change needs a new version.
fn semver(root: &Path) -> Result<bool> {
    let tool = Tool {
        name: "cargo-semver-checks",
        program: "cargo-semver-checks",
        version: tools::SEMVER_CHECKS.into(),
        locked: true,
    };
    tool.find_or_install(root).context("cargo-semver-checks")?;
    let mut same = true;
    for (libraries, manifest) in [
        (&["accountant"][..], "accountant/Cargo.toml"),
        (&["mechanisms", "tokenizer", "dp-tokenizer", "plan"], "Cargo.toml"),
    ] {
        let stated = Job::new("git", root)
            .args(["log", "-1", "--format=%H", "-G^version = ", "--", manifest])
            .output()
            .context("finding the commit that set the version")?;
        let selection = libraries.iter().flat_map(|name| ["--package", name]);
        let check =
            Job::cargo(root).args(["semver-checks", "--default-features", "--baseline-rev", stated.trim()]);
        // Every library is compared, so that one run names all changes.
        same &= check.args(selection).run().is_ok();
    }
    Ok(same)
}

/// Crates that are published: those for other programs, the program of the trainer, and what these depend on.
const PUBLISHED: [&str; 13] = [
    "durable",
    "heap",
    "cli",
    "accountant",
    "mechanisms",
    "tokenizer",
    "dp-tokenizer",
    "plan",
    "chart",
    "network",
    "training",
    "evaluation",
    "trainer-native",
];

/// Packs every published crate, as `cargo publish` does. Building what was packed would repeat the build of the workspace.
fn package(root: &Path) -> Result<bool> {
    publish_dry(root, &["--no-verify"])
}

/// Publishes every published crate without an upload: each is packed, and built from its package unless the options say
/// otherwise.
pub fn publish_dry(root: &Path, options: &[&str]) -> Result<bool> {
    let selection = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    passed(Job::cargo(root).args(["publish", "--dry-run", "--allow-dirty"]).args(options).args(selection))
}

fn clippy(root: &Path, selection: &[&str]) -> Result<bool> {
    let job = Job::cargo(root).env(mpi::VARIABLE, mpi::clang_arguments(root));
    passed(job.args(["clippy", "--release"]).args(selection).args(["--", "-D", "warnings"]))
}

fn passed(job: Job) -> Result<bool> {
    job.run().map(|()| true)
}

fn deny(root: &Path) -> Result<bool> {
    let tool = Tool { name: "cargo-deny", program: "cargo-deny", version: tools::DENY.into(), locked: true };
    tool.find_or_install(root).context("cargo-deny")?;
    passed(Job::cargo(root).args(["deny", "--all-features", "check", "bans", "licenses", "sources"]))
}
