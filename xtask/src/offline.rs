//! What the service worker keeps: the names of the built page's files, and a stamp that changes with any of them.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

/// The worker that looks at text is fetched when the page is idle; the rest is the first sight of the page.
const LATER: &str = "vocabulary";
/// The service worker itself, which the browser keeps.
const KEEPER: &str = "sw.js";

/// Writes names and stamp into the folder's service worker.
pub fn run(folder: &Path) -> Result<()> {
    let mut names = Vec::new();
    let mut sum = Sha256::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name != KEEPER {
            names.push(name);
        }
    }
    names.sort_unstable();
    for name in &names {
        let path = folder.join(name);
        sum.update(name.as_bytes());
        sum.update(std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?);
    }
    let stamp: String = sum.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(KEEPER);
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    std::fs::write(&path, filled(&text, &names, &stamp)?)
        .with_context(|| format!("writing {}", path.display()))
}

fn filled(text: &str, names: &[String], stamp: &str) -> Result<String> {
    let (rest, first): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| name.starts_with(LATER));
    let list =
        |names: Vec<&String>| names.iter().map(|name| format!("'./{name}'")).collect::<Vec<_>>().join(", ");
    // The page is asked for by its folder.
    let first = format!("'./', {}", list(first));
    let mut filled = text.to_owned();
    for (place, value) in [("/*FIRST*/", first), ("/*REST*/", list(rest)), ("/*STAMP*/", stamp.to_owned())] {
        ensure!(
            filled.matches(place).count() == 1,
            "{KEEPER} has to hold {place} once, so that it can be filled"
        );
        filled = filled.replace(place, &value);
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sight_and_the_rest_are_listed_apart() {
        let names = ["index.html", "vocabulary_bg.wasm", "worker.js"].map(str::to_owned);
        let text = filled("[/*FIRST*/] [/*REST*/] /*STAMP*/", &names, "ab").unwrap();
        assert_eq!(text, "['./', './index.html', './worker.js'] ['./vocabulary_bg.wasm'] ab");
        assert!(filled("[/*FIRST*/]", &names, "ab").is_err(), "a keeper without places is refused");
    }
}
