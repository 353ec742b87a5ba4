//! The command line reads, trains and writes every format.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::path::Path;

mod common;
use common::{path, refusal, run, succeed};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures");

fn encode(tokenizer: &Path, text: &Path) -> String {
    succeed(&["encode", "--tokenizer", path(tokenizer), "--input", path(text)], "")
}

fn text_file(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("text.txt");
    std::fs::write(&path, "The privacy budget isn't spent twice.\n Éclair, ＡＢ 中国 ²\n\n").unwrap();
    path
}

#[test]
fn ids_stay_the_same_through_each_conversion() {
    let folder = tempfile::tempdir().unwrap();
    let text = text_file(folder.path());
    for (from, to) in
        [("small.model", "copy.model"), ("vocab.txt", "tokenizer.json"), ("vocab.json", "tokenizer.json")]
    {
        let (from, to) = (Path::new(FIXTURES).join(from), folder.path().join(to));
        succeed(
            &[
                "convert",
                "--tokenizer",
                path(&from),
                "--overwrite",
                "--allow-rare-differences",
                "--out",
                path(&to),
            ],
            "",
        );
        assert_eq!(encode(&from, &text), encode(&to, &text));
    }
}

#[test]
fn every_model_is_trained_and_written_in_its_own_format() {
    let folder = tempfile::tempdir().unwrap();
    let text = text_file(folder.path());
    let formats = [
        ("unigram", Some("x.model")),
        ("bpe", Some("vocab.json")),
        ("wordpiece", Some("vocab.txt")),
        ("char", Some("y.model")),
        ("byte", None),
    ];
    for (model, native) in formats {
        let out = folder.path().join(model);
        let learns = ["--public", "--input", path(&text), "--vocab-size", "400"];
        let learns = if model == "byte" { &[][..] } else { &learns };
        succeed(&[&["train", "--model", model, "--out", path(&out)], learns].concat(), "");
        let json = out.join("tokenizer.json");
        let ids = encode(&json, &text);
        assert!(!ids.trim().is_empty());
        if let Some(native) = native.map(|name| out.join(name)) {
            succeed(
                &["convert", "--tokenizer", path(&json), "--allow-rare-differences", "--out", path(&native)],
                "",
            );
            assert_eq!(encode(&native, &text), ids, "{model}");
        }
    }
}

#[test]
fn a_file_that_few_texts_tell_apart_is_written_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to, why) in [
        // Oracle: sentencepiece 0.2.3 finds no control symbol in a text, tokenizers 0.23.3 every added token.
        ("unigram.json", "copy.model", "a text that spells a special token"),
        ("unigram.json", "copy.model", "almost equal scores"),
        ("vocab.txt", "tokenizer.json", "decoded text"),
    ] {
        let (from, to) = (format!("{FIXTURES}/{from}"), folder.path().join(to));
        let convert = ["convert", "--tokenizer", &from, "--overwrite", "--out", path(&to)];
        let message = refusal(&convert, "");
        assert!(message.contains(why) && !to.exists(), "{message}");
        assert!(message.contains("--allow-rare-differences"), "{message}");
        let written = run(&[&convert[..], &["--allow-rare-differences"]].concat(), "");
        assert!(written.status.success() && common::text(&written.stderr).contains(why));
        std::fs::remove_file(&to).unwrap();
    }
}

#[test]
fn a_format_that_cannot_hold_the_tokenizer_is_refused_with_what_can() {
    let folder = tempfile::tempdir().unwrap();
    let from = format!("{FIXTURES}/vocab.txt");
    for (name, word) in [("a.model", "unigram"), ("vocab.json", "BPE"), ("a.bin", "tokenizer.json")] {
        let out = folder.path().join(name);
        assert!(refusal(&["convert", "--tokenizer", &from, "--out", path(&out)], "").contains(word));
        assert!(!out.exists());
    }
}

#[test]
fn places_of_tokens_are_shown_in_either_unit() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.txt");
    std::fs::write(&text, "É t!\n").unwrap();
    let model = format!("{FIXTURES}/vocab.json");
    let shown = |unit: &str| {
        let arguments = ["encode", "--tokenizer", &model, "--input", path(&text), "--offsets", unit];
        let line = succeed(&arguments, "");
        line.split_whitespace().map(|token| token.split_once(':').unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    // Both bytes of É have the whole character as their place.
    assert_eq!(shown("bytes"), ["0:2", "0:2", "2:4", "4:5"]);
    assert_eq!(shown("characters"), ["0:1", "0:1", "1:3", "3:4"]);
}

/// BERT's own lower-cased vocabulary holds characters that Unicode calls upper-case and lower-casing leaves as they are.
#[test]
fn case_of_a_vocab_txt_is_told_by_flags_then_by_its_config_then_by_capitals_from_a_to_z() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.txt");
    std::fs::write(&text, "Hello\n").unwrap();
    let vocabulary = folder.path().join("vocab.txt");
    let ids = |last: &str, flags: &[&str]| {
        std::fs::write(&vocabulary, format!("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nᴬ\n{last}\n"))
            .unwrap();
        let paths = ["--tokenizer", path(&vocabulary), "--input", path(&text)];
        let output = run(&[&["encode"], &paths[..], flags].concat(), "");
        let said = common::text(&output.stderr);
        if output.status.success() { Ok(common::text(&output.stdout)) } else { Err(said) }
    };
    assert_eq!(ids("ʰ", &[]).unwrap().trim(), "5");
    assert_eq!(ids("Hello", &[]).unwrap().trim(), "7");
    assert_eq!(ids("Hello", &["--uncased"]).unwrap().trim(), "5");
    assert_eq!(ids("ʰ", &["--cased"]).unwrap().trim(), "1");
    let config = folder.path().join("tokenizer_config.json");
    std::fs::write(&config, r#"{ "do_lower_case": false }"#).unwrap();
    assert_eq!(ids("ʰ", &[]).unwrap().trim(), "1");
    assert_eq!(ids("ʰ", &["--uncased"]).unwrap().trim(), "5");
    for bad in ["{", r#"{ "do_lower_case": 1 }"#] {
        std::fs::write(&config, bad).unwrap();
        let message = ids("ʰ", &[]).unwrap_err();
        assert!(message.contains("tokenizer_config.json") && message.contains("--uncased"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let model = format!("{FIXTURES}/small.model");
    refusal(&["encode", "--tokenizer", &model, "--input", path(&text), "--uncased"], "");
}

#[test]
fn a_format_that_is_read_otherwise_is_refused_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("tokenizer.json");
    let model = &format!("{FIXTURES}/word.model");
    let rare = "--allow-rare-differences";
    let message = refusal(&["convert", "--tokenizer", model, "--out", path(&out), rare], "");
    assert!(message.contains("not written, because it would be read otherwise"), "{message}");
    assert!(!out.exists());
}
