//! Checks that paths in documentation lead to files that exist.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::File;

/// The file whose paths may be out of date, because it is history.
const HISTORY: &str = "CHANGELOG.md";

/// Checks every relative link of a Markdown file, and every path in backticks that starts with a
/// folder of the workspace. A path in backticks may be relative to the root, to the folder of the
/// file, or to a folder between them.
pub fn check(files: &[File]) -> Vec<String> {
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    for file in files {
        known.extend(file.path.ancestors().map(Path::to_path_buf));
    }
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.extension().is_some_and(|extension| extension == "md")) {
        if file.path == Path::new(HISTORY) {
            continue;
        }
        let folder = file.path.parent().unwrap_or(Path::new(""));
        for (number, line) in file.text.lines().enumerate() {
            let linked = links(line).filter(|link| !known.contains(&normal(&folder.join(link))));
            let found =
                |path: &&str| folder.ancestors().any(|base| known.contains(&normal(&base.join(path))));
            let quoted = quoted_paths(line, &known).filter(|path| !found(path));
            for path in linked.chain(quoted) {
                findings.push(format!("{}:{}: there is no {path}", file.path.display(), number + 1));
            }
        }
    }
    findings
}

/// Returns the targets of the relative links in a line, without anchors.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .map(|target| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains(':'))
}

/// Returns the paths in backticks that start with a folder of the root.
fn quoted_paths<'a>(line: &'a str, known: &BTreeSet<PathBuf>) -> impl Iterator<Item = &'a str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|text| {
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        plain && text.split_once('/').is_some_and(|(first, _)| known.contains(Path::new(first)))
    })
}

/// Returns the path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_quoted_paths_that_lead_nowhere_are_found() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.to_owned() };
        let text = "[good](b.md#top) [web](https://x/y) `a/src/lib.rs` `cargo run` `a/` `not/here`\n\
            [bad](c.md) `a/src/gone.rs` [up](../a/b.md)\n";
        let found = check(&[file("a/README.md", text), file("a/b.md", ""), file("a/src/lib.rs", "")]);
        assert_eq!(found, ["a/README.md:2: there is no c.md", "a/README.md:2: there is no a/src/gone.rs"]);
    }
}
