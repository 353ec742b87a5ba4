//! Compares definitions of a word: the words that a release finds, their share of the text, and the tokens of the
//! vocabulary made of them.
//!
//! `cargo run --release -p dp-tokenizer --example words -- TEXT EPSILON`; `TEXT` has a record a line. δ is 1e-6, and the noise is
//! that of a test key.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Write as _;

use accountant::calibrate::EpsilonTarget;
use accountant::{Delta, NeighboringRelation, budget};
use dp_tokenizer::corpus::{Source, open};
use dp_tokenizer::count::{CountOptions, UnitItems, Words};
use dp_tokenizer::release::{
    Method, Paper, PaperHistogram, ReleaseConfig, public_corpus_counts, release_items,
};
use dp_tokenizer::train::{UnigramConfig, unigram};
use dp_tokenizer::unit::PrivacyUnit;
use mechanisms::{ReleaseMethod, TestRng};

/// The most words of a unit.
const MAX_WORDS: u32 = 64;
const DELTA: f64 = 1e-6;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, epsilon] = arguments.as_slice() else { return Err("give TEXT and EPSILON".into()) };
    let (source, epsilon) = (Source::files([path.into()]), epsilon.parse()?);
    let paper = PaperHistogram { paper: Paper::Ponomareva2022, words: MAX_WORDS };
    let methods: [(&str, Method); 2] =
        [("pooled", ReleaseMethod::Pooled.into()), ("ponomareva-2022", paper.into())];
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| method | words | distinct | released | share of words | share of characters | characters per token |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    for (name, method) in methods {
        for words in [Words::ByClass, Words::AsWritten] {
            let row = row(&source, words, method, epsilon)?;
            writeln!(out, "| {name} | {words:?} | {row}")?;
        }
    }
    Ok(())
}

fn row(source: &Source, words: Words, method: Method, epsilon: f64) -> Result<String, Box<dyn Error>> {
    let delta = Delta::new(DELTA)?;
    let threshold = budget::threshold_delta(delta);
    let target = EpsilonTarget { epsilon, delta, relation: NeighboringRelation::AddOrRemoveOne };
    let noise = target.noise_multiplier(|noise| method.event(noise, threshold))?;
    let config = ReleaseConfig::new(method, noise, threshold)?;
    let options = CountOptions::default();
    let items = UnitItems::read(source, PrivacyUnit::Words(MAX_WORDS), words, &options)?;
    let released = release_items(&items, &config, &TestRng::from_seed(1))?.words;
    let all = public_corpus_counts(source, words, &options)?;
    let known: BTreeSet<&str> = released.iter().map(|word| word.0.as_str()).collect();
    let share = |weight: &dyn Fn(&str) -> usize| -> f64 {
        let sum = |all: &mut dyn Iterator<Item = &(String, f64)>| -> f64 {
            all.map(|(word, count)| count * weight(word) as f64).sum()
        };
        sum(&mut all.iter().filter(|word| known.contains(word.0.as_str()))) / sum(&mut all.iter())
    };
    let config = UnigramConfig { vocab_size: 4000, ..UnigramConfig::default() };
    let tokenizer = unigram(&released, &config)?.tokenizer;
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    for record in open(source)? {
        let text = record?.text;
        *sums.entry("characters").or_default() += text.chars().count();
        *sums.entry("tokens").or_default() += tokenizer.encode(&text).len();
    }
    Ok(format!(
        "{} | {} | {:.3} | {:.3} | {:.3} |",
        all.len(),
        released.len(),
        share(&|_| 1),
        share(&|word| word.chars().count()),
        sums["characters"] as f64 / sums["tokens"] as f64
    ))
}
