//! Vocabularies from the frequent words of a text alone, as a release finds them, on the words that it does not find.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use dp_tokenizer::Tokenizer;
use dp_tokenizer::corpus::Source;
use dp_tokenizer::count::{CountOptions, Words};
use dp_tokenizer::release::public_corpus_counts;
use dp_tokenizer::train::{BpeConfig, UnigramConfig, WordPieceTraining, bpe, unigram, wordpiece};

const VOCAB_SIZE: usize = 4000;

/// The 300 most frequent words of invented notes, and the rarer ones as text.
fn corpus() -> (Vec<(String, f64)>, Vec<String>) {
    let notes = Source::Embedded { records: 2000, seed: 7 };
    let counts = public_corpus_counts(&notes, Words::ByClass, &CountOptions::default()).unwrap();
    let (frequent, rare) = counts.split_at(300);
    (frequent.to_vec(), rare.iter().map(|word| word.0.replace('▁', " ")).collect())
}

fn tokens(tokenizer: &Tokenizer, words: &[String]) -> f64 {
    words.iter().map(|word| tokenizer.encode(word).len() as f64).sum()
}

#[test]
fn vocabularies_of_released_words_are_full_and_cut_rare_words_into_fewer_pieces() {
    let (frequent, rare) = corpus();
    let train: [(&str, &dyn Fn(bool) -> Tokenizer, f64); 3] = [
        (
            "unigram",
            &|released| {
                let config = UnigramConfig { vocab_size: VOCAB_SIZE, released, ..Default::default() };
                unigram(&frequent, &config).unwrap().tokenizer
            },
            0.6,
        ),
        (
            "bpe",
            &|released| {
                let config = BpeConfig { vocab_size: VOCAB_SIZE, released, ..Default::default() };
                bpe(&frequent, &config).unwrap().tokenizer
            },
            0.7,
        ),
        (
            "wordpiece",
            &|released| {
                let config = WordPieceTraining { vocab_size: VOCAB_SIZE, released, ..Default::default() };
                wordpiece(&frequent, &config).unwrap().tokenizer
            },
            0.75,
        ),
    ];
    for (name, train, most) in train {
        let (plain, completed) = (train(false), train(true));
        assert!(plain.vocab_size() < VOCAB_SIZE, "{name}: {}", plain.vocab_size());
        assert_eq!(completed.vocab_size(), VOCAB_SIZE, "{name}");
        let ratio = tokens(&completed, &rare) / tokens(&plain, &rare);
        assert!(ratio < most, "{name}: {ratio}");
        // The frequent words stay what they were: whole.
        let whole =
            frequent.iter().filter(|(word, _)| completed.encode(&word.replace('▁', " ")).len() == 1).count();
        let before =
            frequent.iter().filter(|(word, _)| plain.encode(&word.replace('▁', " ")).len() == 1).count();
        assert!(whole * 50 >= before * 49, "{name}: {whole} of {before}");
    }
}
