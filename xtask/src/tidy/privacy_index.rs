//! Checks `tests/privacy_index.json`, which names the code and the tests for each row of the table
//! in PRIVACY.md, and the tests for each sentence of a certificate.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::File;
use super::source::{Source, tokens};

const TABLE: &str = "PRIVACY.md";
const INDEX: &str = "tests/privacy_index.json";
const SENTENCES: &str = "training/src/store/certificate/wording.rs";

/// Checks that every row of the table has code and tests in the index, and that all of these exist.
pub fn check(files: &[File]) -> Vec<String> {
    let text =
        |path: &str| files.iter().find(|file| file.path == Path::new(path)).map(|file| file.text.as_str());
    let (Some(table), Some(index)) = (text(TABLE), text(INDEX)) else {
        return vec![format!("{TABLE} or {INDEX} is missing")];
    };
    let index: Value = match serde_json::from_str(index) {
        Ok(index) => index,
        Err(error) => return vec![format!("{INDEX}: {error}")],
    };
    let paths: BTreeSet<&Path> = files.iter().flat_map(|file| file.path.ancestors()).collect();
    let tests: BTreeSet<String> = files
        .iter()
        .filter(|file| file.path.extension().is_some_and(|extension| extension == "rs"))
        .flat_map(|file| test_names(&file.text))
        .collect();
    let sentences = text(SENTENCES).map(sentences).unwrap_or_default();
    let is_test = |test: &str| tests.contains(test);
    let of_rows = faults(&rows(table), &index, |path| paths.contains(Path::new(path)), is_test);
    let of_sentences = faults_of_sentences(&sentences, &index, is_test);
    (of_rows.into_iter().chain(of_sentences)).map(|fault| format!("{INDEX}: {fault}")).collect()
}

/// Returns the numbers in the first column of the table.
fn rows(table: &str) -> Vec<u64> {
    table.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok()).collect()
}

/// Returns the names of the sentences: the public fields of the file.
fn sentences(wording: &str) -> Vec<&str> {
    wording.lines().filter_map(|line| Some(line.trim().strip_prefix("pub ")?.split_once(": ")?.0)).collect()
}

