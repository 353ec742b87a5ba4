//! The command line as scripts rely on it: outputs, exit codes, refusals.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

mod common;
use common::{path, refusal, run, succeed, text};

#[test]
fn private_training_stays_within_epsilon_and_states_it() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/folder");
    succeed(
        &[
            "train",
            "--embedded",
            "--epsilon",
            "2",
            "--delta",
            "1e-6",
            "--vocab-size",
            "500",
            "--out",
            path(&out),
            "--json",
        ],
        "",
    );
    let privacy: Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("privacy.json")).unwrap()).unwrap();
    assert_eq!(privacy["private"], true);
    let upper = privacy["epsilon"]["upper"].as_f64().unwrap();
    assert!(upper <= 2.0 && upper > 1.99, "{upper}");
    // A run that builds on the tokenizer finds the statement that belongs to it.
    let tokenizer = std::fs::read(out.join("tokenizer.json")).unwrap();
    let digest: String = Sha256::digest(tokenizer).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(privacy["tokenizer_sha256"], digest.as_str());
    // Oracle: the accountant on the event as written.
    let event: accountant::DpEvent = serde_json::from_value(privacy["event"].clone()).unwrap();
    let relation = accountant::NeighboringRelation::AddOrRemoveOne;
    let bounds = accountant::epsilon(&event, accountant::Delta::new(1e-6).unwrap(), relation).unwrap();
    assert_eq!(bounds.upper, upper);

    let tokenizer = out.join("tokenizer.json");
    let told = text(&run(&["inspect", "--tokenizer", path(&tokenizer)], "").stdout);
    assert!(
        told.contains("privacy: ε ≤ 2 at δ = 1e-6 for one record (add or remove one), by pooled"),
        "{told}"
    );
    std::fs::write(out.join("privacy.json"), "{\"private\": ").unwrap();
    let damaged = text(&run(&["inspect", "--tokenizer", path(&tokenizer)], "").stdout);
    assert!(damaged.contains("privacy: NOT KNOWN: the privacy.json beside it is damaged"), "{damaged}");
    let encoded = run(&["encode", "--tokenizer", path(&tokenizer)], "Ms Novak\n\n a  b é");
    assert!(encoded.status.success());
    assert_eq!(text(&encoded.stdout).lines().count(), 3);
    let decoded = run(&["decode", "--tokenizer", path(&tokenizer)], &text(&encoded.stdout));
    assert_eq!(text(&decoded.stdout), "Ms Novak\n\n a  b é\n");
}

#[test]
fn every_method_stays_within_epsilon_and_names_itself() {
    let dir = tempfile::tempdir().unwrap();
    for (method, rounds) in [("pooled", 5), ("sips", 3), ("policy", 1), ("mad2r", 2), ("weighted", 1)] {
        let out = dir.path().join(method);
        let mut arguments =
            vec!["train", "--embedded", "--epsilon", "2", "--delta", "1e-6", "--release", method];
        arguments.extend(["--vocab-size", "450", "--out", path(&out)]);
        succeed(&arguments, "");
        let privacy: Value =
            serde_json::from_str(&std::fs::read_to_string(out.join("privacy.json")).unwrap()).unwrap();
        assert_eq!((&privacy["method"], &privacy["private"]), (&Value::from(method), &Value::from(true)));
        let upper = privacy["epsilon"]["upper"].as_f64().unwrap();
        assert!(upper <= 2.0 && upper > 1.99, "{method}: {upper}");
        // A threshold for each round, and the count.
        assert_eq!(privacy["event"]["events"].as_array().unwrap().len(), rounds + 1, "{method}");
        assert!(privacy["first_threshold"].as_f64().unwrap() > 1.0, "{method}");
    }
}

#[test]
fn the_shape_of_a_vocabulary_is_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("u");
    let train = |more: &[&str]| {
        succeed(
            &[
                &[
                    "train",
                    "--embedded",
                    "--public",
                    "--overwrite",
                    "--vocab-size",
                    "500",
                    "--out",
                    path(&out),
                ],
                more,
            ]
            .concat(),
            "",
        );
        std::fs::read_to_string(out.join("tokenizer.json")).unwrap()
    };
    let unigram = train(&["--symbol", "<mask>", "--sentinels", "3", "--normalizer", "nfkc-lowercase"]);
    for part in ["\"<mask>\"", "\"<extra_id_2>\"", "\"NFKC\"", "\"Lowercase\""] {
        assert!(unigram.contains(part), "{part}");
    }
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures/small.model");
    assert!(train(&["--normalizer-of", model]).contains("\"Precompiled\""));
    assert!(train(&["--model", "wordpiece", "--cased"]).contains("\"lowercase\": false"));
    assert!(train(&["--model", "bpe", "--symbol", "<mask>"]).contains("\"<mask>\""));
    let characters = |share| train(&["--model", "char", "--character-coverage", share]).len();
    assert!(characters("0.5") < characters("1"));
    let privacy = std::fs::read_to_string(out.join("privacy.json")).unwrap();
    assert!(privacy.contains("\"private\": false") && privacy.contains("declared public"), "{privacy}");
}

