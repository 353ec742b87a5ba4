//! The command line reads the tokenizers of well-known models, adds their special tokens, and converts only what is read the
//! same.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

mod common;
use common::{path, run};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures");

fn encode(tokenizer: &Path, text: &Path, more: &[&str]) -> Output {
    let paths = ["encode", "--tokenizer", path(tokenizer), "--input", path(text)];
    run(&[paths.as_slice(), more].concat(), "")
}

fn lines(out: &Output) -> Vec<String> {
    assert!(out.status.success(), "{}", common::text(&out.stderr));
    common::text(&out.stdout).lines().map(str::to_owned).collect()
}

/// Writes the tokenizers of the fixture as files. Returns their paths with the rows of the texts that are a line.
fn models(folder: &Path) -> (PathBuf, Vec<(PathBuf, Vec<Value>)>) {
    let fixture: Value =
        serde_json::from_str(include_str!("../../tokenizer/tests/fixtures/models.json")).unwrap();
    let texts: Vec<&str> = fixture["texts"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let is_line = |text: &&str| !text.contains(['\n', '\r']);
    let text = folder.join("text.txt");
    std::fs::write(
        &text,
        texts.iter().copied().filter(is_line).map(|t| format!("{t}\n")).collect::<String>(),
    )
    .unwrap();
    let cases = fixture["cases"].as_array().unwrap().iter().map(|case| {
        let path = folder.join(format!("{}.json", case["name"].as_str().unwrap()));
        std::fs::write(&path, case["file"].to_string()).unwrap();
        let rows = texts.iter().zip(case["rows"].as_array().unwrap()).filter(|(text, _)| is_line(text));
        (path, rows.map(|(_, row)| row.clone()).collect())
    });
    (text.clone(), cases.collect())
}

fn joined(ids: &Value) -> String {
    ids.as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn encode_gives_hugging_face_s_ids_with_and_without_special_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let (text, models) = models(folder.path());
    for (path, rows) in models {
        let want: Vec<String> = rows.iter().map(|row| joined(&row[0])).collect();
        assert_eq!(lines(&encode(&path, &text, &[])), want, "{path:?}");
        let with: Vec<String> = rows.iter().map(|row| joined(&row[2])).collect();
        let found = encode(&path, &text, &["--special-tokens"]);
        if with == want {
            let message = common::text(&found.stderr);
            assert!(
                found.status.code() == Some(2) && message.contains("leave out --special-tokens"),
                "{path:?}"
            );
        } else {
            assert_eq!(lines(&found), with, "{path:?}");
        }
    }
}

#[test]
fn what_is_converted_is_read_the_same_and_all_else_is_refused_before_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (text, models) = models(folder.path());
    let of_sentencepiece = ["small.model", "bpe.model", "word.model", "char.model"];
    let sources = of_sentencepiece.map(|name| Path::new(FIXTURES).join(name)).into_iter();
    let mut written = 0;
    for from in sources.chain(models.into_iter().map(|model| model.0)) {
        for to in ["tokenizer.json", "copy.model", "vocab.txt", "vocab.json"] {
            let to = folder.path().join("out").join(to);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            let convert = ["convert", "--tokenizer", path(&from), "--out", path(&to)];
            let differing = || -> Vec<usize> {
                let (before, after) = (lines(&encode(&from, &text, &[])), lines(&encode(&to, &text, &[])));
                (0..before.len()).filter(|n| before[*n] != after[*n]).collect()
            };
            let done = run(&convert, "");
            if done.status.success() {
                written += 1;
                assert_eq!(differing(), [0; 0], "{from:?} to {to:?}");
            } else {
                assert_eq!(done.status.code(), Some(2), "{}", common::text(&done.stderr));
                assert!(!to.exists(), "{to:?}");
            }
            std::fs::remove_dir_all(to.parent().unwrap()).unwrap();
        }
    }
    assert!(written >= 40, "{written}");
}

#[test]
fn a_sentencepiece_file_is_recognized_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.txt");
    std::fs::write(&text, "A word, and more.\n").unwrap();
    let model = Path::new(FIXTURES).join("small.model");
    let want = lines(&encode(&model, &text, &[]));
    for name in ["x.spm", "x"] {
        let path = folder.path().join(name);
        std::fs::copy(&model, &path).unwrap();
        assert_eq!(lines(&encode(&path, &text, &[])), want, "{name}");
    }
    let path = folder.path().join("y");
    std::fs::write(&path, [0, 1, 2]).unwrap();
    assert_eq!(encode(&path, &text, &[]).status.code(), Some(2));
}
