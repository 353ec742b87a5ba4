//! Checks that names are the terms of the field, or plain words.

use super::Finding;
use super::source::{Source, is_word, tokens};

/// Words that do not describe anything.
const EMPTY_WORDS: [&str; 9] =
    ["utils", "util", "helper", "helpers", "manager", "managers", "sigma2", "misc", "stuff"];

/// A name where it is defined.
struct Definition<'a> {
    line: usize,
    /// The token before the name: `fn`, `struct`, `let`, …, or anything else for a field or a parameter.
    before: &'a str,
    name: &'a str,
}

fn definitions(source: &Source) -> Vec<Definition<'_>> {
    let all = tokens(&source.code);
    let mut definitions = Vec::new();
    for (at, (line, name)) in all.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |i| all[i].1);
        let after = |n: usize| all.get(at + n).map_or("", |t| t.1);
        let item = ["fn", "mod", "struct", "enum", "trait", "type", "const", "static", "let", "mut"];
        let defined = item.contains(&before) || (after(1) == ":" && after(2) != ":" && before != ":");
        if defined && name.starts_with(is_word) {
            definitions.push(Definition { line: *line, before, name });
        }
    }
    definitions
}

/// Finds names that do not describe what they name.
pub fn empty(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Definition { line, before, name } in definitions(source) {
        if let Some(fault) = fault(name) {
            findings.push(Finding::new(line, fault));
        } else if ["mod", "struct", "enum", "trait", "type", "fn"].contains(&before)
            && (name.starts_with("new_")
                || name.strip_prefix("New").is_some_and(|rest| rest.starts_with(char::is_uppercase)))
        {
            findings.push(Finding::new(line, format!("`{name}`: say what it is, not that it is new")));
        }
    }
    findings
}

/// Describes the fault of a name in snake or camel case.
pub fn fault(name: &str) -> Option<String> {
    let words = words(name);
    if let Some(word) = words.iter().find(|word| EMPTY_WORDS.contains(&word.as_str())) {
        return Some(format!("`{name}`: \"{word}\" does not say what it is"));
    }
    let version =
        words.len() > 1 && words.last().is_some_and(|word| matches!(word.as_str(), "v2" | "v3" | "old"));
    version.then(|| format!("`{name}`: keep one version in the tree; git has the history"))
}

/// Returns the words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() && !snake.ends_with(char::is_uppercase) {
            snake.push('_');
        }
        snake.push(c);
    }
    snake.split(['_', '-']).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}
