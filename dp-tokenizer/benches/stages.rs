//! Counting, training, encoding and token files, on the novels of `../shared/data` where they are and on invented notes
//! elsewhere; beside Hugging Face's tokenizers and SentencePiece where `PEERS_PYTHON` names a Python that has them.
//!
//! One run; times are CPU seconds of all threads unless they are called wall seconds, and a ratio above 1 says how many
//! times more the peer takes for the same lines.

#![allow(clippy::print_stdout, reason = "a bench talks to its user")]

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

mod clock;

use clock::cpu_seconds;
use dp_tokenizer::corpus::{Source, open};
use dp_tokenizer::count::{CountOptions, UnitItems, Words};
use dp_tokenizer::release::public_corpus_counts;
use dp_tokenizer::tokens::{TokenDataset, encode_corpus};
use dp_tokenizer::train::{UnigramConfig, unigram};
use dp_tokenizer::unit::PrivacyUnit;
use tokenizer::Tokenizer;

/// The most bytes of text that are encoded and trained on beside peers, which are slow.
const TEXT_BYTES: usize = 8 << 20;

/// A Python program that encodes lines one by one with both peers and trains SentencePiece on them. It prints name, CPU
/// seconds and tokens.
const PEERS: &str = "
import os, sys, time
from tokenizers import Tokenizer
import sentencepiece
folder = sys.argv[1]
lines = open(folder + '/lines.txt', encoding='utf-8', newline='\\n').read().split('\\n')
hf = Tokenizer.from_file(folder + '/tokenizer.json')
sp = sentencepiece.SentencePieceProcessor(model_file=folder + '/small.model')
def timed(name, work):
    start = time.process_time()
    count = work()
    print(name, time.process_time() - start, count, flush=True)
timed('tokenizers', lambda: sum(len(hf.encode(line, add_special_tokens=False).ids) for line in lines))
timed('sentencepiece', lambda: sum(len(sp.encode(line)) for line in lines))
def train():
    sentencepiece.SentencePieceTrainer.train(input=folder + '/lines.txt', model_prefix=folder + '/peer', vocab_size=8000,
        model_type='unigram', normalization_rule_name='identity', byte_fallback=True, max_sentence_length=1 << 20,
        num_threads=1, minloglevel=2)
    peer = sentencepiece.SentencePieceProcessor(model_file=folder + '/peer.model')
    return sum(len(peer.encode(line)) for line in lines)
timed('training', train)
";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (text, lines) = corpus(folder.path())?;
    let bytes = text.metadata()?.len();
    println!("corpus  {:.1} MB of JSON lines", bytes as f64 / 1e6);
    counting(&text, bytes)?;

    let (mut kept, mut taken) = (0, 0);
    while taken < lines.len() && kept < TEXT_BYTES {
        kept += lines[taken].len();
        taken += 1;
    }
    let lines = &lines[..taken];
    std::fs::write(folder.path().join("lines.txt"), lines.join("\n"))?;
    let part = Source::files([folder.path().join("lines.txt")]);
    let start = Clock::start();
    let words = public_corpus_counts(&part, Words::ByClass, &options(1, usize::MAX))?;
    let trained = unigram(&words, &UnigramConfig { vocab_size: 8000, ..UnigramConfig::default() })?;
    let training = start.cpu();
    println!(
        "count and train unigram 8,000 on {:.1} MB, {} words  {training:.2} s",
        kept as f64 / 1e6,
        words.len()
    );
    let tokenizer = trained.tokenizer;

    let mut encoder = tokenizer.encoder();
    let start = Clock::start();
    let tokens: usize = lines.iter().map(|line| encoder.encode(line).len()).sum();
    let encoding = start.cpu();
    report("encode, one thread", start, kept);
    for threads in [1, 2] {
        let start = Clock::start();
        let ids = tokenizer.encode_batch(lines, threads);
        report(&format!("encode_batch, {threads} threads"), start, kept);
        let start = Clock::start();
        let text: usize = ids.iter().map(|ids| tokenizer.decode(ids).len()).sum();
        report("decode, one thread", start, text);
    }
    println!("{:.3} tokens a blank-separated word", tokens as f64 / blank_separated(lines) as f64);
    token_file(folder.path(), &text, &tokenizer)?;
    if let Some(python) = std::env::var_os("PEERS_PYTHON") {
        std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_json())?;
        std::fs::write(folder.path().join("small.model"), tokenizer.to_sentencepiece()?.to_bytes())?;
        beside_peers(Path::new(&python), folder.path(), &Measured { encoding, tokens, training })?;
    }
    if let Some(peak) = memory("VmHWM") {
        println!("peak memory of this process  {:.0} MB", peak as f64 / 1e6);
    }
    Ok(())
}

