//! Builds the release archive: programs, manual pages, completions, licences of dependencies, a bill of materials, checksums.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::js;
use crate::process::{Job, note};
use crate::toolchain::tools;

const PROGRAMS: [&str; 3] = ["accountant", "dp-tokenizer", "trainer-native"];
/// Shells, each with the name of the file that it reads.
const SHELLS: [(&str, &str); 3] = [("bash", "{}.bash"), ("zsh", "_{}"), ("fish", "{}.fish")];
const FEATURES: [&str; 2] = ["--features", "trainer-native/parquet"];

/// The other target on which the programs must compile. Its linker is not everywhere, so its archive is built on such a machine.
const OTHER_TARGET: &str = "aarch64-unknown-linux-gnu";

/// Writes `<target>/dist/private-lm-VERSION-TARGET.tar.gz` and its checksum, runs the programs of the unpacked archive, adds the npm
/// packages, and checks the programs for another processor.
pub fn run(root: &Path) -> Result<bool> {
    let metadata = Job::cargo(root).args(["metadata", "--format-version", "1", "--locked"]).output()?;
    let metadata: Value = serde_json::from_str(&metadata).context("reading the workspace's metadata")?;
    let version = version_of(&metadata, "trainer-native").context("the workspace lacks trainer-native")?;
    let packages = PROGRAMS.iter().flat_map(|program| ["--package", program]);
    Job::cargo(root).args(["build", "--release", "--locked"]).args(packages).args(FEATURES).run()?;
    // `[package.metadata.binstall]` of the programs has the same name.
    let name = format!("private-lm-{version}-{}", host(root)?);
    let out = tools::target_dir(root).join("dist");
    let folder = out.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    programs(root, &folder)?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
        copy(&root.join(file), &folder.join(file))?;
    }
    let dependencies = dependencies(root, &metadata)?;
    licences(&dependencies, &folder)?;
    write(&folder.join("sbom.cdx.json"), &format!("{:#}\n", bill(&dependencies, &version)))?;
    let archive = out.join(format!("{name}.tar.gz"));
    Job::new("tar", &out).args(["czf".as_ref(), archive.as_os_str(), name.as_ref()]).run()?;
    write_sum(&archive)?;
    check(&archive, &name, &out)?;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        check_binstall(package, &name, &folder)?;
    }
    for tarball in js::pack_all(root)? {
        let copied = out.join(tarball.file_name().unwrap_or_default());
        copy(&tarball, &copied)?;
        write_sum(&copied)?;
    }
    compiles_for_other_target(root)?;
    note(&format!("{} ({:.1} MB)", archive.display(), fs::metadata(&archive)?.len() as f64 / 1e6));
    Ok(true)
}

/// Returns the target of the compiler.
fn host(root: &Path) -> Result<String> {
    let said = Job::new("rustc", root).args(["--version", "--verbose"]).output()?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned);
    host.context("rustc states no host")
}

/// Writes the SHA-256 of a file beside it, as `sha256sum --check` reads it.
fn write_sum(path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let sum: String = Sha256::digest(fs::read(path)?).iter().map(|byte| format!("{byte:02x}")).collect();
    write(&path.with_file_name(format!("{name}.sha256")), &format!("{sum}  {name}\n"))
}

fn compiles_for_other_target(root: &Path) -> Result<()> {
    Job::new("rustup", root).args(["target", "add", OTHER_TARGET]).run()?;
    let packages = PROGRAMS.iter().flat_map(|program| ["--package", program]);
    let check = ["check", "--release", "--locked", "--target", OTHER_TARGET];
    Job::cargo(root).args(check).args(packages).args(FEATURES).run()
}

fn version_of(metadata: &Value, package: &str) -> Option<String> {
    let mut packages = metadata["packages"].as_array()?.iter();
    packages.find(|found| found["name"] == package)?["version"].as_str().map(str::to_owned)
}

/// Adds the programs, and the files that they write about themselves.
fn programs(root: &Path, folder: &Path) -> Result<()> {
    for program in PROGRAMS {
        let path = folder.join("bin").join(program);
        copy(&tools::target_dir(root).join("release").join(program), &path)?;
        Job::new(&path, root).args(["man".as_ref(), folder.join("share/man/man1").as_os_str()]).run()?;
        for (shell, file) in SHELLS {
            let script = Job::new(&path, root).args(["completions", shell]).output()?;
            write(&folder.join("share/completions").join(shell).join(file.replace("{}", program)), &script)?;
        }
    }
    Ok(())
}

/// A crate that the programs contain.
struct Dependency {
    version: String,
    licence: String,
    folder: PathBuf,
}

