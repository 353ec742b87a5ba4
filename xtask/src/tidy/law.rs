//! The dependency law: who may use whom.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::Job;

/// A member of the workspace and the members it may depend on.
const LAW: [(&str, &[&str]); 9] = [
    ("accountant", &[]),
    ("chart", &[]),
    ("mechanisms", &["accountant"]),
    ("dp-tokenizer", &["accountant", "mechanisms"]),
    ("plan", &["accountant"]),
    ("trainer-native", &["accountant", "mechanisms", "dp-tokenizer", "plan", "chart"]),
    ("web", &["accountant", "plan", "dp-tokenizer", "chart"]),
    ("tests", &["accountant", "mechanisms", "dp-tokenizer", "plan", "trainer-native"]),
    ("xtask", &[]),
];

/// The one member that may use the tensor library.
const TENSOR_MEMBER: &str = "trainer-native";

/// Reads the workspace's metadata and judges every dependency, build and test ones included.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let text = Job::cargo(root)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .context("reading the workspace's metadata")?;
    let metadata: Value = serde_json::from_str(&text).context("reading the workspace's metadata")?;
    Ok(judge(&metadata))
}

/// The broken laws in `cargo metadata`'s answer.
fn judge(metadata: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = LAW.iter().find(|(member, _)| *member == name) else {
            broken.push(format!(
                "`{name}` is a member the dependency law does not know; add it to xtask's law"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            let member = LAW.iter().any(|(other, _)| *other == used);
            if member && used != name && !allowed.contains(&used) {
                broken.push(format!("`{name}` uses `{used}`; it may use {allowed:?}"));
            }
            if used.starts_with("burn") && name != TENSOR_MEMBER {
                broken.push(format!("`{name}` uses `{used}`; tensors live in `{TENSOR_MEMBER}` alone"));
            }
        }
    }
    broken
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
    fn lawful_dependencies_pass() {
        let lawful = json!({ "packages": [
            package("accountant", &["libm"]),
            package("trainer-native", &["plan", "burn-tensor"]),
        ]});
        assert!(judge(&lawful).is_empty());
    }

    #[test]
    fn each_way_to_break_the_law_is_named() {
        for (name, used) in [
            ("accountant", "mechanisms"),
            ("plan", "dp-tokenizer"),
            ("web", "trainer-native"),
            ("trainer-native", "tests"),
            ("xtask", "plan"),
            ("web", "burn-tensor"),
            ("stray", "libm"),
        ] {
            let broken = judge(&json!({ "packages": [package(name, &[used])] }));
            assert_eq!(broken.len(), 1, "{name} → {used}: {broken:?}");
            assert!(broken[0].contains(name));
        }
    }
}
