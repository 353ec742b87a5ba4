//! Checks that every public function shows a figure, in a doctest that can fail.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn every_public_function_has_a_doctest_with_a_number() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    files(&source, &mut found);
    let mut functions = 0;
    // The command line has no doctests, and what JavaScript calls is tested by JavaScript.
    for path in found
        .iter()
        .filter(|path| !path.starts_with(source.join("bin")) && !path.starts_with(source.join("js")))
    {
        let text = std::fs::read_to_string(path).unwrap();
        let mut doc = String::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with("///") || line.starts_with("#[") {
                doc.push_str(line);
                continue;
            }
            if line.starts_with("pub fn") || line.starts_with("pub const fn") {
                functions += 1;
                let example = doc.split("```").nth(1).unwrap_or_default();
                let shows =
                    example.contains("assert") && example.chars().any(|letter| letter.is_ascii_digit());
                assert!(shows, "{}: {line} has no doctest with a number", path.display());
            }
            doc.clear();
        }
    }
    assert!(functions > 20, "only {functions} public functions were looked at");
}
