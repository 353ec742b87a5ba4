//! Invariants of the tree that a program can check.

mod law;
mod rules;
mod source;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process::{Job, note};
use rules::Finding;
use source::Source;

/// Checks every file git knows or would add; prints each finding; false when there is one.
pub fn run(root: &Path) -> Result<bool> {
    let mut findings = law::check(root)?;
    let files = files(root)?;
    for file in &files {
        let path = root.join(file);
        // A file deleted but not yet committed is still listed.
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        for (line, what) in check_file(file, &text) {
            findings.push(format!("{}:{line}: {what}", file.display()));
        }
    }
    for finding in &findings {
        note(finding);
    }
    note(&format!("tidy: {} files, {} findings", files.len(), findings.len()));
    Ok(findings.is_empty())
}

fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let listed = Job::new("git", root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("listing the tree's files; tidy needs git and a clone")?;
    Ok(listed.lines().map(PathBuf::from).collect())
}

/// All that is wrong with one file.
fn check_file(file: &Path, text: &str) -> Vec<Finding> {
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let name = file.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    if name == "Cargo.lock" || name.starts_with("LICENSE") {
        return Vec::new();
    }
    let mut findings = rules::places(text);
    if let Some(fault) = file.file_stem().and_then(|stem| stem.to_str()).and_then(rules::name_fault) {
        findings.push((1, fault));
    }
    match extension {
        "rs" => findings.extend(check_rust(file, text)),
        "md" | "html" | "css" | "mjs" | "js" | "toml" | "sh" => {
            findings.extend(rules::reminders(text));
            findings.extend(rules::file_length(text));
        }
        _ => {}
    }
    findings
}

fn check_rust(file: &Path, text: &str) -> Vec<Finding> {
    let source = Source::new(text);
    let mut findings = rules::file_length(text);
    findings.extend(rules::function_length(&source));
    findings.extend(rules::names(&source));
    findings.extend(rules::leftovers(&source));
    if file.starts_with("accountant/src") || file.starts_with("plan/src") {
        findings.extend(rules::platform_math(&source));
    }
    if file.starts_with("web/src") {
        findings.extend(rules::privacy_arithmetic(&source));
    }
    findings
}
