//! `train --extend`: released words in a public tokenizer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::process::Output;

use dp_tokenizer::train::{BpeConfig, bpe};
use serde_json::Value;
use tokenizer::Tokenizer;

mod common;
use common::{folder_with, path, run};

fn train(arguments: &[&str]) -> Output {
    let fixed = ["train", "--epsilon", "2", "--delta", "1e-6", "--test-key", "1"];
    run(&[&fixed, arguments].concat(), "")
}

#[test]
fn released_words_become_tokens_after_those_of_the_public_file() {
    let (dir, notes) = folder_with("notes.txt", &"severe hypertension today\n".repeat(2000));
    let (public, out) = (dir.path().join("public.json"), dir.path().join("out"));
    let base = bpe(&[("▁today".to_owned(), 2.0)], &BpeConfig::default()).unwrap().tokenizer;
    std::fs::write(&public, base.to_json()).unwrap();
    let arguments = ["--input", path(&notes), "--out", path(&out), "--extend", path(&public)];
    let done = train(&arguments);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let extended =
        Tokenizer::from_json(&std::fs::read_to_string(out.join("tokenizer.json")).unwrap()).unwrap();
    assert_eq!(extended.encode(" today was"), base.encode(" today was"));
    assert_eq!(extended.encode(" hypertension today").len(), 2);
    assert!(base.encode(" hypertension").len() > 2);
    let privacy: Value = serde_json::from_slice(&std::fs::read(out.join("privacy.json")).unwrap()).unwrap();
    assert_eq!(privacy["extends"]["file"], "public.json");
    assert_eq!(privacy["extends"]["tokens"], base.vocab_size());
}

#[test]
fn a_file_that_cannot_be_extended_is_refused_before_anything_is_spent() {
    let (dir, notes) = folder_with("notes.txt", &"severe hypertension today\n".repeat(2000));
    let (public, out) = (dir.path().join("public.json"), dir.path().join("out"));
    let arguments = ["--input", path(&notes), "--out", path(&out), "--extend", path(&public)];
    let refused = |why: &str| {
        let done = train(&arguments);
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{told}");
        assert!(told.contains(why) && !out.join("privacy.json").exists(), "{told}");
    };
    refused("public.json");
    std::fs::write(&public, "{}").unwrap();
    refused("public.json");
    let base = bpe(&[("▁today".to_owned(), 2.0)], &BpeConfig::default()).unwrap().tokenizer;
    std::fs::write(&public, base.to_json()).unwrap();
    for statement in [r#"{"private": true}"#, r#"{"private": false, "event": {}}"#, "damaged"] {
        std::fs::write(dir.path().join("privacy.json"), statement).unwrap();
        refused("does not say that it was made from public text");
    }
    std::fs::remove_file(dir.path().join("privacy.json")).unwrap();
    std::fs::write(dir.path().join("ledger.jsonl"), "").unwrap();
    refused("the tokenizer of a training run");
}
