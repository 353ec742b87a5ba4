//! Encoding speed of each kind of vocabulary, on 8 MB of the novels of `../shared/data` with its public vocabularies; beside
//! Hugging Face's tokenizers and SentencePiece where `PEERS_PYTHON` names a Python that has them.
//!
//! With a Python that has them, also vocabularies of 8,000 tokens with the structure of other models, which Hugging Face's library
//! trains. An argument names those to run.
//!
//! Times are CPU time of one thread, the best of several runs; a ratio above 1 says how many times more the peer takes. Of a
//! peer's ways to encode (line by line, a list of lines) the quickest counts. Batches, of four times the text, are timed by the
//! clock on one thread and on two.

#![allow(clippy::print_stdout, reason = "a bench talks to its user")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use dp_tokenizer::corpus::{Source, open};
use dp_tokenizer::count::{CountOptions, Words};
use dp_tokenizer::release::public_corpus_counts;
use dp_tokenizer::train::{UnigramConfig, unigram};
use tokenizer::normalize::BertNormalizer;
use tokenizer::sentencepiece::SentencePieceModel;
use tokenizer::{Tokenizer, format::vocab_txt};

const TEXT_BYTES: usize = 8 << 20;
const RUNS: usize = 5;

/// A Python program that writes vocabularies of the structure of other models.
const MODELS: &str = include_str!("../examples/conformance/models.py");

/// Models whose structures differ in what takes time.
const STRUCTURES: [&str; 14] = [
    "llama2",
    "mistral",
    "gemma",
    "llama3",
    "gpt4o",
    "qwen2",
    "deepseek-v3",
    "falcon",
    "roberta",
    "clip",
    "xlm-r",
    "albert",
    "deberta-v3",
    "nllb",
];

const PEERS: &str = "
import sys, time
lines = open(sys.argv[2], encoding='utf-8', newline='\\n').read().split('\\n')
path = sys.argv[1]
if path.endswith('.model'):
    import sentencepiece
    sp = sentencepiece.SentencePieceProcessor(model_file=path)
    ways = [lambda: [sp.encode(line) for line in lines], lambda: sp.encode(lines, num_threads=1)] * 2
else:
    from tokenizers import Tokenizer
    hf = Tokenizer.from_file(path)
    ways = [lambda: [hf.encode(line, add_special_tokens=False).ids for line in lines],
        lambda: [found.ids for found in hf.encode_batch_fast(lines, add_special_tokens=False)]]
best = float('inf')
for way in ways:
    start = time.process_time()
    ids = way()
    best = min(best, time.process_time() - start)
print(best, sum(map(len, ids)))
";

fn main() -> Result<(), Box<dyn Error>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let file = |path: &str| data.join("tokenizers").join(path);
    if !file("hf").is_dir() {
        println!("SKIPPED: {} is not here", data.display());
        return Ok(());
    }
    let batch = corpus(&data, 4 * TEXT_BYTES)?;
    let lines = corpus(&data, TEXT_BYTES)?;
    let bytes: usize = lines.iter().map(String::len).sum();
    let folder = tempfile::tempdir()?;
    let text = folder.path().join("lines.txt");
    std::fs::write(&text, lines.join("\n"))?;
    println!("{:.1} MB, {} lines", bytes as f64 / 1e6, lines.len());

    let options = CountOptions { threads: 1, memory: usize::MAX, spill_folder: None };
    let words = public_corpus_counts(&Source::files([text.clone()]), Words::ByClass, &options)?;
    let own = unigram(&words, &UnigramConfig::default())?.tokenizer;
    let model = folder.path().join("own.model");
    std::fs::write(&model, own.to_sentencepiece()?.to_bytes())?;
    let t5 = file("torchtext/t5_tokenizer_base.model");
    let t5_model = SentencePieceModel::from_bytes(&std::fs::read(&t5)?)?;
    let bert = vocab_txt::read(&std::fs::read(file("torchtext/bert_base_uncased_vocab.txt"))?)?;
    let json =
        |path: &str| Ok::<_, Box<dyn Error>>(Tokenizer::from_json(&std::fs::read_to_string(file(path))?)?);
    let cases: [(&str, Tokenizer, Option<PathBuf>); 5] = [
        ("unigram 8,000, trained here", own, Some(model)),
        ("T5 tokenizer.json", json("hf/t5-small/tokenizer.json")?, None),
        ("T5 .model", Tokenizer::from_sentencepiece(&t5_model)?, Some(t5)),
        ("BERT", Tokenizer::bert(bert, BertNormalizer::uncased())?, None),
        ("GPT-2", json("hf/gpt2/tokenizer.json")?, None),
    ];
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted =
        |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| name.starts_with(wanted.as_str()));
    let mut cases = Vec::from(cases);
    cases.extend(structures(&data, folder.path(), &text, &is_wanted)?);
    for (name, tokenizer, model) in cases.into_iter().filter(|case| is_wanted(case.0)) {
        let (seconds, tokens) = best(&tokenizer, &lines);
        let speed = |seconds: f64| bytes as f64 / 1e6 / seconds;
        println!("{name}: {:.1} MB/s, {tokens} tokens", speed(seconds));
        let [one, two] = [1, 2].map(|threads| batch_speed(&tokenizer, &batch, threads));
        println!("    batch: {one:.1} MB/s by the clock, {two:.1} on two threads ({:.2} times)", two / one);
        let form = folder.path().join("tokenizer.json");
        std::fs::write(&form, tokenizer.to_json())?;
        // A `.model` as tokenizer.json is another tokenizer, which need not agree.
        let hf = (name != "T5 .model").then_some(("tokenizers", form));
        for (peer, path) in hf.into_iter().chain(model.map(|path| ("SentencePiece", path))) {
            if let Some((theirs, count)) = beside(&path, &text)? {
                println!(
                    "    {peer} {:.1} MB/s, {count} tokens: {:.1} times ours",
                    speed(theirs),
                    theirs / seconds
                );
            }
        }
    }
    Ok(())
}

