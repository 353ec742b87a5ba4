//! Words released by each method, and the share of all words they cover: the setting of the papers' comparison.
//!
//! 5.75 million words cut into units of N words, δ = 1e-6, a tenth of it for thresholds; the mean of `RELEASE_SEEDS` draws
//! of noise (3 unless set), and how far from it they lie at most. The corpus is put
//! together from `../shared/data` (Brown, WikiText-2, IRC, novels; what stands between blanks is a word); without it,
//! from invented notes. Rounds share the whole budget, but for the row that says what `dp-tokenizer train` does: it
//! leaves a quarter of μ² to counts. Rows can be chosen: `cargo bench -p dp-tokenizer --bench release -- mad2r`.

#![allow(clippy::print_stdout, reason = "a bench talks to its user")]

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;

use accountant::NeighboringRelation::AddOrRemoveOne;
use accountant::calibrate::EpsilonTarget;
use accountant::{Delta, budget, vocabulary_release_event};
use dp_tokenizer::corpus::{Source, open};
use dp_tokenizer::release::{Paper, PaperHistogram, ReleaseConfig, release};
use dp_tokenizer::unit::Piece;
use mechanisms::{COUNT_SHARE, ReleaseMethod, TestRng, Words};

const WORDS: usize = 5_750_000;
const DELTA: f64 = 1e-6;

/// The corpus as numbers of words, and how often each word occurs.
struct Corpus {
    text: Vec<u32>,
    counts: Vec<u64>,
}

impl Corpus {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut corpus = Self { text: Vec::with_capacity(WORDS), counts: Vec::new() };
        let mut numbers = HashMap::new();
        let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
        let brown = data.join("brown/brown_plain.tsv.zst");
        if !brown.is_file() {
            let notes = open(&Source::Embedded { records: 400_000, seed: 7 })?;
            corpus.take(&mut numbers, notes.map(|note| note.map(|note| note.text)))?;
            return Ok(corpus);
        }
        let mut sentences = String::new();
        for line in std::str::from_utf8(&unpack(&brown)?)?.lines() {
            sentences.extend([line.rsplit('\t').next().unwrap_or(line), "\n"]);
        }
        for part in ["wikitext2/raw/valid.txt.zst", "wikitext2/raw/test.txt.zst"] {
            sentences.push_str(std::str::from_utf8(&unpack(&data.join(part))?)?);
        }
        corpus.take(&mut numbers, [Ok::<_, std::convert::Infallible>(sentences)])?;
        for part in ["irc/irc_train.jsonl.zst", "novels/novels.jsonl.zst"] {
            let records = open(&Source::files([data.join(part)]))?;
            corpus.take(&mut numbers, records.map(|record| record.map(|record| record.text)))?;
        }
        Ok(corpus)
    }

    fn take<E: Error + 'static>(
        &mut self,
        numbers: &mut HashMap<String, u32>,
        texts: impl IntoIterator<Item = Result<String, E>>,
    ) -> Result<(), Box<dyn Error>> {
        for text in texts {
            for word in text?.split_whitespace() {
                if self.text.len() == WORDS {
                    return Ok(());
                }
                let fresh = numbers.len() as u32;
                let number = *numbers.entry(word.to_owned()).or_insert(fresh);
                if number == fresh {
                    self.counts.push(0);
                }
                self.counts[number as usize] += 1;
                self.text.push(number);
            }
        }
        Ok(())
    }

    /// Returns how many words `config` releases from units of `size` words, and their share of the text.
    fn released(&self, size: usize, config: &ReleaseConfig, seed: u64) -> Result<(f64, f64), Box<dyn Error>> {
        let units = self.text.chunks(size).zip(0..).map(|(words, unit)| {
            Ok(Piece { unit, text: words.iter().map(|&number| spelt(number)).collect() })
        });
        let found = release(units, Words::ByClass, config, &TestRng::from_seed(seed))?.words;
        let known: Vec<u64> =
            found.iter().filter_map(|word| number(&word.0)).map(|n| self.counts[n]).collect();
        Ok((known.len() as f64, known.iter().sum::<u64>() as f64 / self.text.len() as f64))
    }
}

fn unpack(path: &std::path::Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut out = Vec::new();
    std::io::Read::read_to_end(
        &mut ruzstd::decoding::StreamingDecoder::new(std::fs::File::open(path)?)?,
        &mut out,
    )?;
    Ok(out)
}

