//! Fills in the service worker: the names of the built page's files, and a stamp that changes with any of them.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

/// Prefixes of the files that are fetched when the page is idle. All other files are needed for the first view.
const FETCHED_WHEN_IDLE: [&str; 3] = ["expert", "parquet", "vocabulary"];
/// The service worker itself, which the browser manages. It is filled in as it is written.
pub const SERVICE_WORKER: &str = "sw.js";

/// Writes names and stamp into the service worker of the folder.
pub fn run(folder: &Path) -> Result<()> {
    let mut names = Vec::new();
    let mut sum = Sha256::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name != SERVICE_WORKER {
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
    let path = folder.join(SERVICE_WORKER);
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    std::fs::write(&path, filled(&text, &names, &stamp)?)
        .with_context(|| format!("writing {}", path.display()))
}

fn filled(text: &str, names: &[String], stamp: &str) -> Result<String> {
    let (idle, first): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| FETCHED_WHEN_IDLE.iter().any(|prefix| name.starts_with(prefix)));
    let list =
        |names: Vec<&String>| names.iter().map(|name| format!("'./{name}'")).collect::<Vec<_>>().join(", ");
    // The browser requests the page by its folder.
    let first = format!("'./', {}", list(first));
    let mut filled = text.to_owned();
    for (place, value) in [("/*FIRST*/", first), ("/*REST*/", list(idle)), ("/*STAMP*/", stamp.to_owned())] {
        ensure!(
            filled.matches(place).count() == 1,
            "{SERVICE_WORKER} must contain {place} exactly once, so that the build can replace it"
        );
        filled = filled.replace(place, &value);
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_for_the_first_view_and_files_for_idle_time_are_listed_separately() {
        let names = ["index.html", "vocabulary_bg.wasm", "worker.js"].map(str::to_owned);
        let text = filled("[/*FIRST*/] [/*REST*/] /*STAMP*/", &names, "ab").unwrap();
        assert_eq!(text, "['./', './index.html', './worker.js'] ['./vocabulary_bg.wasm'] ab");
        assert!(filled("[/*FIRST*/]", &names, "ab").is_err(), "a worker without placeholders is refused");
    }
}
