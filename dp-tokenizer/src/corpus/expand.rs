//! Expands `*`, `?` and `**` in file names, for shells that do not.

use std::path::PathBuf;

use glob::{MatchOptions, glob_with};

use super::CorpusError;

/// The rules of matching: as in shells, wildcards match neither a separator nor hidden files.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Replaces each name with wildcards by the matching files, in the order of their names. `*` and `?` match any part and any
/// single character of a name, `**` any number of folders. A name that is an existing file stands for itself.
///
/// # Errors
/// [`CorpusError::Unreadable`] for a pattern that no file matches.
pub fn expand(patterns: &[PathBuf]) -> Result<Vec<PathBuf>, CorpusError> {
    let mut paths = Vec::new();
    for pattern in patterns {
        let text = pattern.to_string_lossy();
        if !text.contains(['*', '?']) || pattern.exists() {
            paths.push(pattern.clone());
            continue;
        }
        let unreadable = |reason: String| CorpusError::Unreadable { path: pattern.clone(), reason };
        // A bracket stands for itself.
        let found =
            glob_with(&text.replace('[', "[[]"), OPTIONS).map_err(|error| unreadable(error.to_string()))?;
        // A folder that cannot be read has no matches.
        let mut found: Vec<PathBuf> = found.flatten().filter(|path| path.is_file()).collect();
        if found.is_empty() {
            return Err(unreadable("no file has such a name".to_owned()));
        }
        found.sort_unstable();
        paths.append(&mut found);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_in_order_and_a_pattern_without_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("x/y")).unwrap();
        for name in ["b1.txt", "a1.txt", "a10.txt", ".a9.txt", "x/a2.txt", "x/y/a3.txt", "x/y/c.jsonl"] {
            std::fs::write(at(name), "x").unwrap();
        }
        let got = |pattern: &str| {
            let all = expand(&[at(pattern)]).unwrap_or_default();
            let names =
                all.iter().map(|p| p.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(got("a*.txt"), ["a1.txt", "a10.txt"]);
        assert_eq!(got("?1.txt"), ["a1.txt", "b1.txt"]);
        assert_eq!(got("*/*.txt"), ["x/a2.txt"]);
        assert_eq!(got("**/a?.txt"), ["a1.txt", "x/a2.txt", "x/y/a3.txt"]);
        assert_eq!(got("x/**/c*"), ["x/y/c.jsonl"]);
        assert!(got("z*").is_empty());
        std::fs::write(at("q*.txt"), "x").unwrap();
        std::fs::write(at("qq.txt"), "x").unwrap();
        assert_eq!(got("q*.txt"), ["q*.txt"], "the very name");
        assert_eq!(expand(&[PathBuf::from("-"), at("gone.txt")]).unwrap().len(), 2);
    }

    #[test]
    fn many_stars_take_no_longer_than_one() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("a".repeat(250));
        std::fs::write(&name, "x").unwrap();
        let stars = "*a".repeat(30);
        assert_eq!(expand(&[folder.path().join(&stars)]).unwrap(), [name]);
        assert!(expand(&[folder.path().join(stars + "b")]).is_err());
    }

    #[test]
    fn brackets_stand_for_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let [named, other] = ["[ab].txt", "a.txt"].map(|name| folder.path().join(name));
        std::fs::write(&named, "x").unwrap();
        std::fs::write(other, "x").unwrap();
        assert_eq!(expand(&[folder.path().join("[ab]*")]).unwrap(), [named]);
    }
}
