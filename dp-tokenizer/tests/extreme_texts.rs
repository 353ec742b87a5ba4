//! Texts as hard as they come. The large sizes of the same tests run where `DP_TOKENIZER_LARGE` is set.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::io::{Read, Write};
use std::path::Path;

use dp_tokenizer::corpus::{Source, open};
use dp_tokenizer::count::{CountOptions, Words};
use dp_tokenizer::release::public_corpus_counts;
use dp_tokenizer::train::{UnigramConfig, unigram};

fn is_large() -> bool {
    std::env::var_os("DP_TOKENIZER_LARGE").is_some()
}

#[test]
fn millions_of_distinct_words_are_counted_within_a_small_memory() {
    let words: u32 = if is_large() { 10_000_000 } else { 100_000 };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words.txt");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    for n in 0..words {
        // Words are of letters alone, so that each is one item. Some are short, and some do not fit sixteen bytes.
        let spelt: String = format!("{n:08}").bytes().map(|b| char::from(b - b'0' + b'a')).collect();
        write!(out, " {spelt}{}", if n % 10 == 0 { "longerthanthat" } else { "" }).unwrap();
        if n % 16 == 15 {
            writeln!(out).unwrap();
        }
    }
    out.into_inner().unwrap();
    let options = CountOptions { threads: 2, memory: words as usize * 4, spill_folder: None };
    let counts = public_corpus_counts(&Source::files([path]), Words::ByClass, &options).unwrap();
    assert_eq!(counts.len(), words as usize);
    assert!(counts.iter().all(|count| count.1 == 1.0));
}

#[test]
fn an_endless_line_is_refused_by_each_reader_without_being_held() {
    let folder = tempfile::tempdir().unwrap();
    let zeros = || std::io::repeat(b'x').take(1 << 30);
    let gzip = folder.path().join("long.txt.gz");
    let mut encoder =
        flate2::write::GzEncoder::new(std::fs::File::create(&gzip).unwrap(), flate2::Compression::fast());
    // A line longer than the cap is enough for a refusal. A whole gigabyte takes a while to pack.
    let length = if is_large() { 1 << 30 } else { 65 << 20 };
    std::io::copy(&mut zeros().take(length), &mut encoder).unwrap();
    encoder.finish().unwrap();
    let json = folder.path().join("long.jsonl");
    let mut out = std::fs::File::create(&json).unwrap();
    // Zeros among the first bytes would be refused as binary data.
    out.write_all(format!("{{\"text\":\"{}", "x".repeat(1 << 20)).as_bytes()).unwrap();
    out.set_len(1 << 30).unwrap();
    for path in [gzip, json] {
        let by_line = open(&Source::files([path.clone()])).map(|records| records.map(Result::unwrap).count());
        let in_blocks =
            public_corpus_counts(&Source::files([path]), Words::ByClass, &CountOptions::default())
                .map(|c| c.len());
        for error in [by_line.unwrap_err().to_string(), in_blocks.unwrap_err().to_string()] {
            assert!(error.contains("line 1: longer than 67108864 bytes"), "{error}");
        }
    }
}

#[test]
fn the_unicode_test_files_are_counted_encoded_and_decoded() {
    let file = "../../shared/data/unicode/NormalizationTest-8.0.0.txt.zst";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let mut texts: Vec<String> = Vec::new();
    if file.is_file() {
        texts.extend(open(&Source::files([file])).unwrap().map(|line| unescape(&line.unwrap().text)));
    }
    if texts.is_empty() {
        println!(
            "the Unicode test file is not beside the checkout: only the rows of all characters are tested"
        );
    }
    // The texts have every character there is, in rows of 64, whether the files are there or not.
    let all: Vec<char> = ('\0'..=char::MAX).filter(|c| *c != '\n' && *c != '\u{2581}').collect();
    texts.extend(all.chunks(64).map(|row| row.iter().collect()));
    let corpus = tempfile::tempdir().unwrap();
    let path = corpus.path().join("unicode.txt");
    // The row with a zero byte comes last: among the first bytes it would be refused as binary data.
    let lines: Vec<&str> = texts.iter().rev().map(String::as_str).collect();
    std::fs::write(&path, lines.join("\n")).unwrap();
    let counts =
        public_corpus_counts(&Source::files([path]), Words::ByClass, &CountOptions::default()).unwrap();
    assert!(counts.len() > 10_000);
    // Only short items count: without the file every row is an item of its own, and its characters would fill the
    // vocabulary.
    let short = counts.into_iter().filter(|count| count.0.chars().count() <= 8).take(500);
    let short: Vec<(String, f64)> = short.collect();
    let config = UnigramConfig { vocab_size: 6000, ..Default::default() };
    let tokenizer = unigram(&short, &config).unwrap().tokenizer;
    let ids = tokenizer.encode_batch(&texts, 2);
    for (text, ids) in texts.iter().zip(ids) {
        assert_eq!(tokenizer.decode(&ids), text.replace('\u{2581}', " "), "{text:?}");
    }
}

/// Returns the characters that a line of the normalization test names by their numbers, after the line itself.
fn unescape(line: &str) -> String {
    let numbers = line.split([';', ' ']).map_while(|code| u32::from_str_radix(code, 16).ok());
    let named: String = numbers.filter_map(char::from_u32).filter(|c| *c != '\n').collect();
    format!("{line}{named}")
}
