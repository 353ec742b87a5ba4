//! Refuses circles of files: no file may use, directly or through others, a file that uses it.
//!
//! A file uses each file of its crate that defines a name in its shipped code. Names are followed through `use` and
//! re-exports, so that a re-export alone makes no dependency. A name that a folder's own file defines belongs to all
//! files of the folder, so using it makes no dependency either. Methods and macros are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source::{Source, is_word, tokens};

/// Finds the circles in all crates, given each file's path from the root of the tree and its text.
pub fn check<'a>(files: impl Iterator<Item = (&'a Path, &'a str)>) -> Vec<String> {
    let mut crates: BTreeMap<PathBuf, Crate> = BTreeMap::new();
    for (path, text) in files {
        let Some(place) = Place::of(path) else { continue };
        let modules = &mut crates.entry(place.root).or_default().modules;
        modules.entry(place.module).or_default().read(path, text);
    }
    let mut findings = Vec::new();
    for found in crates.values() {
        let graph = found.uses();
        for circle in circles(&graph) {
            findings.push(format!("these files depend on one another: {}", ties(&graph, &circle)));
        }
    }
    findings
}

/// Describes which file of a circle uses which, with a name that it takes.
fn ties(graph: &Graph, circle: &[&str]) -> String {
    let mut ties = Vec::new();
    for file in circle {
        let used = graph[*file].iter().filter(|(other, _)| circle.contains(&other.as_str()));
        ties.extend(used.map(|(other, name)| format!("{file} uses {other} ({name})")));
    }
    ties.join(", ")
}

/// The segments of a path, as written or from the root of a crate.
type Names = Vec<String>;

/// The crate and the module that a file defines.
struct Place {
    root: PathBuf,
    module: Names,
}

impl Place {
    /// Returns the place of a file, or `None` for tests and for files that are not a crate's source.
    fn of(path: &Path) -> Option<Self> {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let src = parts.iter().position(|part| *part == "src")?;
        let has_folder = parts.get(src + 1) == Some(&"bin") && parts.len() > src + 3;
        let root = src + if has_folder { 3 } else { 1 };
        let mut module = parts[root..].to_vec();
        let last = module.pop()?.strip_suffix(".rs")?;
        let is_root = module.is_empty() && ["lib", "main"].contains(&last);
        if last != "mod" && !is_root {
            module.push(last);
        }
        if module.iter().any(|name| *name == "tests" || name.ends_with("_tests")) {
            return None;
        }
        let module = module.into_iter().map(str::to_owned).collect();
        Some(Self { root: parts[..root].iter().collect(), module })
    }
}

/// The contents of a module's file. `lib.rs` and `main.rs` of one folder are read as one module.
#[derive(Default)]
struct Module {
    path: String,
    /// Names that the module defines.
    defined: BTreeSet<String>,
    /// Names that the module imports or re-exports, each with its path.
    imported: BTreeMap<String, Names>,
    /// Modules whose names are all imported or re-exported.
    globs: Vec<Names>,
    /// Paths that the code or an import names. A re-export names none.
    named: BTreeSet<Names>,
}

impl Module {
    fn read(&mut self, path: &Path, text: &str) {
        const DEFINES: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];
        let code = Source::new(text).shipped_code();
        let all: Vec<&str> = tokens(&code).into_iter().map(|(_, token)| token).collect();
        self.path = path.display().to_string();
        let mut at = 0;
        while at < all.len() {
            let before = at.checked_sub(1).map_or("", |at| all[at]);
            if all[at] == "use" {
                let is_private = !["pub", ")"].contains(&before);
                at = self.import(&all, at + 1, &[], is_private);
            } else if DEFINES.contains(&before) {
                self.defined.insert(all[at].to_owned());
                at += 1;
            } else if all[at].starts_with(is_word) && before != "." {
                let mut names = vec![all[at].to_owned()];
                at += 1;
                while let Some([":", ":", name]) =
                    all.get(at..at + 3).filter(|next| next[2].starts_with(is_word))
                {
                    names.push((*name).to_owned());
                    at += 3;
                }
                self.named.insert(names);
            } else {
                at += 1;
            }
        }
    }

    /// Reads the part of a `use` that begins at `at` and follows `prefix`. Returns the place after it.
    fn import(&mut self, all: &[&str], mut at: usize, prefix: &[String], is_private: bool) -> usize {
        let mut path = prefix.to_vec();
        loop {
            match all.get(at).copied().unwrap_or(";") {
                "{" => {
                    at += 1;
                    while all.get(at).is_some_and(|token| *token != "}") {
                        let end = self.import(all, at, &path, is_private);
                        // Anything that no `use` contains, such as `$` in a macro, is passed over.
                        at = if end == at || all.get(end) == Some(&",") { end + 1 } else { end };
                    }
                    return at + 1;
                }
                "*" => {
                    self.globs.push(path);
                    return at + 1;
                }
                ":" => at += 1,
                "as" => {
                    let name = all.get(at + 1).copied().unwrap_or_default();
                    self.add_import(name, path, is_private);
                    return at + 2;
                }
                word if word.starts_with(is_word) => {
                    if word != "self" || path.is_empty() {
                        path.push(word.to_owned());
                    }
                    at += 1;
                }
                _ => {
                    let name = path.last().cloned().unwrap_or_default();
                    self.add_import(&name, path, is_private);
                    return at;
                }
            }
        }
    }

    fn add_import(&mut self, name: &str, path: Names, is_private: bool) {
        if is_private {
            self.named.insert(path.clone());
        }
        self.imported.insert(name.to_owned(), path);
    }
}

