//! Checks which crates of the workspace each crate depends on.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::Job;

/// The members of the workspace, each with the members that it may depend on.
const ALLOWED: [(&str, &[&str]); 13] = [
    ("accountant", &["cli"]),
    ("chart", &[]),
    ("cli", &[]),
    ("mechanisms", &["accountant"]),
    ("tokenizer", &[]),
    ("dp-tokenizer", &["accountant", "mechanisms", "tokenizer", "cli"]),
    ("plan", &["accountant", "mechanisms"]),
    ("network", &["mechanisms", "plan"]),
    (
        "trainer-native",
        &["accountant", "mechanisms", "tokenizer", "dp-tokenizer", "plan", "network", "chart", "cli"],
    ),
    ("python", &["accountant", "tokenizer", "dp-tokenizer", "plan", "trainer-native"]),
    ("web", &["accountant", "plan", "dp-tokenizer", "chart"]),
    ("tests", &["accountant", "mechanisms", "dp-tokenizer", "plan", "trainer-native"]),
    ("xtask", &[]),
];

/// The only member that may depend on the tensor library.
const TENSOR_MEMBER: &str = "network";

/// Checks every dependency of the workspace, including those of build scripts and tests.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let text = Job::cargo(root)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .context("reading the workspace's metadata")?;
    let metadata: Value = serde_json::from_str(&text).context("reading the workspace's metadata")?;
    Ok(faults(&metadata))
}

/// The forbidden dependencies in the output of `cargo metadata`.
fn faults(metadata: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = ALLOWED.iter().find(|(member, _)| *member == name) else {
            faults.push(format!("`{name}` has no entry in xtask/src/tidy/dependency_rules.rs; add one"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            let member = ALLOWED.iter().any(|(other, _)| *other == used);
            if member && used != name && !allowed.contains(&used) {
                faults.push(format!("`{name}` depends on `{used}`; allowed: {allowed:?}"));
            }
            if used.starts_with("burn") && name != TENSOR_MEMBER {
                faults.push(format!("`{name}` depends on `{used}`; only `{TENSOR_MEMBER}` may use tensors"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, uses: &[&str]) -> Value {
        let dependencies: Vec<Value> = uses.iter().map(|used| json!({ "name": used })).collect();
        json!({ "name": name, "dependencies": dependencies })
    }

    #[test]
    fn allowed_dependencies_pass() {
        let allowed = json!({ "packages": [
            package("accountant", &["libm"]),
            package("network", &["plan", "burn-tensor"]),
        ]});
        assert!(faults(&allowed).is_empty());
    }

    #[test]
    fn each_forbidden_dependency_is_named() {
        for (name, used) in [
            ("accountant", "mechanisms"),
            ("plan", "dp-tokenizer"),
            ("web", "trainer-native"),
            ("trainer-native", "tests"),
            ("xtask", "plan"),
            ("web", "burn-tensor"),
            ("stray", "libm"),
        ] {
            let found = faults(&json!({ "packages": [package(name, &[used])] }));
            assert_eq!(found.len(), 1, "{name} → {used}: {found:?}");
            assert!(found[0].contains(name));
        }
    }
}
