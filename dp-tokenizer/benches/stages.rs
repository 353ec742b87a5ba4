//! Counting, training and encoding, on the novels of `../shared/data` where they are and on invented notes elsewhere;
//! encoding beside Hugging Face's tokenizers where `PEERS_PYTHON` names a Python that has them.
//!
//! One thread, one run; a ratio above 1 says how many times longer the peer takes on the same lines.

#![allow(clippy::print_stdout, reason = "a bench talks to its user")]

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use dp_tokenizer::corpus::{Source, open};
use dp_tokenizer::release::public_counts;
use dp_tokenizer::train::{UnigramConfig, unigram};
use dp_tokenizer::unit::{PrivacyUnit, pieces};

/// Encoded text, at most: the peer is slow.
const MOST_BYTES: usize = 8 << 20;

/// Reads lines, encodes them one by one, prints the seconds and the number of tokens.
const PEER: &str = "
import sys, time
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
lines = open(sys.argv[2], encoding='utf-8', newline='\\n').read().split('\\n')
start = time.perf_counter()
count = sum(len(tokenizer.encode(line, add_special_tokens=False).ids) for line in lines)
print(time.perf_counter() - start, count)
";

fn main() -> Result<(), Box<dyn Error>> {
    let novels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/novels/novels.jsonl.zst");
    let source = if novels.is_file() {
        Source::files([novels])
    } else {
        Source::Embedded { records: 100_000, seed: 7 }
    };
    let mut lines = Vec::new();
    let mut bytes = 0;
    for record in open(&source)? {
        let text = record?.text.replace('\n', " ");
        bytes += text.len();
        lines.push(text);
    }

    let start = Instant::now();
    let words = public_counts(pieces(open(&source)?, PrivacyUnit::Record)?)?;
    report("read and count", start, bytes);

    let start = Instant::now();
    let trained = unigram(&words, &UnigramConfig { vocab_size: 8000, ..UnigramConfig::default() })?;
    println!("train unigram, 8,000 of {} words  {:.2} s", words.len(), start.elapsed().as_secs_f64());

    let (mut kept, mut taken) = (0, 0);
    while taken < lines.len() && kept < MOST_BYTES {
        kept += lines[taken].len();
        taken += 1;
    }
    lines.truncate(taken);
    let mut encoder = trained.tokenizer.encoder();
    let start = Instant::now();
    let tokens: usize = lines.iter().map(|line| encoder.encode(line).len()).sum();
    let ours = report("encode", start, kept);
    println!("{:.3} tokens a blank-separated word", tokens as f64 / blank_separated(&lines) as f64);
    match std::env::var_os("PEERS_PYTHON") {
        Some(python) => beside_peer(Path::new(&python), &trained.tokenizer.to_json(), &lines, (ours, tokens)),
        None => Ok(()),
    }
}

fn blank_separated(lines: &[String]) -> usize {
    lines.iter().map(|line| line.split_whitespace().count()).sum()
}

fn report(stage: &str, start: Instant, bytes: usize) -> f64 {
    let seconds = start.elapsed().as_secs_f64();
    println!("{stage}  {seconds:.2} s  {:.1} MB/s", bytes as f64 / 1e6 / seconds);
    seconds
}

fn beside_peer(
    python: &Path,
    tokenizer: &str,
    lines: &[String],
    ours: (f64, usize),
) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (model, text) = (folder.path().join("tokenizer.json"), folder.path().join("lines.txt"));
    std::fs::write(&model, tokenizer)?;
    std::fs::write(&text, lines.join("\n"))?;
    let output = Command::new(python)
        .env("TOKENIZERS_PARALLELISM", "false")
        .args(["-c", PEER])
        .args([&model, &text])
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let answer = String::from_utf8(output.stdout)?;
    let (seconds, count) = answer.trim().split_once(' ').ok_or("the peer gave no figures")?;
    let seconds: f64 = seconds.parse()?;
    println!("the same by tokenizers  {seconds:.2} s: {:.1} times ours", seconds / ours.0);
    if count.parse() == Ok(ours.1) { Ok(()) } else { Err("the peer cuts the lines differently".into()) }
}