/// Returns the third-party crates that the programs contain, by name and version.
fn dependencies(root: &Path, metadata: &Value) -> Result<BTreeMap<(String, String), Dependency>> {
    let packages = PROGRAMS.iter().flat_map(|program| ["--package", program]);
    let tree = Job::cargo(root)
        .args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(packages)
        .args(FEATURES)
        .output()?;
    let mut found = BTreeMap::new();
    for line in tree.lines() {
        let mut words = line.split(' ');
        let (Some(name), Some(version)) =
            (words.next(), words.next().and_then(|word| word.strip_prefix('v')))
        else {
            continue;
        };
        let known = metadata["packages"].as_array().into_iter().flatten();
        let mut same = known.filter(|package| package["name"] == name && package["version"] == version);
        let Some(package) = same.next().filter(|package| !package["source"].is_null()) else { continue };
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let dependency = Dependency {
            version: version.to_owned(),
            licence: package["license"].as_str().unwrap_or("see its licence file").to_owned(),
            folder: manifest.parent().unwrap_or(root).to_owned(),
        };
        found.insert((name.to_owned(), version.to_owned()), dependency);
    }
    ensure!(!found.is_empty(), "cargo tree lists no dependency");
    Ok(found)
}

/// Writes the licence of each dependency, and the files that state it.
fn licences(dependencies: &BTreeMap<(String, String), Dependency>, folder: &Path) -> Result<()> {
    let mut table =
        "# Licences of the crates in these programs\n\n| crate | licence |\n|---|---|\n".to_owned();
    for ((name, _), Dependency { version, licence, folder: source }) in dependencies {
        table.push_str(&format!("| {name} {version} | {licence} |\n"));
        for entry in fs::read_dir(source).with_context(|| format!("reading {}", source.display()))? {
            let path = entry?.path();
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let states = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
                .iter()
                .any(|word| file.to_uppercase().starts_with(word));
            if states && path.is_file() {
                copy(&path, &folder.join("licences").join(format!("{name}-{version}")).join(file))?;
            }
        }
    }
    write(&folder.join("THIRD-PARTY.md"), &table)
}

/// Returns a CycloneDX bill of materials.
fn bill(dependencies: &BTreeMap<(String, String), Dependency>, version: &str) -> Value {
    let component = |((name, _), dependency): (&(String, String), &Dependency)| {
        let Dependency { version, licence, .. } = dependency;
        json!({
            "type": "library", "name": name, "version": version, "purl": format!("pkg:cargo/{name}@{version}"),
            "licenses": [{ "expression": licence.replace('/', " OR ") }],
        })
    };
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": { "type": "application", "name": "private-lm", "version": version } },
        "components": dependencies.iter().map(component).collect::<Vec<_>>(),
    })
}

/// Checks that `cargo binstall`, where a crate has settings for it, finds the archive and the programs in it.
fn check_binstall(package: &Value, name: &str, folder: &Path) -> Result<()> {
    let settings = &package["metadata"]["binstall"];
    let (Some(url), Some(bin)) = (settings["pkg-url"].as_str(), settings["bin-dir"].as_str()) else {
        return Ok(());
    };
    let krate = package["name"].as_str().unwrap_or_default();
    let version = package["version"].as_str().unwrap_or_default();
    let target = name.rsplit_once(&format!("-{version}-")).map_or("", |(_, target)| target);
    let filled = |text: &str| {
        let of =
            [("{ version }", version), ("{ target }", target), ("{ bin }", krate), ("{ binary-ext }", "")];
        of.iter().fold(text.to_owned(), |text, (variable, value)| text.replace(variable, value))
    };
    let asked = filled(url.rsplit('/').next().unwrap_or_default());
    ensure!(
        asked == format!("{name}.tar.gz"),
        "{krate}: cargo binstall would ask for {asked}, not {name}.tar.gz"
    );
    let program = folder.with_file_name(filled(bin));
    ensure!(program.is_file(), "{krate}: cargo binstall would look for {}", program.display());
    Ok(())
}

/// Unpacks the archive elsewhere and runs its programs.
fn check(archive: &Path, name: &str, out: &Path) -> Result<()> {
    let folder = out.join("unpacked");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Job::new("tar", &folder).args(["xzf".as_ref(), archive.as_os_str()]).run()?;
    Job::new("sha256sum", out).args(["--check", &format!("{name}.tar.gz.sha256")]).run()?;
    for program in PROGRAMS {
        let shown =
            Job::new(folder.join(name).join("bin").join(program), &folder).args(["--version"]).output()?;
        ensure!(shown.starts_with(program), "{program} --version shows {shown}");
        let page = folder.join(name).join(format!("share/man/man1/{program}.1"));
        ensure!(page.is_file(), "{} is missing", page.display());
    }
    fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    fs::copy(from, to).map(drop).with_context(|| format!("copying {}", from.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
