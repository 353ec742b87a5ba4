//! Tests of what the command line reads and records, and of what it refuses before it spends anything.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::path::{Path, PathBuf};

use serde_json::Value;

mod common;
use common::{folder_with, gzip, path, refusal, run, succeed, text, zstd};

/// Writes a vocabulary of bytes, whose ids show the text. Returns its path.
fn bytes_tokenizer(folder: &Path) -> PathBuf {
    let out = folder.join("bytes");
    succeed(&["train", "--model", "byte", "--out", path(&out)], "");
    out.join("tokenizer.json")
}

/// Returns 3000 records of a table, each of six lines. Read line by line, the words of the one canary would be those of
/// many units.
fn table() -> Vec<u8> {
    let canary = "\"canaryword\ncanaryword\ncanaryword\ncanaryword\ncanaryword\ncanaryword\",1\n";
    let row = "\"one, two\nthree \"\"four\"\"\nfive\nsix\nseven\neight\",0\n";
    format!("text,n\n{}{canary}", row.repeat(3000)).into_bytes()
}

#[test]
fn a_row_of_a_table_is_one_unit_whatever_lines_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let (corpus, canaries) = (folder.path().join("a.csv"), folder.path().join("b.csv"));
    std::fs::write(&corpus, table()).unwrap();
    let fifty = "canaryword\n".repeat(50);
    let canary = String::from_utf8(table()).unwrap().replace("\"canaryword", &format!("\"{fifty}canaryword"));
    std::fs::write(&canaries, canary).unwrap();
    for corpus in [&corpus, &canaries] {
        let out = folder.path().join("v");
        let budget = ["--epsilon", "1", "--delta", "1e-6", "--units", "3001", "--vocab-size", "500"];
        let files = ["--input", path(corpus), "--out", path(&out), "--overwrite"];
        succeed(&[&["train"], &budget[..], &files[..]].concat(), "");
        let vocabulary = std::fs::read_to_string(out.join("tokenizer.json")).unwrap();
        assert!(!vocabulary.contains("canary"), "one record's word was released");
        assert!(vocabulary.contains("\"three\""), "the words of all records are released");
    }
}