/// Number of segments beyond which a path counts as unknown.
const MAX_SEGMENTS: usize = 16;

#[derive(Default)]
struct Crate {
    modules: BTreeMap<Names, Module>,
}

impl Crate {
    /// Returns each file with the files that it uses.
    fn uses(&self) -> Graph {
        let mut graph = Graph::new();
        for (module, content) in &self.modules {
            let used = graph.entry(content.path.clone()).or_default();
            for path in &content.named {
                let defining = self.definition(module, path, &mut BTreeSet::new());
                if let Some(other) = defining.filter(|other| !module.starts_with(other)) {
                    used.entry(self.modules[&other].path.clone()).or_insert_with(|| path.join("::"));
                }
            }
        }
        graph
    }

    /// Returns the module that defines what `path` names in `module`; `None` for modules and for
    /// names of other crates. `seen` has the paths that were followed, each in its module.
    fn definition(
        &self,
        module: &[String],
        path: &[String],
        seen: &mut BTreeSet<(Names, Names)>,
    ) -> Option<Names> {
        // A path may grow at each import of a name by its own name.
        if path.len() > MAX_SEGMENTS || !seen.insert((module.to_vec(), path.to_vec())) {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let (mut place, mut rest) = match first.as_str() {
            "crate" => (Names::new(), rest),
            "self" => (module.to_vec(), rest),
            _ => (module.to_vec(), path),
        };
        while rest.first().is_some_and(|name| name == "super") {
            place.pop()?;
            rest = &rest[1..];
        }
        while let Some((name, further)) = rest.split_first() {
            let child: Names = place.iter().chain([name]).cloned().collect();
            if self.modules.contains_key(&child) {
                (place, rest) = (child, further);
                continue;
            }
            let content = self.modules.get(&place)?;
            if content.defined.contains(name) {
                return Some(place);
            }
            if let Some(imported) = content.imported.get(name).filter(|imported| *imported != path) {
                let full: Names = imported.iter().chain(further).cloned().collect();
                return self.definition(&place, &full, seen);
            }
            return content.globs.iter().find_map(|glob| {
                let full: Names = glob.iter().chain([name]).cloned().collect();
                self.definition(&place, &full, seen)
            });
        }
        None
    }
}

/// Files, each with the files that it uses, and a name that it takes from each.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// Returns groups of files that reach one another, each in alphabetical order.
fn circles(graph: &Graph) -> BTreeSet<Vec<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|file| (file.as_str(), reachable(graph, file))).collect();
    let mut groups = BTreeSet::new();
    for (file, reached) in &reach {
        if reached.contains(file) {
            groups.insert(reached.iter().filter(|other| reach[**other].contains(file)).copied().collect());
        }
    }
    groups
}

fn reachable<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for other in graph.get(file).into_iter().flat_map(BTreeMap::keys) {
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
    fn a_circle_is_found_however_its_paths_are_written() {
        let found = findings(&[
            ("a/src/lib.rs", "mod one; mod two; mod three; pub use three::{Inner as Renamed, f};"),
            ("a/src/one/mod.rs", "use crate::{Error, two::{self, Deep}}; pub struct X;"),
            ("a/src/two.rs", "pub struct Deep; fn g() { crate::Renamed::new(); }"),
            ("a/src/three/mod.rs", "mod inner; pub use inner::*; pub fn f() {}"),
            ("a/src/three/inner.rs", "pub struct Inner; fn f() { super::super::one::X }"),
        ]);
        let circle = "a/src/one/mod.rs uses a/src/two.rs (crate::two::Deep), a/src/three/inner.rs uses a/src/one/mod.rs (super::super::one::X), \
            a/src/two.rs uses a/src/three/inner.rs (crate::Renamed::new)";
        assert_eq!(found, [format!("these files depend on one another: {circle}")]);
    }

    #[test]
    fn what_a_folder_defines_may_be_used_in_the_folder_alone() {
        let whole = ("a/src/one/mod.rs", "mod part; pub struct Whole; fn g() { part::f(); crate::two::h() }");
        let part = ("a/src/one/part.rs", "use super::Whole; pub fn f() {}");
        assert!(findings(&[whole, part]).is_empty());
        let outside = ("a/src/two.rs", "use crate::one::Whole; pub fn h() {}");
        assert_eq!(findings(&[whole, part, outside]).len(), 1);
    }

    #[test]
    fn tests_comments_other_crates_and_names_of_modules_make_no_circle() {
        let tests = "#[cfg(test)]\nmod tests { use crate::three::Three; }";
        let found = findings(&[
            ("a/src/one/mod.rs", &format!("use crate::two::Two; // crate::one::One\npub struct One;{tests}")),
            ("a/src/two.rs", "pub struct Two; const TEXT: &str = \"crate::one::One\"; use crate::one;"),
            ("a/src/three/tests.rs", "use crate::one::One;"),
            ("a/src/three/mod.rs", "pub struct Three; use crate::one::One; use b::two::Two;"),
            ("a/src/bin/a/main.rs", "use a::one::One; mod two;"),
            ("a/src/bin/a/two.rs", "pub struct Two; use a::two::Two;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
