//! Tests of the marks that a private release leaves in every file that is made of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::path::Path;

use serde_json::Value;

mod common;
use common::{json, path, refusal, run, succeed};

fn train(out: &Path, more: &[&str]) {
    let arguments =
        ["train", "--embedded", "--epsilon", "8", "--delta", "1e-6", "--vocab-size", "400", "--out"];
    succeed(&[&arguments[..], &[path(out)], more].concat(), "");
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap()
}

/// TRUST B1: two releases of the same text, alike in all figures, are told apart, and a test key repeats every byte.
#[test]
fn each_release_has_an_id_of_its_own_that_its_tokenizer_bears() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let id = |name: &str| json(&at(name).join("privacy.json"))["id"].as_str().unwrap().to_owned();
    for name in ["one", "two"] {
        train(&at(name), &[]);
        assert!(
            id(name).len() == 32 && id(name).bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{}",
            id(name)
        );
        assert_eq!(json(&at(name).join("tokenizer.json"))["model"]["privacy"]["id"], id(name).as_str());
    }
    assert_ne!(id("one"), id("two"));
    for name in ["key", "again"] {
        train(&at(name), &["--test-key", "7"]);
    }
    for file in ["privacy.json", "tokenizer.json"] {
        assert_eq!(read(&at("key").join(file)), read(&at("again").join(file)));
    }
}

/// TRUST B3: a release that replaces another does not make it forgotten.
#[test]
fn the_statement_of_a_release_that_is_overwritten_stays_beside_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("vocabulary");
    train(&out, &[]);
    let first = json(&out.join("privacy.json"));
    train(&out, &["--overwrite"]);
    let kept = json(&out.join("privacy.1.json"));
    assert_eq!(kept, first);
    assert_ne!(json(&out.join("privacy.json"))["id"], first["id"]);
    assert!(!out.join("privacy.2.json").exists());
}

/// TRUST B2: a tokenizer.json keeps its mark under any name, and other formats get the statement beside them.
#[test]
fn a_release_is_known_in_copies_and_in_other_formats() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    train(&at("vocabulary"), &[]);
    let statement = read(&at("vocabulary/privacy.json"));
    for name in ["copy", "other", "third", "public", "back", "same", "foreign"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    let convert = |from: &str, to: &str| {
        ["convert", "--allow-rare-differences", "--tokenizer", path(&at(from)), "--out", path(&at(to))]
            .map(str::to_owned)
    };
    let converted = |from: &str, to: &str| succeed(&convert(from, to).each_ref().map(String::as_str), "");
    std::fs::copy(at("vocabulary/tokenizer.json"), at("copy/renamed.json")).unwrap();
    converted("copy/renamed.json", "third/tokenizer.json");
    let mark = |file: &str| json(&at(file))["model"]["privacy"].clone();
    assert!(!mark("third/tokenizer.json").is_null());
    assert_eq!(mark("third/tokenizer.json"), mark("vocabulary/tokenizer.json"));
    for marked in ["copy/renamed.json", "third/tokenizer.json"] {
        let out = at("extended");
        let extend =
            ["train", "--embedded", "--epsilon", "8", "--delta", "1e-6", "--out", path(&out), "--extend"];
        let message = refusal(&[&extend[..], &[path(&at(marked))]].concat(), "");
        assert!(message.contains("private"), "{marked}: {message}");
        assert!(!out.exists());
    }
    // A .model has no place for a mark.
    let inspected = |file: &str| {
        let done = run(&["inspect", "--json", "--tokenizer", path(&at(file))], "");
        serde_json::from_slice::<Value>(&done.stdout).unwrap()["privacy"].clone()
    };
    let release: Value = serde_json::from_slice(&statement).unwrap();
    for (from, to) in [
        ("vocabulary/tokenizer.json", "other/vocabulary.model"),
        ("vocabulary/tokenizer.json", "other/again.model"),
        ("other/vocabulary.model", "public/tokenizer.json"),
        ("other/vocabulary.model", "back/of.model"),
    ] {
        converted(from, to);
        for field in ["id", "epsilon", "tokenizer_sha256"] {
            assert!(!release[field].is_null());
            assert_eq!(inspected(to)[field], release[field], "{to}: {field}");
        }
    }
    // A copy that the file of the release vouches for has its statement byte for byte.
    converted("vocabulary/tokenizer.json", "same/tokenizer.json");
    assert_eq!(read(&at("same/tokenizer.json")), read(&at("vocabulary/tokenizer.json")));
    assert_eq!(read(&at("same/privacy.json")), statement);
    // A file beside the statement of a release does not become part of it, and neither does a file that is made of it.
    let foreign = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures/vocab.txt");
    std::fs::copy(foreign, at("back/vocab.txt")).unwrap();
    converted("back/vocab.txt", "foreign/vocab.txt");
    for file in ["back/vocab.txt", "foreign/vocab.txt"] {
        assert_eq!(inspected(file), "the privacy.json beside it is of another tokenizer", "{file}");
    }
    // The statement of another tokenizer is not replaced.
    train(&at("second"), &[]);
    let message =
        refusal(&convert("second/tokenizer.json", "other/second.model").each_ref().map(String::as_str), "");
    assert!(message.contains("is of another tokenizer") && !at("other/second.model").exists(), "{message}");
}
