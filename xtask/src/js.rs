//! The accountant as a package for Node and for web pages: built, used by scripts in both, and measured.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{Job, note};
use crate::toolchain::{browser, tools, wasm};

/// What the package takes over from its folder as it is.
const COPIED: [&str; 4] = ["package.json", "README.md", "example.mjs", "example.html"];

/// Builds the package, uses it in Node and in headless Chromium, and compares its declarations with those in the tree.
pub fn run(root: &Path) -> Result<bool> {
    let package = build(root)?;
    for engine in engines(root)? {
        engine.run(&package, &[])?.run()?;
    }
    declared(root, &package)
}

/// Builds the package under `<target>/accountant-js` and says where.
fn build(root: &Path) -> Result<PathBuf> {
    tools::Tool::wasm_bindgen(root)?.find_or_install(root)?;
    let mode = wasm::find_or_install(root)?;
    wasm::job("cargo", root, root, &mode)?
        .args(["rustc", "--lib", "--crate-type", "cdylib", "--release", "--target", wasm::TARGET])
        .args(["--package", "accountant", "--no-default-features", "--features", "js"])
        .run()?;
    let module = wasm::target_dir(root).join(wasm::TARGET).join("release/accountant.wasm");
    let package = tools::target_dir(root).join("accountant-js");
    for (target, folder) in [("nodejs", "node"), ("web", "web")] {
        wasm::job("wasm-bindgen", root, root, &mode)?
            .args([module.as_os_str(), "--target".as_ref(), target.as_ref(), "--out-dir".as_ref()])
            .args([package.join(folder)])
            .run()?;
    }
    for name in COPIED {
        let from = root.join("accountant/js").join(name);
        std::fs::copy(&from, package.join(name)).with_context(|| format!("copying {}", from.display()))?;
    }
    Ok(package)
}

/// Something that runs the package: a script and what it needs after the package's folder.
struct Engine {
    name: &'static str,
    script: PathBuf,
    arguments: Vec<PathBuf>,
}

impl Engine {
    fn run(&self, package: &Path, chore: &[&str]) -> Result<Job> {
        let job = Job::new("node", package).args([&self.script]).args([package]);
        Ok(job.args(&self.arguments).args(chore))
    }
}

/// Node and Chromium.
fn engines(root: &Path) -> Result<[Engine; 2]> {
    browser::node_packages(root)?;
    let scripts = root.join("accountant/js");
    let chromium = browser::find_or_install(root)?.chromium;
    Ok([
        Engine { name: "Node", script: scripts.join("node.mjs"), arguments: Vec::new() },
        Engine {
            name: "Chromium",
            script: scripts.join("chromium.mjs"),
            arguments: vec![chromium, root.join("web/e2e")],
        },
    ])
}

/// Whether the declarations in the tree are those of the build.
fn declared(root: &Path, package: &Path) -> Result<bool> {
    let read =
        |path: &Path| std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()));
    let (built, kept) = (package.join("node/accountant.d.ts"), root.join("accountant/js/accountant.d.ts"));
    let same = kept.is_file() && read(&built)? == read(&kept)?;
    if !same {
        note(&format!("{} is not what the build declares; copy {} over it", kept.display(), built.display()));
    }
    Ok(same)
}

/// Times the queries that the native bench wrote to `native`, one JSON object a line, in Node and Chromium.
pub fn measure(root: &Path, native: &Path) -> Result<()> {
    let package = build(root)?;
    let text = std::fs::read_to_string(native).with_context(|| format!("reading {}", native.display()))?;
    let native: Vec<serde_json::Value> =
        text.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("reading native times")?;
    for engine in engines(root)? {
        let answer = engine.run(&package, &["measure"])?.output()?;
        let found: Vec<serde_json::Value> =
            serde_json::from_str(&answer).with_context(|| format!("reading the times of {}", engine.name))?;
        note(&format!("\nquery  native ms  {} ms  times native  same bounds to the last bit", engine.name));
        for (own, other) in native.iter().zip(&found) {
            let (Some(fast), Some(slow)) = (own["ms"].as_f64(), other["ms"].as_f64()) else {
                bail!("{} gave no times: {other}", engine.name);
            };
            let same = ["name", "lower", "upper"].iter().all(|field| own[field] == other[field]);
            let name = own["name"].as_str().unwrap_or_default();
            note(&format!("{name:5}  {fast:9.3}  {slow:9.3}  {:.2}  {same}", slow / fast));
        }
    }
    Ok(())
}