#[test]
fn texts_to_encode_are_read_in_every_format_and_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = bytes_tokenizer(folder.path());
    let encoded = |name: &str, bytes: &[u8], more: &[&str]| {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let arguments = ["encode", "--tokenizer", path(&tokenizer), "--input", path(&file)];
        succeed(&[&arguments[..], more].concat(), "")
    };
    // Each line is answered, a blank one too.
    let want = encoded("a.txt", "hé\n\nyou".as_bytes(), &[]);
    assert_eq!(want.lines().count(), 3);
    assert_eq!(encoded("a.txt.gz", &gzip("hé\n\nyou".as_bytes()), &[]), want);
    assert_eq!(encoded("a.txt.zst", &zstd("hé\n\nyou".as_bytes()), &[]), want);
    assert_eq!(encoded("lines", "hé\r\n\r\nyou\r\n".as_bytes(), &["--format", "text"]), want);
    let records = [want.lines().next().unwrap(), want.lines().last().unwrap()].join("\n") + "\n";
    let json = "{\"text\": \"hé\"}\n{\"text\": \"you\"}\n";
    let array = "[{\"text\": \"hé\"},\n\"you\"]";
    assert_eq!(encoded("a.jsonl", json.as_bytes(), &[]), records);
    assert_eq!(encoded("a.jsonl.gz", &gzip(json.as_bytes()), &[]), records);
    assert_eq!(encoded("a.json", array.as_bytes(), &[]), records);
    assert_eq!(encoded("a.csv", "n,text\n1,\"hé\"\n2,you\n".as_bytes(), &[]), records);
    assert_eq!(encoded("a.tsv", "n\tbody\n1\thé\n2\tyou\n".as_bytes(), &["--text-field", "body"]), records);
    assert_eq!(encoded("bare", json.as_bytes(), &["--format", "jsonl"]), records);
    // Standard input is text unless declared otherwise. An empty text has an empty answer.
    let arguments = ["encode", "--tokenizer", path(&tokenizer)];
    assert_eq!(text(&run(&arguments, "hé\n\nyou").stdout), want);
    assert_eq!(text(&run(&[&arguments[..], &["--format", "jsonl"]].concat(), json).stdout), records);
    let nothing = run(&arguments, "");
    assert!(nothing.status.success() && nothing.stdout.is_empty());
    for (name, bytes, expected) in [
        ("bare", &b"hello\n"[..], "the name does not tell the format"),
        ("a.log", b"hello\n", "the name does not tell the format"),
        ("b.txt", b"h\0i\n", "binary data"),
        ("c.txt", &gzip(b"hi\n"), "end its name with .gz"),
        ("d.txt", b"caf\xe9\n", "line 1: not valid UTF-8"),
    ] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let file = folder.path().join(name);
        let message = refusal(&[&arguments[..], &["--input", path(&file)]].concat(), "");
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn an_option_without_effect_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = bytes_tokenizer(folder.path());
    let (notes, lines) = (folder.path().join("a.jsonl"), folder.path().join("a.txt"));
    std::fs::write(&notes, "{\"text\": \"a b\", \"who\": 1}\n".repeat(9)).unwrap();
    std::fs::write(&lines, "a b\n".repeat(9)).unwrap();
    let counts = folder.path().join("words.tsv");
    std::fs::write(&counts, "the\t5\n").unwrap();
    let (notes, lines, counts) = (path(&notes), path(&lines), path(&counts));
    let out = folder.path().join("v");
    let private = ["--epsilon", "1", "--delta", "1e-6"];
    let cases: [(&[&str], &str); 17] = [
        (&private, "no text: give --input"),
        (&["--public"], "no text: give --input"),
        (&["--counts", counts], "--public"),
        (&["--public", "--counts", counts, "--threads", "2"], "--threads has no effect with --counts"),
        (&["--public", "--counts", counts, "--text-field", "a"], "--text-field has no effect with --counts"),
        (&["--public", "--embedded", "--unit", "user"], "--unit has no effect with --public"),
        (&["--public", "--embedded", "--release", "sips"], "--release has no effect with --public"),
        (&["--public", "--embedded", "--relation", "replace-one"], "--relation has no effect with --public"),
        (&["--public", "--embedded", "--epsilon", "1"], "--epsilon has no effect with --public"),
        (&["--public", "--embedded", "--format", "text"], "--format has no effect with --embedded"),
        (
            &["--public", "--input", notes, "--user-field", "who"],
            "--user-field has no effect with unit record",
        ),
        (&["--public", "--input", lines, "--text-field", "body"], "--text-field has no effect on text"),
        (
            &["--public", "--embedded", "--model", "bpe", "--no-byte-fallback"],
            "--no-byte-fallback has no effect",
        ),
        (
            &["--model", "byte", "--epsilon", "1", "--delta", "1e-6"],
            "--epsilon has no effect with --model byte",
        ),
        (&["--model", "byte", "--input", lines], "--input has no effect with --model byte"),
        (&["--model", "byte", "--vocab-size", "300"], "--vocab-size has no effect with --model byte"),
        (&["--public", "--embedded", "--input", lines], "cannot be used with"),
    ];
    for (more, expected) in cases {
        let message = refusal(&[&["train", "--out", path(&out)], more].concat(), "text that nobody reads\n");
        assert!(message.contains(expected), "{more:?}: {message}");
    }
    assert!(!out.exists());
    let encode = ["encode", "--tokenizer", path(&tokenizer)];
    for more in
        [&["--overwrite"][..], &["--text-field", "body"], &["--format", "jsonl", "--user-field", "who"]]
    {
        let message = refusal(&[&encode[..], more].concat(), "");
        assert!(message.contains("has no effect"), "{more:?}: {message}");
    }
}

/// A vocabulary that no released words could mend is refused before anything is spent, and leaves no file.
#[test]
fn a_vocabulary_that_cannot_be_trained_is_refused_before_the_release() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("v");
    let train = ["train", "--embedded", "--epsilon", "1", "--delta", "1e-6", "--out", path(&out)];
    for (more, expected) in [
        (&["--vocab-size", "300"][..], "vocab_size = 300 is too small"),
        (&["--model", "bpe", "--vocab-size", "200"], "vocab_size = 200 is too small"),
        (&["--model", "wordpiece", "--vocab-size", "5"], "vocab_size = 5 is too small"),
        (&["--symbol", "<pad>"], "special token \"<pad>\""),
        (&["--symbol", "<x>", "--symbol", "<x>", "--model", "bpe"], "special token \"<x>\""),
        (&["--normalizer-of", "none.model"], "none.model"),
        (&["--units", "1000000"], "allowed: below 1/1000000"),
    ] {
        let message = refusal(&[&train[..], more].concat(), "");
        assert!(message.contains(expected) && !out.exists(), "{more:?}: {message}");
    }
}

