//! Expands `*`, `?` and `**` in file names, for shells that do not.

use std::path::{Component, Path, PathBuf};

use super::CorpusError;

/// Replaces each name with wildcards by the matching files, in the order of their names. `*` and `?` match any part and any
/// single character of a name, `**` any number of folders. A name that is an existing file stands for itself.
///
/// # Errors
/// [`CorpusError::Unreadable`] for a pattern that no file matches.
pub fn expand(patterns: &[PathBuf]) -> Result<Vec<PathBuf>, CorpusError> {
    let mut paths = Vec::new();
    for pattern in patterns {
        let is_pattern = pattern.to_string_lossy().contains(['*', '?']);
        if !is_pattern || pattern.exists() {
            paths.push(pattern.clone());
            continue;
        }
        let parts: Vec<String> = pattern
            .components()
            .filter(|part| !matches!(part, Component::CurDir))
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        let mut found = Vec::new();
        search(Path::new(""), &parts, &mut found);
        if found.is_empty() {
            let reason = "no file has such a name".to_owned();
            return Err(CorpusError::Unreadable { path: pattern.clone(), reason });
        }
        found.sort_unstable();
        found.dedup();
        paths.extend(found);
    }
    Ok(paths)
}

fn search(folder: &Path, parts: &[String], found: &mut Vec<PathBuf>) {
    let Some((part, rest)) = parts.split_first() else { return };
    if part == "**" {
        search(folder, rest, found);
        for (path, _) in entries(folder).into_iter().filter(|(path, _)| path.is_dir() && !path.is_symlink()) {
            search(&path, parts, found);
        }
    } else if !part.contains(['*', '?']) {
        let path = folder.join(part);
        if rest.is_empty() && path.is_file() {
            found.push(path);
        } else {
            search(&path, rest, found);
        }
    } else {
        let pattern: Vec<char> = part.chars().collect();
        for (path, name) in entries(folder) {
            // As in shells, wildcards do not match hidden files.
            let hidden = name.starts_with('.') && !part.starts_with('.');
            if hidden || !matches(&pattern, &name.chars().collect::<Vec<_>>()) {
                continue;
            }
            if rest.is_empty() && path.is_file() {
                found.push(path);
            } else if path.is_dir() {
                search(&path, rest, found);
            }
        }
    }
}

fn entries(folder: &Path) -> Vec<(PathBuf, String)> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // A folder that cannot be read has no matches.
    let entries = std::fs::read_dir(here).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (folder.join(entry.file_name()), name)
        })
        .collect()
}

/// Whether a name matches, in time proportional to pattern times name.
fn matches(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    // The position of the last star, and how much of the name it matches so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
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
        let (pattern, name): (Vec<char>, Vec<char>) =
            ("*a".repeat(30).chars().collect(), "a".repeat(5000).chars().collect());
        assert!(matches(&pattern, &name));
        assert!(!matches(&[pattern, vec!['b']].concat(), &name));
    }
}