type Case = (&'static str, Tokenizer, Option<PathBuf>);

/// Returns the wanted ones of [`STRUCTURES`], if there is a Python.
fn structures(
    data: &Path,
    folder: &Path,
    text: &Path,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Case>, Box<dyn Error>> {
    let names: Vec<&str> = STRUCTURES.into_iter().filter(|name| is_wanted(name)).collect();
    let Some(python) = std::env::var_os("PEERS_PYTHON").filter(|_| !names.is_empty()) else {
        return Ok(Vec::new());
    };
    let (script, models) = (folder.join("models.py"), folder.join("models"));
    std::fs::write(&script, MODELS)?;
    let made = Command::new(python)
        .env("T5_FOLDER", data.join("tokenizers/hf/t5-small"))
        .args([&script, &models, text])
        .arg("8000")
        .args(&names)
        .status()?;
    if !made.success() {
        return Err("models.py failed; its message stands above".into());
    }
    let read = |name| -> Result<Case, Box<dyn Error>> {
        let json = std::fs::read_to_string(models.join(format!("{name}.json")))?;
        Ok((name, Tokenizer::from_json(&json)?, None))
    };
    names.into_iter().map(read).collect()
}

fn corpus(data: &Path, most: usize) -> Result<Vec<String>, Box<dyn Error>> {
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    for record in open(&Source::files([data.join("novels/novels.jsonl.zst")]))? {
        let text = record?.text.replace('\n', " ");
        bytes += text.len();
        lines.push(text);
        if bytes >= most {
            break;
        }
    }
    Ok(lines)
}

/// Returns MB/s by the clock, the best of three runs.
fn batch_speed(tokenizer: &Tokenizer, lines: &[String], threads: usize) -> f64 {
    let bytes: usize = lines.iter().map(String::len).sum();
    let run = || {
        let start = Instant::now();
        drop(tokenizer.encode_batch(lines, threads));
        bytes as f64 / 1e6 / start.elapsed().as_secs_f64()
    };
    (0..3).map(|_| run()).fold(0.0, f64::max)
}

fn best(tokenizer: &Tokenizer, lines: &[String]) -> (f64, usize) {
    let mut best = (f64::INFINITY, 0);
    for _ in 0..RUNS {
        let (wall, start) = (Instant::now(), cpu_seconds());
        let mut encoder = tokenizer.encoder();
        let tokens = lines.iter().map(|line| encoder.encode(line).len()).sum();
        let seconds = match start.zip(cpu_seconds()) {
            Some((start, end)) => end - start,
            None => wall.elapsed().as_secs_f64(),
        };
        best = (best.0.min(seconds), tokens);
    }
    best
}

/// Returns the CPU seconds of the main thread, where the system tells.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(stat.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

/// Returns CPU seconds and tokens of the peer, if there is one.
fn beside(model: &Path, text: &Path) -> Result<Option<(f64, usize)>, Box<dyn Error>> {
    let Some(python) = std::env::var_os("PEERS_PYTHON") else { return Ok(None) };
    let output = Command::new(python)
        .env("TOKENIZERS_PARALLELISM", "false")
        .args(["-c", PEERS])
        .args([model, text])
        .stderr(Stdio::inherit())
        .output()?;
    let answer = String::from_utf8(output.stdout)?;
    let (seconds, count) = answer.trim().split_once(' ').ok_or("the peer failed")?;
    Ok(Some((seconds.parse()?, count.parse()?)))
}
