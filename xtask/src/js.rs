//! Builds the JavaScript packages of the accountant and the tokenizer, tests them in Node and Chromium, and measures the
//! accountant.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{Job, note};
use crate::toolchain::{browser, tools, wasm};

/// A crate with exports for JavaScript.
struct Package {
    /// The crate. Its folder `js` holds the files of the package itself.
    krate: &'static str,
    /// The library's file name, without extension.
    library: &'static str,
}

const ACCOUNTANT: Package = Package { krate: "accountant", library: "accountant" };
const TOKENIZER: Package = Package { krate: "dp-tokenizer", library: "dp_tokenizer" };

/// Files of the crate's folder `js` that are copied into the package.
const COPIED: [&str; 4] = ["package.json", "README.md", "example.mjs", "example.html"];

/// Builds and packs the packages, tests them in Node and in headless Chromium, and compares their TypeScript declarations with
/// the checked-in ones.
pub fn run(root: &Path) -> Result<bool> {
    let package = build(root, &ACCOUNTANT)?;
    for engine in engines(root)? {
        engine.run(&package, &[])?.run()?;
    }
    pack(root, &package)?;
    Ok(declarations_match(root, &package, &ACCOUNTANT)? & tokenizer(root)?)
}

/// Builds and packs the packages, and returns the files.
pub fn pack_all(root: &Path) -> Result<Vec<PathBuf>> {
    [ACCOUNTANT, TOKENIZER].iter().map(|package| pack(root, &build(root, package)?)).collect()
}

/// Builds, packs and tests the tokenizer's package.
fn tokenizer(root: &Path) -> Result<bool> {
    let package = build(root, &TOKENIZER)?;
    let tarball = pack(root, &package)?;
    let (scripts, fixtures) = (root.join("dp-tokenizer/js"), root.join("tokenizer/tests/fixtures"));
    let node = Job::new("node", &package).args([scripts.join("node.mjs")]);
    node.args([&package, &tarball, &fixtures]).run()?;
    let chromium = browser::find_or_install(root)?.chromium;
    let page = Job::new("node", &package).args([scripts.join("chromium.mjs")]);
    page.args([&package, &fixtures, &chromium, &root.join("web/e2e")]).run()?;
    declarations_match(root, &package, &TOKENIZER)
}

/// Packs a package for `npm install`, and returns the file.
fn pack(root: &Path, package: &Path) -> Result<PathBuf> {
    let out = tools::target_dir(root).join("npm");
    std::fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    let packed = ["pack", "--offline", "--silent", "--pack-destination"];
    let name = Job::new("npm", package).args(packed).args([&out]).output()?;
    Ok(out.join(name.trim()))
}

/// Builds a package and returns its folder, `<target>/<crate>-js`.
fn build(root: &Path, Package { krate, library }: &Package) -> Result<PathBuf> {
    tools::Tool::wasm_bindgen(root)?.find_or_install(root)?;
    let mode = wasm::find_or_install(root)?;
    wasm::job("cargo", root, root, &mode)?
        .args(["rustc", "--lib", "--crate-type", "cdylib", "--release", "--target", wasm::TARGET])
        .args(["--package", krate, "--no-default-features", "--features", "js"])
        .run()?;
    let module = wasm::target_dir(root).join(wasm::TARGET).join(format!("release/{library}.wasm"));
    let package = tools::target_dir(root).join(format!("{krate}-js"));
    for (target, folder) in [("nodejs", "node"), ("web", "web")] {
        wasm::job("wasm-bindgen", root, root, &mode)?
            .args([module.as_os_str(), "--target".as_ref(), target.as_ref(), "--out-dir".as_ref()])
            .args([package.join(folder)])
            .run()?;
    }
    for name in COPIED {
        let from = root.join(krate).join("js").join(name);
        std::fs::copy(&from, package.join(name)).with_context(|| format!("copying {}", from.display()))?;
    }
    Ok(package)
}

/// A JavaScript engine: a script that runs the package, and the arguments after the package's folder.
struct Engine {
    name: &'static str,
    script: PathBuf,
    arguments: Vec<PathBuf>,
}

impl Engine {
    fn run(&self, package: &Path, command: &[&str]) -> Result<Job> {
        let job = Job::new("node", package).args([&self.script]).args([package]);
        Ok(job.args(&self.arguments).args(command))
    }
}

/// Returns Node and Chromium.
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

/// Returns whether the built declarations consist of the checked-in types and functions.
fn declarations_match(root: &Path, package: &Path, Package { krate, library }: &Package) -> Result<bool> {
    let read =
        |path: &Path| std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()));
    let folder = root.join(krate).join("js");
    let (types, checked_in) = (read(&folder.join("types.d.ts"))?, folder.join("functions.d.ts"));
    let built = read(&package.join(format!("node/{library}.d.ts")))?;
    let functions = without(&built, &types)
        .with_context(|| format!("the built declarations lack {krate}/js/types.d.ts"))?;
    let same = checked_in.is_file() && read(&checked_in)? == functions;
    if !same {
        let path = package.join("functions.d.ts");
        std::fs::write(&path, functions).with_context(|| format!("writing {}", path.display()))?;
        note(&format!("{} is out of date; copy {} over it", checked_in.display(), path.display()));
    }
    Ok(same)
}

/// Returns the text without the lines of one part of it and without the blank lines around them. wasm-bindgen changes
/// the indentation of the part.
fn without(text: &str, part: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let part: Vec<&str> = part.trim().lines().map(str::trim_start).collect();
    let is_part = |found: &[&str]| found.iter().zip(&part).all(|(line, wanted)| line.trim_start() == *wanted);
    let at = lines.windows(part.len()).position(is_part)?;
    let (before, after) = (lines[..at].join("\n"), lines[at + part.len()..].join("\n"));
    Some(format!("{}\n\n{}\n", before.trim_end(), after.trim()))
}

/// Times queries in Node and Chromium. `native` holds the queries and their native times, one JSON object per line.
pub fn measure(root: &Path, native: &Path) -> Result<()> {
    let package = build(root, &ACCOUNTANT)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_removed_with_the_blank_lines_around_it() {
        for (built, part, rest) in [
            ("head\n\ntype A =\n| B;\n\n\nrest\n", "type A =\n  | B;\n", Some("head\n\nrest\n")),
            ("head\nA {\n    b\n}\nrest\n", "A {\n  b\n}\n", Some("head\n\nrest\n")),
            ("head\n", "type A", None),
        ] {
            assert_eq!(without(built, part).as_deref(), rest);
        }
    }
}