/// Characters that have no room are left out, for the words are paid for.
#[test]
fn released_words_make_a_vocabulary_even_where_their_characters_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = folder.path().join("a.txt");
    let letters: Vec<char> = ('а'..='я').collect();
    let line = |n: usize| format!("{0}{0} {1}{1}{1}\n", letters[n % 32], letters[n % 16]);
    std::fs::write(&corpus, (0..6000).map(line).collect::<String>()).unwrap();
    for (model, size) in [("unigram", "370"), ("wordpiece", "40")] {
        let out = folder.path().join(model);
        let budget = ["--epsilon", "8", "--delta", "1e-6", "--units", "6000", "--model", model];
        let done = run(
            &[&["train", "--input", path(&corpus), "--vocab-size", size, "--out", path(&out)], &budget[..]]
                .concat(),
            "",
        );
        let warned = text(&done.stderr);
        assert!(done.status.success() && warned.contains("no room for all characters"), "{warned}");
        let shown = text(&done.stdout);
        assert!(shown.contains(&format!(": {size} tokens from ")), "{shown}");
    }
}

#[test]
fn the_line_on_screen_names_the_whole_promise() {
    let (folder, corpus) = folder_with("a.txt", &"the fever rises\n".repeat(3000));
    let out = folder.path().join("v");
    let train =
        ["train", "--input", path(&corpus), "--epsilon", "1.5", "--delta", "1e-6", "--unit", "words:3"];
    let files = ["--relation", "replace-one", "--vocab-size", "400", "--out", path(&out)];
    let done = run(&[&train[..], &files[..]].concat(), "");
    let shown = text(&done.stdout);
    assert!(shown.ends_with("; ε ≤ 1.5 at δ = 1e-6 for one run of 3 words (replace one)\n"), "{shown}");
    // The number of units is private: it is neither compared nor shown, and the user is told so.
    let warned = text(&done.stderr);
    assert!(
        done.status.success() && warned.contains("δ = 1e-6 must be below one over the number of units"),
        "{warned}"
    );
    assert!(!warned.contains("3000"), "{warned}");
    let stated = |units: &str, delta: &str| {
        let out = folder.path().join(units);
        let train = ["train", "--input", path(&corpus), "--epsilon", "1", "--delta", delta, "--units", units];
        run(&[&train[..], &["--vocab-size", "400", "--out", path(&out)]].concat(), "")
    };
    // The text has 3000 units, which the refusal must not depend on.
    assert!(stated("900", "1e-3").status.success());
    let refused = stated("1000", "1e-3");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--delta 1e-3 for 1000 units"), "{}", text(&refused.stderr));
    let done = stated("2999", "1e-6");
    assert!(!text(&done.stderr).contains("must be below"), "{}", text(&done.stderr));
    let statement = std::fs::read(folder.path().join("2999/privacy.json")).unwrap();
    let statement: Value = serde_json::from_slice(&statement).unwrap();
    assert_eq!(statement["assumptions"][0], "there are at most 2999 units");
}

#[test]
fn a_statement_is_told_of_its_own_tokenizer_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let train = |name: &str, epsilon: &str| {
        let arguments =
            ["train", "--embedded", "--epsilon", epsilon, "--delta", "1e-6", "--vocab-size", "400"];
        succeed(&[&arguments[..], &["--overwrite", "--out", path(&at(name))]].concat(), "");
    };
    train("one", "1");
    train("hundred", "100");
    let told = |file: &str| succeed(&["inspect", "--tokenizer", path(&at(file))], "");
    assert!(told("one/tokenizer.json").contains("privacy: ε ≤ 1 at δ = 1e-6 for one record"));
    std::fs::copy(at("hundred/tokenizer.json"), at("one/tokenizer.json")).unwrap();
    let mixed = told("one/tokenizer.json");
    assert!(mixed.contains("NOT KNOWN: the privacy.json beside it is of another tokenizer"), "{mixed}");
    // A second release into the folder replaces all of the first, or nothing.
    let hundred = at("hundred");
    let again = ["train", "--embedded", "--epsilon", "1", "--delta", "1e-6", "--out", path(&hundred)];
    assert!(refusal(&again, "").contains("privacy.json exists"));
    assert!(
        refusal(&[&again[..], &["--overwrite", "--vocab-size", "300"]].concat(), "").contains("too small")
    );
    assert!(told("hundred/tokenizer.json").contains("ε ≤ 100 at"));
    // A release that spends and finds nothing leaves the record of what it spent, and no tokenizer.
    let rare = at("rare.txt");
    std::fs::write(&rare, "unheard\n").unwrap();
    let nothing = ["train", "--epsilon", "1", "--delta", "1e-6", "--overwrite", "--input", path(&rare)];
    let done = run(&[&nothing[..], &["--out", path(&at("hundred"))]].concat(), "");
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
    let left = std::fs::read_to_string(at("hundred/privacy.json")).unwrap();
    assert!(left.contains("\"upper\": 0.99") && !at("hundred/tokenizer.json").exists(), "{left}");
    train("hundred", "3");
    assert!(told("hundred/tokenizer.json").contains("ε ≤ 3 at"));
}

