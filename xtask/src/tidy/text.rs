//! Text that does not belong in the tree: reminders, unfinished code, paths of one machine.

use super::Finding;
use super::source::{Source, is_word};

/// No reminders and no skipped tests. Clippy finds unfinished code.
pub fn leftovers(source: &Source) -> Vec<Finding> {
    let mut findings = reminders(&source.comments);
    findings.extend(in_lines(&source.code, &[concat!("#[ign", "ore")], |line, mark| line.contains(mark)));
    findings
}

/// No reminders in prose or comments.
pub fn reminders(text: &str) -> Vec<Finding> {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
    in_lines(text, &words, |line, word| {
        line.match_indices(word).any(|(at, _)| {
            let around = [line[..at].chars().next_back(), line[at + word.len()..].chars().next()];
            around.into_iter().flatten().all(|c| !is_word(c))
        })
    })
}

/// No paths of one machine and no addresses of package hosts, so that the project works anywhere.
pub fn machine_paths(text: &str) -> Vec<Finding> {
    let marks = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/opt/", "peers"),
        concat!("registry.", "npmjs"),
        concat!("static.", "crates.io"),
        concat!("index.", "crates.io"),
        concat!("files.", "pythonhosted"),
        concat!("deb.", "debian.org"),
        concat!("\"reso", "lved\": \"http"),
    ];
    in_lines(text, &marks, |line, mark| line.contains(mark))
}

fn in_lines(text: &str, marks: &[&str], found: impl Fn(&str, &str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for mark in marks.iter().filter(|mark| found(line, mark)) {
            findings.push(Finding::new(number + 1, format!("remove `{mark}`")));
        }
    }
    findings
}
