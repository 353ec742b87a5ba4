//! Checks which crate of the workspace depends on which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::Job;

/// The page whose table of crates says what each may use.
const TABLE: &str = "ARCHITECTURE.md";

/// The only member that may depend on the tensor library.
const TENSOR_MEMBER: &str = "network";

/// Checks every dependency of the workspace, including those of build scripts and tests.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let text = Job::cargo(root)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .context("reading the workspace's metadata")?;
    let metadata: Value = serde_json::from_str(&text).context("reading the workspace's metadata")?;
    let page = std::fs::read_to_string(root.join(TABLE)).with_context(|| format!("reading {TABLE}"))?;
    Ok(faults(&metadata, &allowed(&page)))
}

/// Returns each member of the workspace and the members that it may depend on, from the rows of the table.
fn allowed(page: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let section = page.split("\n## ").find(|section| section.starts_with("Crates")).unwrap_or_default();
    let mut allowed = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = row.split('|').skip(1);
        let (members, used) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        for member in quoted(members) {
            allowed.insert(member, quoted(used).collect());
        }
    }
    allowed
}

/// Returns the names in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Finds forbidden dependencies in the output of `cargo metadata`.
fn faults(metadata: &Value, allowed: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let mut faults = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(may_use) = allowed.get(name) else {
            faults.push(format!("`{name}` has no row in the table of crates in {TABLE}; add one"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            if allowed.contains_key(used) && used != name && !may_use.contains(used) {
                faults.push(format!("`{name}` depends on `{used}`; {TABLE} allows: {may_use:?}"));
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

    const PAGE: &str = "# A\n\n## Crates\n\n| crate | may use | content |\n|---|---|---|\n| `accountant` | – | bounds |\n\
        | `plan` | `accountant` | plans for `network` |\n| `network` | `plan` | models |\n| `tests`, `xtask` | – | tasks |\n\n\
        ## Other\n\n| `stray` | – | no crate |\n";

    fn package(name: &str, uses: &[&str]) -> Value {
        let dependencies: Vec<Value> = uses.iter().map(|used| json!({ "name": used })).collect();
        json!({ "name": name, "dependencies": dependencies })
    }

    #[test]
    fn allowed_dependencies_pass() {
        let metadata = json!({ "packages": [
            package("accountant", &["libm"]),
            package("network", &["plan", "burn-tensor"]),
        ]});
        assert_eq!(faults(&metadata, &allowed(PAGE)), Vec::<String>::new());
    }

    #[test]
    fn each_forbidden_dependency_is_named() {
        for (name, used) in [
            ("accountant", "plan"),
            ("plan", "network"),
            ("network", "tests"),
            ("xtask", "plan"),
            ("plan", "burn-tensor"),
            ("stray", "libm"),
        ] {
            let found = faults(&json!({ "packages": [package(name, &[used])] }), &allowed(PAGE));
            assert_eq!(found.len(), 1, "{name} → {used}: {found:?}");
            assert!(found[0].contains(name));
        }
    }
}
