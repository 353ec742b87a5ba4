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

#[test]
fn public_words_stand_for_those_that_were_not_released() {
    let (dir, notes) = folder_with("notes.txt", &"severe hypertension today\n".repeat(2000));
    let (counts, public) = (dir.path().join("words.tsv"), dir.path().join("public.json"));
    std::fs::write(&counts, "▁today\t9\n▁tomorrow\t6\n").unwrap();
    let words = [("▁today".to_owned(), 9.0), ("▁tomorrow".to_owned(), 6.0)];
    std::fs::write(&public, bpe(&words, &BpeConfig::default()).unwrap().tokenizer.to_json()).unwrap();
    for prior in [&counts, &public] {
        let out = dir.path().join(prior.file_stem().unwrap());
        let arguments = ["--input", path(&notes), "--out", path(&out), "--prior", path(prior)];
        let done = train(&arguments);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let made = std::fs::read_to_string(out.join("tokenizer.json")).unwrap();
        let made = Tokenizer::from_json(&made).unwrap();
        assert!(made.id("▁tomorrow").is_some() && made.id("▁hypertension").is_some(), "{prior:?}");
        let statement = std::fs::read(out.join("privacy.json")).unwrap();
        let statement: Value = serde_json::from_slice(&statement).unwrap();
        let digest = durable::sha256_hex(&std::fs::read(prior).unwrap());
        assert_eq!(statement["prior"][0]["sha256"], digest);
        // What a private release made is no public knowledge.
        let none = dir.path().join("none");
        let private = ["--input", path(&notes), "--out", path(&none), "--prior", path(&out)];
        let refused = train(&private);
        assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
    }
}

#[test]
fn the_kind_of_words_follows_from_public_figures_alone() {
    let (dir, notes) = folder_with("notes.txt", &"severe hypertension today\n".repeat(2000));
    let made = |name: &str, options: &[&str]| {
        let out = dir.path().join(name);
        let done = train(&[&["--input", path(&notes), "--out", path(&out)], options].concat());
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        let statement = std::fs::read(out.join("privacy.json")).unwrap();
        let statement: Value = serde_json::from_slice(&statement).unwrap();
        (statement["words"].as_str().unwrap().to_owned(), said)
    };
    // ε is 2.
    let (words, said) = made("large", &["--units", "20000"]);
    assert!(
        words == "runs" && said.contains("--words runs, because units times ε is 40000, at least 40000"),
        "{said}"
    );
    let (words, said) = made("small", &["--units", "19999"]);
    assert!(
        words == "by_class" && said.contains("--words by-class, because units times ε is 39998"),
        "{said}"
    );
    // Without public figures, or with a choice, nothing follows.
    for options in
        [&[][..], &["--units", "20000", "--words", "by-class"], &["--units", "20000", "--model", "wordpiece"]]
    {
        let (words, said) = made(&format!("v{}", options.concat()), options);
        assert!(words == "by_class" && !said.contains("because units"), "{said}");
    }
}
