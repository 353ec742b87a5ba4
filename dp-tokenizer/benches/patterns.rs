//! Encoding speed with the patterns of current models, beside the speed at which other regex engines find the words alone.
//!
//! The model is GPT-2's of `../shared/data`, with the pre-tokenizer of each other model in place of its own; the text is 8 MB of
//! novels. Times are the best of five runs on one thread. `regex-automata` has no look-ahead, so its expression is rewritten.

#![allow(clippy::print_stdout, reason = "a bench talks to its user")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use dp_tokenizer::corpus::{Source, open};
use serde_json::{Value, json};
use tokenizer::Tokenizer;

const TEXT_BYTES: usize = 8 << 20;
const RUNS: usize = 5;

/// The end of all these expressions, which needs look-ahead.
const BLANKS: &str = r"\s+(?!\S)|\s+";

/// The other alternatives of each model's expression.
const PATTERNS: [(&str, &str); 4] = [
    (
        "GPT-4, Llama 3",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|",
    ),
    (
        "GPT-4o",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|",
    ),
    (
        "Qwen 3",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|",
    ),
    (
        "DeepSeek V3, its last expression",
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|"##,
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let gpt2 = data.join("tokenizers/hf/gpt2/tokenizer.json");
    if !gpt2.is_file() {
        println!("SKIPPED: {} is not here", gpt2.display());
        return Ok(());
    }
    let mut file: Value = serde_json::from_str(&std::fs::read_to_string(gpt2)?)?;
    let mut lines = Vec::new();
    let mut bytes = 0;
    for record in open(&Source::files([data.join("novels/novels.jsonl.zst")]))? {
        let text = record?.text;
        bytes += text.len();
        lines.push(text);
        if bytes >= TEXT_BYTES {
            break;
        }
    }
    let speed = |find: &mut dyn FnMut(&str) -> usize| {
        let mut best = f64::INFINITY;
        let mut count = 0;
        for _ in 0..RUNS {
            let start = Instant::now();
            count = lines.iter().map(|line| find(line)).sum();
            best = best.min(start.elapsed().as_secs_f64());
        }
        (bytes as f64 / 1e6 / best, count)
    };
    println!("MB/s            encoding here   fancy-regex   regex-automata");
    for (name, head) in PATTERNS {
        let pattern = format!("{head}{BLANKS}");
        file["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
        ]});
        let tokenizer = Tokenizer::from_json(&file.to_string())?;
        let mut encoder = tokenizer.encoder();
        let ours = speed(&mut |line| encoder.encode(line).len());
        let fancy = fancy_regex::Regex::new(&pattern)?;
        let fancy = speed(&mut |line| fancy.find_iter(line).filter(Result::is_ok).count());
        // Of several blanks before a word, the last belongs to the word.
        let alternatives = [format!(r"{head}\s+\z"), r"\s+\s".to_owned(), r"\s+".to_owned()];
        let automata = regex_automata::meta::Regex::new_many(&alternatives)?;
        let automata = speed(&mut |line| {
            let (mut count, mut input) = (0, regex_automata::Input::new(line));
            while let Some(found) = automata.search(&input) {
                let last = line[..found.end()].chars().next_back().map_or(0, char::len_utf8);
                input.set_start(found.end() - if found.pattern().as_usize() == 1 { last } else { 0 });
                count += 1;
            }
            count
        });
        assert_eq!(fancy.1, automata.1, "the engines find the same number of words");
        println!("{name:<34}{:>8.1}{:>12.1}{:>12.1}", ours.0, fancy.0, automata.0);
    }
    Ok(())
}