/// Returns the corpus as a plain file, so that unpacking is not measured, and its texts.
fn corpus(folder: &Path) -> Result<(PathBuf, Vec<String>), Box<dyn Error>> {
    let novels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/novels/novels.jsonl.zst");
    let (source, user_field) = match novels.is_file() {
        true => (Source::files([novels]), Some("user".to_owned())),
        false => (Source::Embedded { records: 100_000, seed: 7 }, None),
    };
    let source = match source {
        Source::Files(files) => Source::Files(dp_tokenizer::corpus::Files { user_field, ..files }),
        other => other,
    };
    let path = folder.join("corpus.jsonl");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path)?);
    let mut lines = Vec::new();
    for (number, record) in open(&source)?.enumerate() {
        let record = record?;
        let user = record.user.unwrap_or_else(|| format!("user {}", number % 50));
        let text = record.text.replace('\n', " ");
        writeln!(out, "{}", serde_json::json!({"user": user, "text": text}))?;
        lines.push(text);
    }
    out.into_inner()?;
    Ok((path, lines))
}

fn options(threads: usize, memory: usize) -> CountOptions {
    CountOptions { threads, memory, spill_folder: None }
}

fn counting(text: &Path, bytes: u64) -> Result<(), Box<dyn Error>> {
    let mut files = dp_tokenizer::corpus::Files::of([text.to_owned()]);
    files.user_field = Some("user".to_owned());
    let source = Source::Files(files);
    for threads in [1, 2] {
        let start = Clock::start();
        let words = public_corpus_counts(&source, Words::ByClass, &options(threads, usize::MAX))?;
        report(&format!("count, {threads} threads, {} distinct", words.len()), start, bytes as usize);
        drop(words);
        for (name, unit) in [
            ("record", PrivacyUnit::Record),
            ("user", PrivacyUnit::User),
            ("words:50", PrivacyUnit::Words(50)),
        ] {
            let start = Clock::start();
            drop(UnitItems::read(&source, unit, Words::ByClass, &options(threads, usize::MAX))?);
            report(&format!("count by unit {name}, {threads} threads"), start, bytes as usize);
        }
    }
    let start = Clock::start();
    drop(UnitItems::read(&source, PrivacyUnit::Record, Words::ByClass, &options(2, 32 << 20))?);
    report("count by unit record, 2 threads, in 32 MiB", start, bytes as usize);
    Ok(())
}

fn token_file(folder: &Path, text: &Path, tokenizer: &Tokenizer) -> Result<(), Box<dyn Error>> {
    let path = folder.join("corpus.tokens");
    let start = Clock::start();
    encode_corpus(&Source::files([text.to_owned()]), PrivacyUnit::Record, tokenizer, [0; 32], &path, 2)?;
    report("encode to a token file, 2 threads", start, text.metadata()?.len() as usize);
    let data = TokenDataset::open(&path)?;
    let (mut window, mut sum) = (Vec::new(), 0_u64);
    let windows = 200_000;
    let start = Instant::now();
    for n in 0..windows {
        let from = (n * 2_654_435_761) % (data.tokens() - 129);
        data.read(from..from + 129, &mut window)?;
        sum += u64::from(window[0]);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("windows of 129 tokens at random places  {:.0} a second ({sum})", windows as f64 / seconds);
    Ok(())
}

fn blank_separated(lines: &[String]) -> usize {
    lines.iter().map(|line| line.split_whitespace().count()).sum()
}

/// Measures wall and CPU time since its start.
#[derive(Clone, Copy)]
struct Clock {
    wall: Instant,
    cpu: f64,
}

impl Clock {
    fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu_seconds() }
    }

    fn cpu(self) -> f64 {
        cpu_seconds() - self.cpu
    }
}

/// Returns a figure of /proc/self/status in bytes.
fn memory(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

fn report(stage: &str, start: Clock, bytes: usize) {
    let (wall, cpu) = (start.wall.elapsed().as_secs_f64(), start.cpu());
    let speed = |seconds: f64| bytes as f64 / 1e6 / seconds;
    println!(
        "{stage}  {wall:.2} wall s, {:.1} MB/s; {cpu:.2} CPU s, {:.1} MB/s a core",
        speed(wall),
        speed(cpu)
    );
}

/// The figures of this crate.
struct Measured {
    /// CPU seconds of encoding.
    encoding: f64,
    /// Tokens of the encoded text.
    tokens: usize,
    /// CPU seconds of training.
    training: f64,
}

fn beside_peers(python: &Path, folder: &Path, own: &Measured) -> Result<(), Box<dyn Error>> {
    let output = Command::new(python)
        .env("TOKENIZERS_PARALLELISM", "false")
        .args(["-c", PEERS])
        .arg(folder)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    for answer in String::from_utf8(output.stdout)?.lines() {
        let [name, seconds, count] = answer.split(' ').collect::<Vec<_>>()[..] else { continue };
        let seconds: f64 = seconds.parse()?;
        let ours = if name == "training" { own.training } else { own.encoding };
        println!("{name} by its peer  {seconds:.2} CPU s, {count} tokens: {:.1} times ours", seconds / ours);
        if name == "tokenizers" && count.parse() != Ok(own.tokens) {
            return Err("the peer cuts the lines differently".into());
        }
    }
    Ok(())
}
