//! Records with several owners, such as a message with its writer and its readers: a bound on the records of each owner.
//!
//! The records are taken in their order, and one is left out if one of its owners already has the largest number. Who owns which
//! record decides this alone, not what the records say (greedy contribution bounding, Ganesh et al. 2025, arXiv:2503.03622).

use std::collections::HashMap;

use super::user;

/// The owners of records, and the most records of one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owners {
    /// The JSON field with the list of a record's owners.
    pub field: String,
    /// The largest number of records of an owner.
    pub most_records: u32,
}

/// The number of records that each owner has among those that were kept.
pub(super) struct KeptRecords {
    most: u32,
    of_owner: HashMap<String, u32>,
}

impl KeptRecords {
    pub(super) fn new(owners: &Owners) -> Self {
        Self { most: owners.most_records, of_owner: HashMap::new() }
    }

    /// Counts a record of these owners, each named once, if none of them has the largest number already. Returns whether the record
    /// is kept.
    pub(super) fn keep(&mut self, owners: &[String]) -> bool {
        let has_room = |owner| self.of_owner.get(owner).is_none_or(|count| *count < self.most);
        if self.most == 0 || !owners.iter().all(has_room) {
            return false;
        }
        for owner in owners {
            *self.of_owner.entry(owner.clone()).or_default() += 1;
        }
        true
    }
}

/// Returns the canonical ids of a record's owners, each once.
pub(super) fn canonical(ids: Vec<String>) -> Result<Vec<String>, String> {
    if ids.is_empty() {
        return Err(
            "the list of owners is empty; every record needs an owner: leave such records out".to_owned()
        );
    }
    let mut owners = ids.into_iter().map(user::canonical).collect::<Result<Vec<_>, _>>()?;
    owners.sort_unstable();
    owners.dedup();
    Ok(owners)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{Files, LineFiles, Record, Source, open};

    fn files(lines: &[&str], most_records: u32) -> (tempfile::TempDir, Source) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mail.jsonl");
        std::fs::write(&path, lines.join("\n")).unwrap();
        let owners = Some(Owners { field: "of".to_owned(), most_records });
        (folder, Source::Files(Files { owners, ..Files::of([path]) }))
    }

    fn texts(records: impl Iterator<Item = Record>) -> Vec<String> {
        records.map(|record| record.text).collect()
    }

    const MAIL: [&str; 7] = [
        r#"{"text": "1", "of": ["ann", "bob"]}"#,
        r#"{"text": "2", "of": ["ann"]}"#,
        r#"{"text": "3", "of": ["bob", " ann\t"]}"#,
        r#"{"text": "4", "of": ["bob", "bob", 7]}"#,
        r#"{"text": "5", "of": [7, "eve"]}"#,
        r#"{"text": "6", "of": ["eve"]}"#,
        r#"{"text": "7", "of": ["7", "zoe"]}"#,
    ];

    /// Records are kept in order while every owner has room. A record that is left out takes no room from its other owners.
    #[test]
    fn no_owner_has_more_than_the_largest_number_of_records() {
        for (most, want) in [(1, "1 5"), (2, "1 2 4 5 6"), (3, "1 2 3 4 5 6 7"), (9, "1 2 3 4 5 6 7")] {
            let (_folder, source) = files(&MAIL, most);
            let want: Vec<&str> = want.split(' ').collect();
            assert_eq!(texts(open(&source).unwrap().map(Result::unwrap)), want, "{most}");
            // Records that are read by their positions are the same.
            let lines = LineFiles::of(&source).unwrap();
            let found: Vec<_> = lines.records().unwrap().map(Result::unwrap).collect();
            assert_eq!(texts(found.iter().map(|(_, record)| record.clone())), want, "{most}");
            assert!(found.iter().all(|(at, record)| lines.read(*at).unwrap() == *record));
        }
        let mut counts = HashMap::new();
        let (_folder, source) = files(&MAIL, 2);
        for owner in open(&source).unwrap().flat_map(|record| record.unwrap().owners) {
            *counts.entry(owner).or_insert(0) += 1;
        }
        assert!(counts.values().all(|count| *count <= 2), "{counts:?}");
    }

    /// What records say does not decide which are kept.
    #[test]
    fn other_texts_of_the_same_owners_leave_the_same_places() {
        let other: Vec<String> =
            MAIL.iter().map(|line| line.replace(r#""text": ""#, r#""text": "x"#)).collect();
        let (_folder, source) = files(&other.iter().map(String::as_str).collect::<Vec<_>>(), 2);
        let kept = texts(open(&source).unwrap().map(Result::unwrap));
        assert_eq!(kept, ["x1", "x2", "x4", "x5", "x6"]);
    }

    #[test]
    fn owners_are_a_list_of_ids_none_of_which_is_blank() {
        for (owners, want) in [
            (r#""ann; bob""#, "no list"),
            ("7", "no list"),
            ("null", "no list"),
            ("[]", "empty"),
            (r#"["ann", " "]"#, "blank"),
            (r#"["ann", null]"#, "null"),
            (r#"["ann", true]"#, "true or false"),
            (r#"["ann", ["bob"]]"#, "one user"),
        ] {
            let line = format!(r#"{{"text": "a", "of": {owners}}}"#);
            let (_folder, source) = files(&[&line], 2);
            let message = open(&source).err().unwrap().to_string();
            assert!(message.contains(want) && !message.contains("ann;"), "{owners}: {message}");
        }
        let (_folder, source) = files(&[r#"{"text": "a"}"#], 2);
        assert!(open(&source).err().unwrap().to_string().contains("owners_field"));
        let Source::Files(lines) = &source else { unreachable!() };
        let text = lines.paths[0].with_extension("txt");
        std::fs::write(&text, "a\n").unwrap();
        let table = lines.paths[0].with_extension("csv");
        std::fs::write(&table, "text,of\na,ann; bob\n").unwrap();
        for (path, want) in [(text, "plain text names no owners"), (table, "no list")] {
            let source = Source::Files(Files { paths: vec![path], ..lines.clone() });
            let message = open(&source).err().unwrap().to_string();
            assert!(message.contains(want) && !message.contains("ann;"), "{message}");
        }
    }
}
