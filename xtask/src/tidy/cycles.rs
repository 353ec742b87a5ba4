//! Forbids cycles among the top-level modules of a crate.
//!
//! A module depends on each top-level module that its shipped code names by `crate::` or by a
//! `super::` path that ends at the crate's root. Names that the root re-exports count as the root,
//! which is no module. Parents and children of one top-level module are not compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::source::Source;

/// The top-level modules of a crate, each with the modules it names.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The cycles in all crates, given each file's path from the root of the tree and its text.
pub fn check<'a>(files: impl Iterator<Item = (&'a Path, &'a str)>) -> Vec<String> {
    let mut crates: BTreeMap<String, Graph> = BTreeMap::new();
    for (path, text) in files {
        let Some(place) = Place::of(path) else { continue };
        let named = names(&Source::new(text).shipped_code(), place.depth);
        crates.entry(place.krate).or_default().entry(place.module).or_default().extend(named);
    }
    let mut findings = Vec::new();
    for (name, mut graph) in crates {
        let modules: BTreeSet<String> = graph.keys().cloned().collect();
        for (module, used) in &mut graph {
            used.retain(|other| other != module && modules.contains(other));
        }
        for cycle in cycles(&graph) {
            findings.push(format!("{name}: these modules depend on one another: {}", cycle.join(", ")));
        }
    }
    findings
}

/// A source file's crate, its top-level module, and its depth below the crate's root.
struct Place {
    krate: String,
    module: String,
    depth: usize,
}

impl Place {
    /// `None` for roots, for tests, and for what is not a crate's source.
    fn of(path: &Path) -> Option<Self> {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let src = parts.iter().position(|part| *part == "src")?;
        let mut modules: Vec<&str> = parts[src + 1..].to_vec();
        let last = modules.pop()?.strip_suffix(".rs")?;
        if last != "mod" {
            modules.push(last);
        }
        let is_test = modules.iter().any(|module| *module == "tests" || module.ends_with("_tests"));
        let module = *modules.first()?;
        if is_test || ["lib", "main", "bin"].contains(&module) {
            return None;
        }
        Some(Self { krate: parts[..src].join("/"), module: module.to_owned(), depth: modules.len() })
    }
}

/// Returns the names directly below the crate's root that code at this depth uses.
fn names(code: &str, depth: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let supers = "super::".repeat(depth);
    for prefix in ["crate::", supers.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                continue;
            }
            first_segments(&code[at + prefix.len()..], &mut found);
        }
    }
    found
}

/// The first segment of a path, or of each path in a group.
fn first_segments(rest: &str, found: &mut BTreeSet<String>) {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = rest.strip_prefix('{') else {
        found.insert(word(rest));
        return;
    };
    let (mut depth, mut begins) = (1, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => begins = true,
            c if begins && !c.is_whitespace() => {
                found.insert(word(&group[at..]));
                begins = false;
            }
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

/// Groups of modules that reach one another, each in alphabetical order.
fn cycles(graph: &Graph) -> Vec<Vec<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (module.as_str(), reachable(graph, module))).collect();
    let mut groups = BTreeSet::new();
    for (module, reached) in &reach {
        if reached.contains(module) {
            let group = reached.iter().filter(|other| reach[**other].contains(module)).copied();
            groups.insert(group.collect::<Vec<_>>());
        }
    }
    groups.into_iter().collect()
}

fn reachable<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for other in graph.get(module).into_iter().flatten() {
            if reached.insert(other.as_str()) {
                open.push(other);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        check(files.iter().map(|(path, text)| (Path::new(*path), *text)))
    }

    #[test]
    fn a_cycle_is_found_however_its_paths_are_written() {
        let found = findings(&[
            ("a/src/lib.rs", "mod one; mod two; mod three;"),
            ("a/src/one/mod.rs", "use crate::{Error, two::{Deep, Deeper}};"),
            ("a/src/two.rs", "use super::three::X;"),
            ("a/src/three/inner.rs", "fn f() { super::super::one::g() }"),
        ]);
        assert_eq!(found, ["a: these modules depend on one another: one, three, two"]);
    }

    #[test]
    fn tests_comments_and_children_make_no_cycle() {
        let found = findings(&[
            (
                "a/src/one/mod.rs",
                "use crate::two; // crate::one\n#[cfg(test)]\nmod tests { use crate::three; }",
            ),
            ("a/src/one/part.rs", "use super::Whole;"),
            ("a/src/two.rs", "const TEXT: &str = \"crate::one\";\n#[cfg(test)]\nuse crate::one::X;"),
            ("a/src/three/tests.rs", "use crate::one;"),
            ("a/src/three/mod.rs", "use crate::one;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