#[test]
fn a_test_key_repeats_the_run_and_marks_it_not_private() {
    let dir = tempfile::tempdir().unwrap();
    let train = |name: &str, key: &str| {
        let out = dir.path().join(name);
        let of_release = ["train", "--embedded", "--epsilon", "1", "--delta", "1e-6", "--test-key", key];
        let of_files = ["--vocab-size", "400", "--out", path(&out)];
        succeed(&[&of_release[..], &of_files].concat(), "");
        (
            std::fs::read(out.join("tokenizer.json")).unwrap(),
            std::fs::read_to_string(out.join("privacy.json")).unwrap(),
        )
    };
    let (a, b, c) = (train("a", "5"), train("b", "5"), train("c", "6"));
    assert!(a == b && a.0 != c.0);
    assert!(a.1.contains("\"private\": false"), "{}", a.1);
}

#[test]
fn threads_change_no_byte_of_any_vocabulary() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = dir.path().join("corpus.txt");
    let line = |n: usize| format!("patient {n} has fever {} and cough{}\n", n % 7, "s".repeat(n % 3));
    std::fs::write(&corpus, (0..3000).map(line).collect::<String>()).unwrap();
    for model in ["unigram", "bpe", "wordpiece", "char"] {
        let train = |threads: &str, privacy: &[&str]| {
            let out = dir.path().join(threads);
            let mut arguments = vec![
                "train",
                "--overwrite",
                "--input",
                path(&corpus),
                "--model",
                model,
                "--threads",
                threads,
            ];
            arguments.extend(["--vocab-size", "400", "--out", path(&out)]);
            arguments.extend(privacy);
            succeed(&arguments, "");
            std::fs::read(out.join("tokenizer.json")).unwrap()
        };
        for privacy in [&["--public"][..], &["--epsilon", "2", "--delta", "1e-6", "--test-key", "5"]] {
            let one = train("1", privacy);
            assert!(one == train("2", privacy) && one == train("3", privacy), "{model} {privacy:?}");
        }
    }
}

#[test]
fn a_vocabulary_beyond_what_the_words_hold_shrinks_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    for model in ["unigram", "bpe", "wordpiece", "char"] {
        let out = dir.path().join(model);
        let arguments = [
            "train",
            "--embedded",
            "--public",
            "--model",
            model,
            "--vocab-size",
            "1000000",
            "--json",
            "--out",
        ];
        let done = run(&[&arguments[..], &[path(&out)]].concat(), "");
        assert!(done.status.success(), "{}", text(&done.stderr));
        let size = serde_json::from_slice::<Value>(&done.stdout).unwrap()["vocab_size"].as_u64().unwrap();
        assert!((50..100_000).contains(&size), "{model}: {size}");
        let warning = format!("only {size} pieces, fewer than vocab_size = 1000000");
        assert!(text(&done.stderr).contains(&warning), "{}", text(&done.stderr));
        assert!(out.join("tokenizer.json").is_file(), "{model}");
    }
}

#[test]
fn refused_input_ends_with_code_2_and_one_line_that_says_how_to_mend_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("empty.txt"), "\n").unwrap();
    std::fs::write(dir.path().join("tokenizer.json"), "{").unwrap();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures/small.model");
    let private = "train --embedded --delta 1e-6 --epsilon";
    let cases = [
        ("train --embedded --out v".to_owned(), "--epsilon"),
        (format!("{private} nan --out v"), "target epsilon = NaN"),
        (format!("{private} -1 --out v"), "epsilon = -1"),
        ("train --embedded --epsilon 1 --delta 1 --out v".to_owned(), "0 < delta < 1"),
        ("train --embedded --epsilon 1 --delta 0.5 --out v".to_owned(), "one over the number of units"),
        (format!("{private} 1 --method hoory-2021 --out v"), "--unit words:N"),
        (format!("{private} 1 --as-published --out v"), "--release hoory-2021"),
        ("train --public --input nowhere.txt --out v".to_owned(), "nowhere.txt: No such file"),
        ("train --public --input empty.txt --out v".to_owned(), "no record found"),
        ("train --embedded --public --vocab-size 10 --out v".to_owned(), "vocab_size = 10 is too small"),
        ("train --embedded --public --unit words:0 --out v".to_owned(), "words:N"),
        ("train --embedded --public --out /proc/nothing".to_owned(), "/proc/nothing"),
        ("train --embedded --public --model char --symbol <x> --out v".to_owned(), "unigram, bpe and byte"),
        ("train --embedded --public --cased --out v".to_owned(), "--cased goes with --model wordpiece"),
        ("train --embedded --public --character-coverage 1.5 --out v".to_owned(), "at most 1"),
        ("train --public".to_owned(), "--out <DIR>"),
        ("encode --tokenizer tokenizer.json".to_owned(), "dp-tokenizer: tokenizer.json, line"),
        (format!("encode --tokenizer {model} --input ."), "is a folder"),
        ("trian --public".to_owned(), "'train'"),
    ];
    for (line, expected) in cases {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_dp-tokenizer"));
        let done = program.args(line.split_whitespace()).current_dir(dir.path()).output().unwrap();
        let message = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{line}: {message}");
        // Progress may come first.
        assert!(message.lines().last().unwrap().contains(expected), "{line}: {message}");
    }
}

