//! `encode --n-best` and `encode --sample`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use serde_json::{Value, json};

mod common;
use common::{refusal, run, text};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures/small.model");

#[test]
fn the_command_line_writes_segmentations_with_text_number_and_score() {
    let encode = |more: &[&str], input: &str| run(&[&["encode", "--tokenizer", MODEL], more].concat(), input);
    let lines = text(&encode(&["--n-best", "2", "--as", "tokens"], "privacy\nthe\n").stdout);
    let rows: Vec<Vec<&str>> = lines.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["1", "1", "2", "2"]);
    assert_eq!((rows[0][2], rows[1][2]), ("▁privacy", "▁pri v ac y"));
    assert!((rows[1][1].parse::<f64>().unwrap() + 28.264_144).abs() < 1e-4, "{}", rows[1][1]);
    let object: Value =
        serde_json::from_slice(&encode(&["--n-best", "1", "--as", "json"], "privacy").stdout).unwrap();
    assert_eq!((&object["text"], &object["ids"]), (&json!(1), &json!([369])));
    let sample = |seed: &str| {
        let lines = "privacy budget\n".repeat(20);
        text(&encode(&["--sample", "--alpha", "0.1", "--seed", seed], &lines).stdout)
    };
    assert!(sample("1") == sample("1") && sample("1") != sample("2"));
    assert_eq!(sample("1").lines().count(), 20);
    let bert = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures/vocab.txt");
    for (tokenizer, more, expected) in [
        (
            bert,
            &["--n-best", "3"][..],
            "need a unigram model, which scores them; this tokenizer's model is WordPiece",
        ),
        (bert, &["--sample", "--alpha", "0.1"], "sampling needs a unigram or BPE model"),
        (MODEL, &["--sample", "--alpha", "-1"], "0 or more for unigram"),
        (MODEL, &["--sample"], "--alpha <A>"),
        (MODEL, &["--seed", "1"], "--sample"),
        (MODEL, &["--n-best", "0"], "1..=1024"),
    ] {
        let message = refusal(&[&["encode", "--tokenizer", tokenizer], more].concat(), "x\n");
        assert!(message.contains(expected), "{more:?}: {message}");
    }
}
