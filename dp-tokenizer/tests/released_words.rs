//! Tests vocabularies that were trained on the frequent words of a text alone, as a release finds them, on the other
//! words.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use dp_tokenizer::corpus::Source;
use dp_tokenizer::count::{CountOptions, Words};
use dp_tokenizer::release::public_corpus_counts;
use dp_tokenizer::train::{BpeConfig, UnigramConfig, WordPieceTraining, bpe, unigram, wordpiece};
use tokenizer::Tokenizer;

const VOCAB_SIZE: usize = 4000;

/// Returns the 300 most frequent words of invented notes, and the rarer ones as text.
fn corpus() -> (Vec<(String, f64)>, Vec<String>) {
    let notes = Source::Embedded { records: 2000, seed: 7 };
    let counts = public_corpus_counts(&notes, Words::ByClass, &CountOptions::default()).unwrap();
    let (frequent, rare) = counts.split_at(300);
    (frequent.to_vec(), rare.iter().map(|word| word.0.replace('▁', " ")).collect())
}

fn tokens(tokenizer: &Tokenizer, words: &[String]) -> f64 {
    words.iter().map(|word| tokenizer.encode(word).len() as f64).sum()
}

/// Trains with and without invented words; `most` is the largest share of tokens that rare words may keep.
fn check(name: &str, train: impl Fn(&[(String, f64)], bool) -> Tokenizer, most: f64) {
    let (frequent, rare) = corpus();
    let (plain, completed) = (train(&frequent, false), train(&frequent, true));
    assert!(plain.vocab_size() < VOCAB_SIZE, "{name}: {}", plain.vocab_size());
    assert_eq!(completed.vocab_size(), VOCAB_SIZE, "{name}");
    let ratio = tokens(&completed, &rare) / tokens(&plain, &rare);
    assert!(ratio < most, "{name}: {ratio}");
    // Frequent words stay whole.
    let whole = |tokenizer: &Tokenizer| {
        let is_whole = |word: &str| tokenizer.encode(&word.replace('▁', " ")).len() == 1;
        frequent.iter().filter(|(word, _)| is_whole(word)).count()
    };
    assert!(whole(&completed) * 50 >= whole(&plain) * 49, "{name}: {}", whole(&completed));
}

#[test]
fn vocabularies_of_released_words_are_full_and_cut_rare_words_into_fewer_pieces() {
    let vocab_size = VOCAB_SIZE;
    let pieces = |words: &[(String, f64)], released: bool| {
        let released = if released { Some(Words::ByClass) } else { None };
        unigram(words, &UnigramConfig { vocab_size, released, ..Default::default() }).unwrap().tokenizer
    };
    let merges = |words: &[(String, f64)], released| {
        bpe(words, &BpeConfig { vocab_size, released, ..Default::default() }).unwrap().tokenizer
    };
    let wordpieces = |words: &[(String, f64)], released| {
        wordpiece(words, &WordPieceTraining { vocab_size, released, ..Default::default() }).unwrap().tokenizer
    };
    check("unigram", pieces, 0.6);
    check("bpe", merges, 0.7);
    check("wordpiece", wordpieces, 0.75);
}