/// TRUST 4: a text that is named twice would double every unit.
#[test]
fn an_input_named_twice_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let (file, copy, out) = (dir.path().join("a.txt"), dir.path().join("b.txt"), dir.path().join("out"));
    std::fs::write(&file, "one secret line\nanother\n").unwrap();
    std::fs::copy(&file, &copy).unwrap();
    let around = dir.path().join("out/../a.txt");
    for second in [&file, &copy, &around] {
        let inputs = ["--input", path(&file), path(second), "--out", path(&out)];
        let done = run(&[&["train", "--epsilon", "2", "--delta", "1e-6"], &inputs[..]].concat(), "");
        let message = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{message}");
        assert!(message.contains("are the same text") && !message.contains("secret"), "{message}");
        assert!(!out.join("tokenizer.json").exists());
    }
}

/// Standard input is read once, so that nothing can tell whether it is the text of a file or of another part.
#[test]
fn standard_input_is_refused_beside_other_text() {
    let (dir, file) = folder_with("a.txt", "one secret line\nanother\n");
    let out = dir.path().join("out");
    let train =
        ["train", "--epsilon", "2", "--delta", "1e-6", "--format", "text", "--out", path(&out), "--input"];
    let count = ["count", "--shard", "1/2", "--format", "text", "--out", path(&out), "--input"];
    for arguments in [[&train[..], &["-", path(&file)]].concat(), [&count[..], &["-"]].concat()] {
        let done = run(&arguments, "one secret line\nanother\n");
        let message = text(&done.stderr);
        assert_eq!((done.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.contains("cannot be compared with the other text"), "{message}");
        assert!(!out.exists(), "{message}");
    }
}

/// The space of a vocabulary is taken before its release: a full disk costs no privacy.
#[cfg(unix)]
#[test]
fn a_full_disk_is_noticed_before_words_are_released() {
    let dir = tempfile::tempdir().unwrap();
    let script =
        "ulimit -f 64; exec \"$0\" train --embedded --epsilon 1 --delta 1e-6 --vocab-size 5000 --out out";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_dp-tokenizer")]).current_dir(dir.path());
    let output = shell.output().unwrap();
    let message = text(&output.stderr);
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
    assert!(message.contains("nothing was spent"), "{message}");
    assert!(!dir.path().join("out").exists());
}

#[test]
fn users_are_needed_for_user_level_privacy() {
    let (dir, corpus) = folder_with("c.jsonl", &"{\"text\":\"a b\",\"who\":\"x\"}\n".repeat(50));
    let out = dir.path().join("out");
    let mut arguments =
        vec!["train", "--epsilon", "1", "--delta", "1e-6", "--unit", "user", "--vocab-size", "400"];
    arguments.extend(["--input", path(&corpus), "--out", path(&out)]);
    let refused = run(&arguments, "");
    assert!(text(&refused.stderr).contains("record 1 has no user"), "{}", text(&refused.stderr));
    arguments.extend(["--user-field", "who"]);
    let done = run(&arguments, "");
    // There is only one user: nothing may be released, so nothing can be learnt.
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("no words to train on"), "{}", text(&done.stderr));
}

#[test]
fn a_converted_tokenizer_is_not_written_beside_the_statement_of_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let released = bytes_tokenizer(folder.path());
    let other = folder.path().join("other.json");
    std::fs::copy(&released, &other).unwrap();
    let into = |out: &Path| {
        let paths = ["--tokenizer", path(&other), "--out", path(out), "--overwrite"];
        run(&[&["convert"][..], &paths].concat(), "")
    };
    let refused = into(&released);
    let message = text(&refused.stderr);
    assert!(refused.status.code() == Some(2) && message.contains("privacy.json beside it"), "{message}");
    assert!(into(&folder.path().join("copy.json")).status.success());
}