#[test]
fn ids_outside_the_vocabulary_are_refused_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let bad_ids = dir.path().join("t");
    assert!(
        run(&["train", "--embedded", "--public", "--vocab-size", "500", "--out", path(&bad_ids)], "")
            .status
            .success()
    );
    let done = run(&["decode", "--tokenizer", path(&bad_ids.join("tokenizer.json"))], "1 2\n3 500\n");
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("line 2: ids must be whole numbers below"), "{}", text(&done.stderr));
}

#[test]
fn a_published_formula_comes_with_its_true_delta() {
    let dir = tempfile::tempdir().unwrap();
    for method in ["hoory-2021", "ponomareva-2022"] {
        let out = dir.path().join(method);
        let mut arguments = vec![
            "train",
            "--embedded",
            "--epsilon",
            "8",
            "--delta",
            "1e-6",
            "--unit",
            "words:32",
            "--method",
            method,
        ];
        arguments.extend(["--vocab-size", "500", "--out", path(&out)]);
        succeed(&arguments, "");
        arguments.extend(["--as-published", "--overwrite"]);
        let done = run(&arguments, "");
        assert!(done.status.success(), "{}", text(&done.stderr));
        let privacy: Value =
            serde_json::from_str(&std::fs::read_to_string(out.join("privacy.json")).unwrap()).unwrap();
        assert_eq!(privacy["published"]["delta"], 1e-6);
        let really = privacy["delta"].as_f64().unwrap();
        assert!(really > 1e-5, "{really}");
        assert!(text(&done.stderr).contains("warning: noise and threshold by the printed formulas"));
    }
}

#[test]
fn text_that_is_not_utf8_is_refused_unless_told_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = dir.path().join("latin1.txt");
    std::fs::write(&corpus, b"caf\xe9 au lait\n".repeat(50)).unwrap();
    let out = dir.path().join("out");
    let mut arguments = vec!["train", "--public", "--vocab-size", "400", "--input", path(&corpus)];
    arguments.extend(["--out", path(&out)]);
    let refused = run(&arguments, "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("latin1.txt, line 1: not valid UTF-8"),
        "{}",
        text(&refused.stderr)
    );
    arguments.extend(["--invalid-utf8", "replace"]);
    succeed(&arguments, "");
    let tokenizer = out.join("tokenizer.json");
    let encode = ["encode", "--tokenizer", path(&tokenizer), "--input", path(&corpus)];
    let refused = run(&encode, "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("line 1: not valid UTF-8"), "{}", text(&refused.stderr));
    succeed(&[&encode[..], &["--invalid-utf8", "replace"]].concat(), "");
}

/// Nothing is written over what is there, and never over an input, by whatever name.
#[cfg(unix)]
#[test]
fn no_command_writes_over_a_file_that_it_was_not_told_to_replace() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let corpus = at("own.txt");
    std::fs::write(&corpus, "some words of mine\n".repeat(50)).unwrap();
    std::fs::hard_link(&corpus, at("hard.txt")).unwrap();
    std::os::unix::fs::symlink(&corpus, at("soft.txt")).unwrap();
    let (vocabulary, tokenizer) = (at("v"), at("v/tokenizer.json"));
    let train =
        ["train", "--public", "--vocab-size", "400", "--input", path(&corpus), "--out", path(&vocabulary)];
    succeed(&train, "");
    let refused = |arguments: &[&str], expected: &str| {
        let message = refusal(arguments, "");
        assert!(message.contains(expected), "{arguments:?}: {message}");
    };
    refused(&train, "replace it with --overwrite");
    succeed(&[&train[..], &["--overwrite"]].concat(), "");
    let encode = |out: &Path, more: &[&str]| {
        let out = path(out).to_owned();
        let start = ["encode", "--tokenizer", path(&tokenizer), "--input", path(&corpus), "--out", &out];
        [&start[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    for name in ["own.txt", "hard.txt", "soft.txt", "v/tokenizer.json"] {
        let arguments = encode(&at(name), &["--overwrite"]);
        refused(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), "is the input");
    }
    let tokens = encode(&at("own.tokens"), &[]);
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    succeed(&tokens, "");
    refused(&tokens, "replace it with --overwrite");
    let model = at("v.model");
    let convert = ["convert", "--tokenizer", path(&tokenizer), "--allow-rare-differences", "--out"];
    let convert = [&convert[..], &[path(&model)]].concat();
    succeed(&convert, "");
    refused(&convert, "replace it with --overwrite");
    refused(
        &["convert", "--tokenizer", path(&tokenizer), "--out", path(&tokenizer), "--overwrite"],
        "is the input",
    );
    std::fs::create_dir(at("run")).unwrap();
    std::fs::write(at("run/ledger.jsonl"), "").unwrap();
    refused(
        &["train", "--embedded", "--public", "--overwrite", "--out", path(&at("run"))],
        "folder of a training run",
    );
    assert!(std::fs::read_to_string(&corpus).unwrap().starts_with("some words of mine"));
}
