//! Tells which files of a folder a verification covers, and which it does not cover.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::RunError;

/// Names of verified files below a folder, each with `/` between its parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeSet<String>);

impl Coverage {
    pub fn add(&mut self, name: impl Into<String>) {
        self.0.insert(name.into());
    }

    /// Adds the covered files of a folder below this one.
    pub(crate) fn add_below(&mut self, folder: &str, below: &Self) {
        self.0.extend(below.0.iter().map(|name| format!("{folder}/{name}")));
    }

    /// Returns all other files below the folder, in order. A link to a folder counts as a file, and
    /// its target is not covered. The empty lock file is left out.
    ///
    /// # Errors
    /// [`RunError::Storage`] if a folder cannot be read.
    pub fn others(&self, folder: &Path) -> Result<Vec<String>, RunError> {
        let mut others = BTreeSet::new();
        let mut open = vec![PathBuf::new()];
        while let Some(below) = open.pop() {
            let path = folder.join(&below);
            let unreadable = |error| RunError::storage("read", &path, &error);
            for entry in std::fs::read_dir(&path).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let found = entry.metadata().map_err(unreadable)?;
                let place = below.join(entry.file_name());
                if found.is_dir() {
                    open.push(place);
                    continue;
                }
                let parts: Vec<_> = place.iter().map(|part| part.to_string_lossy()).collect();
                let name = parts.join("/");
                let is_lock = found.is_file() && found.len() == 0 && entry.file_name() == ".lock";
                // A run writes no file whose name is not UTF-8.
                if !is_lock && (place.to_str().is_none() || !self.0.contains(&name)) {
                    others.insert(name);
                }
            }
        }
        Ok(others.into_iter().collect())
    }
}

/// Lists files for which there is no digest, for readers: as many as they are likely to read, each
/// on one line.
pub(crate) fn listing(not_covered: &[String]) -> String {
    const MAX_LISTED: usize = 40;
    let line = |name: &String| format!("\n- not covered by any digest: {}", name.escape_debug());
    let mut text: String = not_covered.iter().take(MAX_LISTED).map(line).collect();
    if not_covered.len() > MAX_LISTED {
        text.push_str(&format!(
            "\n- and {} more files that no digest covers",
            not_covered.len() - MAX_LISTED
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_below_a_folder_is_covered_or_named() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b/a", "b/c/d", ".lock", "b/.lock", ".hidden"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, if name == "b/.lock" { "x" } else { "" }).unwrap();
        }
        let (mut inner, mut coverage) = (Coverage::default(), Coverage::default());
        inner.add("a");
        coverage.add_below("b", &inner);
        assert_eq!(coverage.others(folder.path()).unwrap(), [".hidden", "a", "b/.lock", "b/c/d"]);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.path(), folder.path().join("b/loop")).unwrap();
            assert_eq!(coverage.others(folder.path()).unwrap().len(), 5);
        }
    }

    #[test]
    fn a_listing_is_short_and_has_no_control_characters() {
        let names: Vec<String> = (0..1000).map(|place| format!("{place}\u{1b}[2J\nverified")).collect();
        let text = listing(&names);
        assert_eq!(text.lines().count(), 42, "an empty first line, 40 files and the rest");
        assert!(text.ends_with("and 960 more files that no digest covers") && !text.contains('\u{1b}'));
    }
}
