//! Checks invariants of the tree.

mod cycles;
mod dependency_rules;
mod names;
mod numerics;
mod paths;
mod privacy_index;
mod signatures;
mod sizes;
mod source;
#[cfg(test)]
mod tests;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process::{Job, note};
use source::Source;

/// A rule broken at a line of a file.
struct Finding {
    /// Line, from 1.
    line: usize,
    message: String,
}

impl Finding {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// Checks every file that git tracks or would add, and prints each finding. Returns false if there is one.
pub fn run(root: &Path) -> Result<bool> {
    let files = read_files(root)?;
    let mut findings = dependency_rules::check(root)?;
    findings.extend(privacy_index::check(&files));
    findings.extend(cycles::check(files.iter().map(|file| (file.path.as_path(), file.text.as_str()))));
    findings.extend(paths::check(&files));
    for File { path, text } in &files {
        for Finding { line, message } in check_file(path, text) {
            findings.push(format!("{}:{line}: {message}", path.display()));
        }
    }
    for finding in &findings {
        note(finding);
    }
    note(&format!("tidy: {} files, {} findings", files.len(), findings.len()));
    Ok(findings.is_empty())
}

/// A file of the tree.
struct File {
    /// Path relative to the root.
    path: PathBuf,
    /// The contents; empty if the file is not UTF-8.
    text: String,
}

fn read_files(root: &Path) -> Result<Vec<File>> {
    let listed = Job::new("git", root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("listing the files of the tree; tidy needs git and a clone")?;
    let mut files = Vec::new();
    for path in listed.lines().map(PathBuf::from) {
        // A deleted file is listed until the deletion is committed.
        if let Ok(bytes) = std::fs::read(root.join(&path)) {
            files.push(File { path, text: String::from_utf8(bytes).unwrap_or_default() });
        }
    }
    Ok(files)
}

/// Returns the findings of one file.
fn check_file(file: &Path, text: &str) -> Vec<Finding> {
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let name = file.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    if name == "Cargo.lock" || name.starts_with("LICENSE") {
        return Vec::new();
    }
    let mut findings = text::machine_paths(text);
    if let Some(fault) = file.file_stem().and_then(|stem| stem.to_str()).and_then(names::fault) {
        findings.push(Finding::new(1, fault));
    }
    match extension {
        "rs" => findings.extend(check_rust(file, text)),
        "md" | "html" | "css" | "mjs" | "js" | "toml" | "sh" => {
            findings.extend(text::reminders(text));
            findings.extend(sizes::file_length(text));
        }
        _ => {}
    }
    findings
}

fn check_rust(file: &Path, text: &str) -> Vec<Finding> {
    let source = Source::new(text);
    let mut findings = sizes::file_length(text);
    findings.extend(signatures::tuple_parameters(&source));
    findings.extend(names::empty(&source));
    findings.extend(text::leftovers(&source));
    if file.starts_with("accountant/src") || file.starts_with("plan/src") {
        findings.extend(numerics::platform_math(&source));
    }
    if file.starts_with("web/src") {
        findings.extend(numerics::privacy_arithmetic(&source));
    }
    findings
}