/// Checks that each sentence has tests, and that the index names no other sentence.
fn faults_of_sentences(sentences: &[&str], index: &Value, is_test: impl Fn(&str) -> bool) -> Vec<String> {
    let entries = || index.as_array().into_iter().flatten();
    let listed: Vec<&str> = entries().filter_map(|entry| entry["sentence"].as_str()).collect();
    let mut faults = Vec::new();
    if listed != sentences {
        faults.push(format!("lists the sentences {listed:?}; {SENTENCES} has {sentences:?}"));
    }
    for entry in entries() {
        let Some(sentence) = entry["sentence"].as_str() else { continue };
        let tests: Vec<&str> =
            entry["tests"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if tests.is_empty() {
            faults.push(format!("sentence {sentence} names no test"));
        }
        let missing = tests.iter().filter(|test| !is_test(test));
        faults.extend(missing.map(|test| format!("sentence {sentence}: there is no test `{test}`")));
    }
    faults
}

fn faults(
    rows: &[u64],
    index: &Value,
    is_file: impl Fn(&str) -> bool,
    is_test: impl Fn(&str) -> bool,
) -> Vec<String> {
    let entries = index.as_array().map(Vec::as_slice).unwrap_or_default();
    let listed: Vec<u64> = entries.iter().filter_map(|entry| entry["row"].as_u64()).collect();
    let mut faults = Vec::new();
    if listed != rows {
        faults.push(format!("lists the rows {listed:?}; {TABLE} has {rows:?}"));
    }
    for entry in entries.iter().filter(|entry| entry["sentence"].is_null()) {
        let row = &entry["row"];
        for (field, what, exists) in
            [("code", "file", &is_file as &dyn Fn(&str) -> bool), ("tests", "test", &is_test)]
        {
            let names: Vec<&str> =
                entry[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            if names.is_empty() {
                faults.push(format!("row {row} names no {what}"));
            }
            let missing = names.iter().filter(|name| !exists(name));
            faults.extend(missing.map(|name| format!("row {row}: there is no {what} `{name}`")));
        }
    }
    faults
}

/// Returns the names of the functions with a test attribute.
fn test_names(text: &str) -> Vec<String> {
    let source = Source::new(text);
    let all = tokens(&source.code);
    let mut names = Vec::new();
    for (at, pair) in all.windows(2).enumerate() {
        let [(_, "fn"), (_, name)] = pair else { continue };
        if has_test_attribute(&all[..at]) {
            names.push((*name).to_owned());
        }
    }
    names
}

/// Returns whether `tokens` end with attributes of which one is `test` or ends in it.
fn has_test_attribute(mut tokens: &[(usize, &str)]) -> bool {
    while let Some((_, "]")) = tokens.last() {
        let Some(open) = tokens.iter().rposition(|(_, token)| *token == "[") else { return false };
        if tokens[open..].iter().any(|(_, token)| matches!(*token, "test" | "wasm_bindgen_test")) {
            return true;
        }
        tokens = &tokens[..open.saturating_sub(1)];
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.to_owned() }
    }

    const PITFALLS: &str = "| # | pitfall |\n|---|---|\n| 1 | one |\n| 2 | two |\n";
    const CODE: &str =
        "#[test]\nfn first_holds() {}\nfn plain() {}\n#[test]\n#[cfg(unix)]\nfn second_holds() {}\n";

    fn index(tests: &[&str]) -> Value {
        json!([
            { "row": 1, "code": ["a/src/lib.rs"], "tests": ["first_holds"] },
            { "row": 2, "code": ["a/src/lib.rs"], "tests": tests },
        ])
    }

    fn found(index: &Value) -> Vec<String> {
        check(&[file(TABLE, PITFALLS), file(INDEX, &index.to_string()), file("a/src/lib.rs", CODE)])
    }

    #[test]
    fn a_complete_index_passes() {
        assert_eq!(found(&index(&["second_holds"])), Vec::<String>::new());
    }

    #[test]
    fn a_missing_test_is_named() {
        let missing = found(&index(&["second_held"]));
        assert_eq!(missing, [format!("{INDEX}: row 2: there is no test `second_held`")]);
        // A function without a test attribute is not a test.
        assert_eq!(found(&index(&["plain"])).len(), 1);
        assert_eq!(found(&index(&[])), [format!("{INDEX}: row 2 names no test")]);
    }

    #[test]
    fn a_sentence_without_tests_is_named() {
        let wording = "pub struct Wording {\n    pub guarantee: &str,\n    pub users: &str,\n}\n";
        let with = |sentences: Value| {
            let mut index = index(&["second_holds"]);
            index.as_array_mut().unwrap().extend(sentences.as_array().unwrap().clone());
            check(&[
                file(TABLE, PITFALLS),
                file(INDEX, &index.to_string()),
                file("a/src/lib.rs", CODE),
                file(SENTENCES, wording),
            ])
        };
        let guarantee = json!({ "sentence": "guarantee", "tests": ["first_holds"] });
        let users = |tests: Value| json!({ "sentence": "users", "tests": tests });
        assert_eq!(with(json!([guarantee, users(json!(["second_holds"]))])), Vec::<String>::new());
        assert_eq!(with(json!([guarantee])).len(), 1);
        assert_eq!(with(json!([guarantee, users(json!([]))])).len(), 1);
        assert_eq!(with(json!([guarantee, users(json!(["plain"]))])).len(), 1);
    }

    #[test]
    fn a_missing_row_and_a_missing_file_are_named() {
        let short = json!([{ "row": 1, "code": ["a/src/gone.rs"], "tests": ["first_holds"] }]);
        let faults = found(&short);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("[1]") && faults[1].contains("a/src/gone.rs"), "{faults:?}");
    }
}
