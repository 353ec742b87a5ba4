//! Vocabularies from released words, and how short they make text that nothing was learnt from, in tokens per word (between
//! blanks): IRC by user, invented notes by record, novels by 50 words, at ε = 1, 3 and 8 and δ = 1e-6.
//!
//! A tenth of the IRC users is held out, notes of another seed, and every 28th paragraph of the novels; novels are learnt from
//! every fourth. `PART=dev` takes other held-out text, on which settings were chosen. `bare` learns from the released words
//! alone, as this crate did before. The last column is of all words of the text, without noise. Public vocabularies are GPT-2's and T5's, where `../shared/data` has them.

#![allow(clippy::print_stdout, reason = "a bench talks to its user")]

use std::error::Error;
use std::path::{Path, PathBuf};

mod clock;

use accountant::NeighboringRelation::AddOrRemoveOne;
use accountant::calibrate::EpsilonTarget;
use accountant::{Delta, budget};
use clock::cpu_seconds;
use dp_tokenizer::corpus::{Files, Record, Source, open};
use dp_tokenizer::count::{CountOptions, UnitItems, Words};
use dp_tokenizer::release::{ReleaseConfig, public_item_counts, release_items};
use dp_tokenizer::train::{BpeConfig, TrainError, UnigramConfig, bpe, extend, unigram};
use dp_tokenizer::unit::PrivacyUnit;
use mechanisms::{ReleaseMethod, TestRng};
use tokenizer::Tokenizer;
use tokenizer::format::gpt2;
use tokenizer::sentencepiece::SentencePieceModel;

const DELTA: f64 = 1e-6;
const EPSILONS: [f64; 3] = [1.0, 3.0, 8.0];
const ADDED_TOKENS: usize = 4000;
/// The number of draws of noise, over which figures are averaged.
const DRAWS: u64 = 3;

/// Text to learn from, its units, and text held out.
struct Corpus {
    name: &'static str,
    private: Source,
    unit: PrivacyUnit,
    held: Vec<String>,
}

/// Released words with their counts.
type Found = Vec<(String, f64)>;

type Train = fn(&[(String, f64)]) -> Result<Tokenizer, TrainError>;

/// The name, the kind of words, and the training on the released words.
const METHODS: [(&str, Words, Train); 8] = [
    ("BPE, bare", Words::ByClass, |words| Ok(bpe(words, &BpeConfig::default())?.tokenizer)),
    ("unigram, bare", Words::ByClass, |words| Ok(unigram(words, &UnigramConfig::default())?.tokenizer)),
    ("BPE", Words::ByClass, |words| {
        Ok(bpe(words, &BpeConfig { released: true, ..BpeConfig::default() })?.tokenizer)
    }),
    ("unigram", Words::ByClass, |words| released_unigram(words, Words::ByClass)),
    ("unigram, as written", Words::AsWritten, |words| released_unigram(words, Words::AsWritten)),
    ("BPE, runs", Words::Runs, |words| {
        let config = BpeConfig { released: true, split_by_whitespace: false, ..BpeConfig::default() };
        Ok(bpe(words, &config)?.tokenizer)
    }),
    ("unigram, runs, bare", Words::Runs, |words| {
        let config = UnigramConfig { split_by_whitespace: false, ..UnigramConfig::default() };
        Ok(unigram(words, &config)?.tokenizer)
    }),
    ("unigram, runs", Words::Runs, |words| released_unigram(words, Words::Runs)),
];

fn released_unigram(words: &[(String, f64)], kind: Words) -> Result<Tokenizer, TrainError> {
    let split_by_whitespace = kind != Words::Runs;
    let config = UnigramConfig { released: Some(kind), split_by_whitespace, ..UnigramConfig::default() };
    Ok(unigram(words, &config)?.tokenizer)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let public = public()?;
    for corpus in corpora(folder.path())? {
        let words: usize = corpus.held.iter().map(|line| line.split_whitespace().count()).sum();
        let score = |tokenizer: &Tokenizer| {
            let mut encoder = tokenizer.encoder();
            let tokens: usize = corpus.held.iter().map(|line| encoder.encode(line).len()).sum();
            tokens as f64 / words as f64
        };
        println!("{}: {words} words held out", corpus.name);
        let options = CountOptions { threads: 2, ..CountOptions::default() };
        let items = |words| UnitItems::read(&corpus.private, corpus.unit, words, &options);
        // The words found at each ε, then all words of the text.
        let found = |words| -> Result<Vec<Vec<Found>>, Box<dyn Error>> {
            let items = items(words)?;
            let draws = |&epsilon| (1..=DRAWS).map(|seed| released(&items, epsilon, seed)).collect();
            let mut found: Vec<Vec<Found>> = EPSILONS.iter().map(draws).collect::<Result<_, _>>()?;
            found.push(vec![public_item_counts(&items)?]);
            Ok(found)
        };
        let (by_class, as_written) = (found(Words::ByClass)?, found(Words::AsWritten)?);
        let runs = found(Words::Runs)?;
        for (name, words, train) in METHODS {
            let mut line = format!("    {name:<22}");
            let found = match words {
                Words::ByClass | Words::Pairs | Words::PairsByLabel => &by_class,
                Words::AsWritten => &as_written,
                Words::Runs => &runs,
            };
            for draws in found {
                let start = cpu_seconds();
                let tokenizers =
                    draws.iter().map(|released| train(released)).collect::<Result<Vec<_>, _>>()?;
                let seconds = (cpu_seconds() - start) / draws.len() as f64;
                let scores: Vec<f64> = tokenizers.iter().map(score).collect();
                let mean = scores.iter().sum::<f64>() / scores.len() as f64;
                let most = scores.iter().map(|score| (score - mean).abs()).fold(0.0, f64::max);
                let found = draws.iter().map(Vec::len).sum::<usize>() / draws.len();
                line.push_str(&format!("{mean:.4} ± {most:.4} ({found} words, {seconds:.2} s)  "));
            }
            println!("{line}");
        }
        for (name, tokenizer) in &public {
            let mut line = format!("    {name:<22}{:.4}, extended ", score(tokenizer));
            for draws in &by_class {
                let extended = extend(tokenizer, &draws[0], ADDED_TOKENS)?.tokenizer;
                let added = extended.vocab_size() - tokenizer.vocab_size();
                line.push_str(&format!("{:.4} (+{added})  ", score(&extended)));
            }
            println!("{line}");
        }
    }
    Ok(())
}

