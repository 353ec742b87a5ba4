//! Training text: archives, tables, records, token files.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

#[path = "../../../dp-tokenizer/tests/common/parquet.rs"]
mod parquet;

use super::common::tiny;
use super::{Hostile, nested};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A plan of this text, as the objective reads it.
fn text(name: &str, file: &'static str, bytes: impl Into<Vec<u8>>, objective: &str) -> Hostile {
    let mut plan = tiny();
    plan["data"] = json!({ "source": { "path": file }, "units": 300 });
    plan["training"]["steps"] = json!(1);
    plan["training"]["learning_rate"] = json!({ "peak": 1e-3 });
    plan["training"]["objective"] = json!(objective);
    plan.as_object_mut().unwrap().remove("evaluation");
    match objective {
        "sequence_classification" | "token_classification" => plan["training"]["labels"] = json!(["a", "b"]),
        "text_to_text" => plan["data"]["target_field"] = json!("target"),
        _ => {}
    }
    Hostile::new(name, "--quiet --plan {}/plan.json --out {}/run", "data.source")
        .file("plan.json", plan.to_string())
        .file(file, bytes)
}

fn archives() -> Vec<Hostile> {
    let zeros = vec![b'0'; 300_000_000];
    let bomb = gzip(&zeros);
    let lines = gzip(&b"0\n".repeat(100_000_000));
    // The header of a frame with a window of 2^41 bytes.
    let window = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xF8, 0x01, 0x00, 0x00];
    // A frame of 4,096 blocks, each 128 KiB of one byte: 512 MiB in 16 KB.
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58];
    for block in 0..4096_u32 {
        let header = (128 << 10) << 3 | 1 << 1 | u32::from(block == 4095);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(b'0');
    }
    vec![
        text("300 MB of one line in 0.3 MB", "a.txt.gz", bomb.clone(), "causal_lm"),
        text(
            "a record of 300 MB in 0.3 MB",
            "a.jsonl.gz",
            gzip(&[b"{\"text\":\"", &zeros[..], b"\"}\n"].concat()),
            "causal_lm",
        ),
        text(
            "a cell of 300 MB in 0.3 MB",
            "a.csv.gz",
            gzip(&[b"text\n\"", &zeros[..], b"\"\n"].concat()),
            "causal_lm",
        ),
        text(
            "an array of 300 MB in 0.3 MB",
            "a.json.gz",
            gzip(&[b"[", &zeros[..], b"]"].concat()),
            "causal_lm",
        ),
        text("100 million lines in 0.2 MB", "a.txt.gz", lines, "causal_lm").or_read(),
        text("512 MB of one line in 16 KB", "a.txt.zst", frame, "causal_lm"),
        text("a window of 2^41 bytes", "a.txt.zst", window, "causal_lm"),
        text("an archive in an archive", "a.txt.gz", gzip(&bomb), "causal_lm"),
        text("a cut archive", "a.txt.gz", &bomb[..500], "causal_lm"),
        text("an archive of nothing", "a.txt.gz", gzip(b""), "causal_lm"),
        text("archives one after the other", "a.txt.gz", gzip(b"a\n").repeat(100_000), "causal_lm").or_read(),
    ]
}

fn tables() -> Vec<Hostile> {
    vec![
        text("one line of 80 MB", "a.txt", "a".repeat(80_000_000), "causal_lm"),
        text("a million empty lines", "a.txt", "\n".repeat(1_000_000), "causal_lm"),
        text(
            "a quotation without an end",
            "a.csv",
            format!("text\n\"{}", "a\n".repeat(20_000_000)),
            "causal_lm",
        ),
        text("a row of 20 million fields", "a.csv", format!("text\n{}", ",".repeat(20_000_000)), "causal_lm"),
        text(
            "a header of 20 million fields",
            "a.csv",
            format!("{}text\na\n", ",".repeat(20_000_000)),
            "causal_lm",
        ),
        text(
            "records of lists in lists",
            "a.jsonl",
            format!("{{\"x\":{},\"text\":\"a\"}}\n", nested("[", "", "]", 1_000_000)),
            "causal_lm",
        )
        // The field is not read.
        .or_read(),
        text("an array of arrays", "a.json", nested("[", "", "]", 1_000_000), "causal_lm"),
        text("a number as a text", "a.jsonl", "{\"text\":1e999}\n", "causal_lm"),
        text("half an escape", "a.jsonl", "{\"text\":\"\\ud800\"}\n", "causal_lm"),
        text("a text twice in a record", "a.jsonl", "{\"text\":\"a\",\"text\":\"b\"}\n", "causal_lm")
            .or_read(),
    ]
}

fn labels() -> Vec<Hostile> {
    vec![
        text(
            "a label of 10 MB",
            "a.jsonl",
            format!("{{\"text\":\"a\",\"label\":\"{}\"}}\n", "a".repeat(10_000_000)),
            "sequence_classification",
        ),
        text(
            "a million labels of one text",
            "a.jsonl",
            format!("{{\"text\":\"a\",\"label\":{}}}\n", Value::from(vec!["a"; 1_000_000])),
            "sequence_classification",
        ),
        text(
            "a million tags of one word",
            "a.jsonl",
            format!("{{\"text\":[\"a\"],\"label\":{}}}\n", Value::from(vec!["a"; 1_000_000])),
            "token_classification",
        ),
        text(
            "words of lists in lists",
            "a.jsonl",
            format!("{{\"text\":{},\"label\":[]}}\n", nested("[", "", "]", 1_000_000)),
            "token_classification",
        ),
        text(
            "messages of lists in lists",
            "a.jsonl",
            format!("{{\"text\":\"a\",\"target\":{}}}\n", nested("[", "", "]", 1_000_000)),
            "text_to_text",
        ),
        text("a file of zero bytes", "a.txt", vec![0; 10_000_000], "causal_lm").or_read(),
        text("a token file of nothing", "a.tokens", "", "causal_lm"),
        text("a token file of 2^64 - 1 tokens", "a.tokens", vec![0xFF; 1000], "causal_lm"),
        text(
            "a parquet file of a length of 2^32 - 1",
            "a.parquet",
            [&b"PAR1"[..], &[0xFF; 100], b"PAR1"].concat(),
            "causal_lm",
        ),
    ]
}

/// A program without the feature refuses all of these by their name.
fn parquets() -> Vec<Hostile> {
    let all = parquet::hostile();
    all.into_iter().map(|(name, _, bytes)| text(name, "a.parquet", bytes, "causal_lm")).collect()
}

/// Public text, prompts and scores.
fn others() -> Vec<Hostile> {
    let deep = nested("[", "", "]", 1_000_000);
    vec![
        Hostile::new("a text of one line of 80 MB to look at", "init {}/a.txt --out {}/plan.json", "a.txt")
            .file("a.txt", "a".repeat(80_000_000)),
        Hostile::new("records of lists in lists to look at", "init {}/a.jsonl --out {}/plan.json", "a.jsonl")
            .file("a.jsonl", format!("{deep}\n")),
        Hostile::new("a folder of runs", "runs {}", "")
            .file("run/ledger.jsonl", format!("{deep}\n"))
            .file("other/plan.json", deep)
            .or_read(),
    ]
}

pub(crate) fn all() -> Vec<Hostile> {
    [archives(), tables(), labels(), parquets(), others()].into_iter().flatten().collect()
}
