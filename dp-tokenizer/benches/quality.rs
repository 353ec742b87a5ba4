//! Vocabularies of 8,000 and 32,000 tokens and how short they make text that they were not learnt from: unigram beside
//! SentencePiece, BPE and WordPiece beside Hugging Face's tokenizers, where `PEERS_PYTHON` names a Python that has them.
//!
//! All learn from every fourth paragraph of the novels of `../shared/data` (invented notes elsewhere), without noise,
//! normalization or a blank put in front, with bytes for characters they do not know, on one thread. Times are CPU seconds of the whole
//! training, reading and counting included.

#![allow(clippy::print_stdout, reason = "a bench talks to its user")]

use std::error::Error;
use std::path::Path;
use std::process::Command;

mod clock;

use clock::cpu_seconds;
use dp_tokenizer::corpus::{Source, open};
use dp_tokenizer::count::{CountOptions, Words};
use dp_tokenizer::release::public_corpus_counts;
use dp_tokenizer::train::{BpeConfig, TrainError, UnigramConfig, WordPieceTraining, bpe, unigram, wordpiece};
use tokenizer::Tokenizer;

const SIZES: [usize; 2] = [8_000, 32_000];

/// Trains on one file and encodes another; prints CPU seconds and tokens.
const PEER: &str = "
import sys, time
folder, size, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
lines = open(folder + '/held.txt', encoding='utf-8', newline='\\n').read().split('\\n')
if kind == 'unigram':
    import sentencepiece
    start = time.process_time()
    sentencepiece.SentencePieceTrainer.train(input=folder + '/train.txt', model_prefix=folder + '/peer', vocab_size=size,
        model_type='unigram', normalization_rule_name='identity', byte_fallback=True, add_dummy_prefix=False,
        max_sentence_length=1 << 20, num_threads=1, minloglevel=2)
    seconds = time.process_time() - start
    peer = sentencepiece.SentencePieceProcessor(model_file=folder + '/peer.model')
    print(seconds, sum(len(peer.encode(line)) for line in lines))
else:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    if kind == 'BPE':
        peer = Tokenizer(models.BPE())
        peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=['<pad>', '</s>', '<unk>'], show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    else:
        peer = Tokenizer(models.WordPiece(unk_token='[UNK]'))
        peer.normalizer = normalizers.BertNormalizer()
        peer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=size, show_progress=False,
            special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'])
    start = time.process_time()
    peer.train([folder + '/train.txt'], trainer)
    seconds = time.process_time() - start
    print(seconds, sum(len(found.ids) for found in peer.encode_batch(lines)))
";

/// The name, a function that trains a vocabulary on words, and the name of the peer.
type Kind = (&'static str, fn(&[(String, f64)], usize) -> Result<Tokenizer, TrainError>, &'static str);

const KINDS: [Kind; 3] = [
    (
        "unigram",
        |words, vocab_size| {
            Ok(unigram(words, &UnigramConfig { vocab_size, ..UnigramConfig::default() })?.tokenizer)
        },
        "SentencePiece",
    ),
    (
        "BPE",
        |words, vocab_size| Ok(bpe(words, &BpeConfig { vocab_size, ..BpeConfig::default() })?.tokenizer),
        "tokenizers",
    ),
    (
        "WordPiece",
        |words, vocab_size| {
            Ok(wordpiece(words, &WordPieceTraining { vocab_size, ..WordPieceTraining::default() })?.tokenizer)
        },
        "tokenizers",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (train, held) = corpus()?;
    let train_file = folder.path().join("train.txt");
    std::fs::write(&train_file, train.join("\n"))?;
    std::fs::write(folder.path().join("held.txt"), held.join("\n"))?;
    let words = count(&held) as f64;
    println!("{} words learnt from, {words} held out", count(&train));
    drop(train);
    let source = Source::files([train_file]);
    for ((name, train, peer_name), vocab_size) in
        KINDS.into_iter().flat_map(|kind| SIZES.map(|size| (kind, size)))
    {
        let start = cpu_seconds();
        let options = CountOptions { threads: 1, ..CountOptions::default() };
        let tokenizer = train(&public_corpus_counts(&source, Words::ByClass, &options)?, vocab_size)?;
        let seconds = cpu_seconds() - start;
        let mut encoder = tokenizer.encoder();
        let tokens: usize = held.iter().map(|line| encoder.encode(line).len()).sum();
        println!("{name} {vocab_size}: {:.4} tokens a word, {seconds:.2} CPU s", tokens as f64 / words);
        if let Some(python) = std::env::var_os("PEERS_PYTHON") {
            let (peer_seconds, peer_tokens) = peer(Path::new(&python), folder.path(), vocab_size, name)?;
            println!(
                "    {peer_name}: {:.4} tokens a word, {peer_seconds:.2} CPU s: {:.1} times ours",
                peer_tokens as f64 / words,
                peer_seconds / seconds
            );
        }
    }
    Ok(())
}

/// Returns the text to learn from, and the text held out.
fn corpus() -> Result<(Vec<String>, Vec<String>), Box<dyn Error>> {
    let novels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/novels/novels.jsonl.zst");
    let source = match novels.is_file() {
        true => Source::files([novels]),
        false => Source::Embedded { records: 100_000, seed: 7 },
    };
    let (mut train, mut held) = (Vec::new(), Vec::new());
    for (number, record) in open(&source)?.enumerate() {
        let text = record?.text.replace('\n', " ");
        match number % 28 {
            2 => held.push(text),
            other if other % 4 == 0 => train.push(text),
            _ => {}
        }
    }
    Ok((train, held))
}

/// Counts the words, which are separated by blanks.
fn count(lines: &[String]) -> usize {
    lines.iter().map(|line| line.split_whitespace().count()).sum()
}

fn peer(python: &Path, folder: &Path, size: usize, kind: &str) -> Result<(f64, usize), Box<dyn Error>> {
    let output = Command::new(python)
        .args(["-c", PEER])
        .arg(folder)
        .args([&size.to_string(), kind])
        .env("TOKENIZERS_PARALLELISM", "false")
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let answer = String::from_utf8(output.stdout)?;
    let (seconds, tokens) = answer.trim().split_once(' ').ok_or("the peer said nothing")?;
    Ok((seconds.parse()?, tokens.parse()?))
}