/// Spells a number as a word of letters alone, to the base of 26, with a blank before it: one item to the release.
fn spelt(mut number: u32) -> String {
    let mut word = String::from(" q");
    while number > 0 {
        word.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    word
}

fn number(word: &str) -> Option<usize> {
    let digits = word.strip_prefix("▁q")?;
    Some(digits.bytes().rev().fold(0, |number, digit| number * 26 + usize::from(digit - b'a')))
}

/// Returns the least noise with which rounds of these shares, and counts, stay within ε.
fn noise(epsilon: f64, rounds: &[f64], counts: f64) -> Result<(f64, f64), Box<dyn Error>> {
    let delta = Delta::new(DELTA)?;
    let threshold = budget::threshold_delta(delta);
    let event = |noise| vocabulary_release_event(noise, threshold, rounds, counts);
    let target = EpsilonTarget { epsilon, delta, relation: AddOrRemoveOne };
    Ok((target.noise_multiplier(event)?, threshold))
}

/// Returns the configuration of a row of the table, by its name and for (ε, N).
fn row(name: &str, epsilon: f64, size: u32) -> Result<ReleaseConfig, Box<dyn Error>> {
    let all_of = |method: ReleaseMethod| -> Result<ReleaseConfig, Box<dyn Error>> {
        let sum: f64 = method.round_shares().iter().sum();
        let shares: Vec<f64> = match method {
            ReleaseMethod::Sips => vec![1.0 / 13.0, 3.0 / 13.0, 9.0 / 13.0],
            _ => method.round_shares().iter().map(|share| share / sum).collect(),
        };
        let (noise, threshold) = noise(epsilon, &shares, 0.0)?;
        Ok(ReleaseConfig::with_shares(noise, threshold, &shares, 0.0)?.by(method).max_items_per_unit(size))
    };
    let (one, threshold) = noise(epsilon, &[1.0], 0.0)?;
    let of_paper = |paper| ReleaseConfig::new(PaperHistogram { paper, words: size }, one, threshold);
    Ok(match name {
        "ponomareva-2022" => of_paper(Paper::Ponomareva2022)?,
        "hoory-2021" => of_paper(Paper::Hoory2021)?,
        "weighted" => ReleaseConfig::with_shares(one, threshold, &[1.0], 0.0)?.max_items_per_unit(size),
        "policy" => all_of(ReleaseMethod::Policy)?,
        "mad2r" => all_of(ReleaseMethod::Mad2r)?,
        "sips 1:3:9" => all_of(ReleaseMethod::Sips)?,
        "pooled" => all_of(ReleaseMethod::Pooled)?,
        _ => {
            let method = ReleaseMethod::Pooled;
            let (noise, threshold) = noise(epsilon, method.round_shares(), COUNT_SHARE)?;
            ReleaseConfig::new(method, noise, threshold)?.max_items_per_unit(size)
        }
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let seeds: u64 = std::env::var("RELEASE_SEEDS").map_or(Ok(3), |seeds| seeds.parse())?;
    let corpus = Corpus::read()?;
    println!(
        "{} words, {} distinct; words released (share of the text)",
        corpus.text.len(),
        corpus.counts.len()
    );
    let settings = [(50, 1.0), (50, 3.0), (400, 1.0), (400, 3.0)];
    println!("{:<18}{}", "method", settings.map(|(n, e)| format!("N={n:<3} ε={e:<13}")).concat());
    let names = [
        "ponomareva-2022",
        "hoory-2021",
        "weighted",
        "policy",
        "mad2r",
        "sips 1:3:9",
        "pooled",
        "pooled, counted",
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let Some(unknown) = wanted.iter().find(|word| !names.contains(&word.as_str())) {
        return Err(format!("{unknown} is no row; allowed: {}", names.join(", ")).into());
    }
    for name in names {
        if !wanted.is_empty() && !wanted.iter().any(|word| word == name) {
            continue;
        }
        let mut line = format!("{name:<18}");
        for (size, epsilon) in settings {
            let config = row(name, epsilon, size)?;
            let draws = (1..=seeds).map(|seed| corpus.released(size as usize, &config, seed));
            let draws = draws.collect::<Result<Vec<_>, _>>()?;
            let mean = |of: fn(&(f64, f64)) -> f64| draws.iter().map(of).sum::<f64>() / draws.len() as f64;
            let (words, covered) = (mean(|draw| draw.0), mean(|draw| draw.1));
            let apart = draws.iter().map(|draw| (draw.0 - words).abs()).fold(0.0, f64::max);
            line.push_str(&format!("{words:>6.0} ±{apart:<3.0} ({covered:.3})   "));
        }
        println!("{line}");
    }
    Ok(())
}