/// Returns the words that the default method finds.
fn released(items: &UnitItems, epsilon: f64, seed: u64) -> Result<Found, Box<dyn Error>> {
    let (method, delta) = (ReleaseMethod::Pooled, Delta::new(DELTA)?);
    let threshold = budget::threshold_delta(delta);
    let target = EpsilonTarget { epsilon, delta, relation: AddOrRemoveOne };
    let noise = target.noise_multiplier(|noise| method.event(noise, threshold))?;
    let config = ReleaseConfig::new(method, noise, threshold)?;
    Ok(release_items(items, &config, &TestRng::from_seed(seed))?.words)
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data")
}

fn public() -> Result<Vec<(&'static str, Tokenizer)>, Box<dyn Error>> {
    let folder = data().join("tokenizers/torchtext");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let vocabulary = gpt2::read_vocab(&std::fs::read(folder.join("gpt2_bpe_encoder.json"))?[..])?;
    let merges = gpt2::read_merges(&std::fs::read(folder.join("gpt2_bpe_vocab.bpe"))?[..])?;
    let model = SentencePieceModel::from_bytes(&std::fs::read(folder.join("t5_tokenizer_base.model"))?)?;
    Ok(vec![("GPT-2", Tokenizer::gpt2(vocabulary, merges)?), ("T5", Tokenizer::from_sentencepiece(&model)?)])
}

fn corpora(folder: &Path) -> Result<Vec<Corpus>, Box<dyn Error>> {
    let other_part = std::env::var("PART").is_ok_and(|part| part == "dev");
    let notes = |records, seed| Source::Embedded { records, seed };
    let held = open(&notes(2000, if other_part { 8 } else { 9 }))?.map(|note| note.map(|note| note.text));
    let (private, unit) = (notes(6000, 7), PrivacyUnit::Record);
    let mut corpora =
        vec![Corpus { name: "notes by record", private, unit, held: held.collect::<Result<_, _>>()? }];
    if data().is_dir() {
        let users = Files {
            user_field: Some("user".to_owned()),
            ..Files::of([data().join("irc/irc_train.jsonl.zst")])
        };
        let part = |record: &Record, _| match hash(record.user.as_deref().unwrap_or_default()) % 10 {
            0 => Part::Test,
            1 => Part::Development,
            _ => Part::Private,
        };
        let name = "IRC by user";
        corpora.push(divided(name, users, PrivacyUnit::User, part, &folder.join("irc.jsonl"), other_part)?);
        let novels = Files::of([data().join("novels/novels.jsonl.zst")]);
        let part = |_: &Record, number: usize| match number {
            _ if number % 28 == 2 => Part::Test,
            _ if number % 28 == 9 => Part::Development,
            _ if number.is_multiple_of(4) => Part::Private,
            _ => Part::Unused,
        };
        let name = "novels by words:50";
        corpora.push(divided(
            name,
            novels,
            PrivacyUnit::Words(50),
            part,
            &folder.join("novels.jsonl"),
            other_part,
        )?);
    }
    Ok(corpora)
}

#[derive(PartialEq)]
enum Part {
    Private,
    Development,
    Test,
    Unused,
}

fn divided(
    name: &'static str,
    files: Files,
    unit: PrivacyUnit,
    part: impl Fn(&Record, usize) -> Part,
    path: &Path,
    other_part: bool,
) -> Result<Corpus, Box<dyn Error>> {
    let user_field = files.user_field.clone();
    let (mut private, mut held) = (String::new(), Vec::new());
    let wanted = if other_part { Part::Development } else { Part::Test };
    for (number, record) in open(&Source::Files(files))?.enumerate() {
        let record = record?;
        let part = part(&record, number);
        if part == Part::Private {
            let line = serde_json::json!({"user": record.user, "text": record.text});
            private.push_str(&format!("{line}\n"));
        } else if part == wanted {
            held.push(record.text.replace('\n', " "));
        }
    }
    std::fs::write(path, private)?;
    let private = Source::Files(Files { user_field, ..Files::of([path.to_owned()]) });
    Ok(Corpus { name, private, unit, held })
}

/// Returns the FNV-1a hash, whose upper half is even enough.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step) >> 32
}
