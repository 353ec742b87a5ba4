//! Tokens across blanks, from counts of runs of words to ids in other tools.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use dp_tokenizer::corpus::read_counts;
use dp_tokenizer::count::Words;
use dp_tokenizer::train::{BpeConfig, UnigramConfig, bpe, unigram};
use tokenizer::Tokenizer;

mod common;
use common::folder_with;

const COUNTS: &str = "the\t50\nof\t40\nof the\t30\nin\t20\nin the\t15\nend of the\t6\nfever\t20\nno fever,\t9\n\
                      naïve\t1.5\n";

const TEXTS: [&str; 4] = ["the end of the fever", "of the", "of  the", "no fever, in\tthe end of\nthe naïve"];

fn assert_tokens(tokenizer: &Tokenizer, expected: [&str; 4]) {
    for (text, expected) in TEXTS.into_iter().zip(expected) {
        let ids = tokenizer.encode(text);
        let tokens: Vec<&str> = ids.iter().map(|id| tokenizer.token(*id).unwrap()).collect();
        assert_eq!(tokens, expected.split(' ').collect::<Vec<_>>(), "{text:?}");
        assert_eq!(tokenizer.decode(&ids), text);
    }
}

/// Oracle: Hugging Face tokenizers 0.23.3 and, for the `.model`, SentencePiece 0.2.3, which read the files of these tokenizers.
/// On 5,010 texts made of such words, blanks and other characters, both give the ids of this crate.
#[test]
fn tokens_across_blanks_are_those_that_other_tools_find() {
    let (_folder, counts) = folder_with("words.tsv", COUNTS);
    let words = read_counts(&[counts], Words::Runs).unwrap();
    let config = UnigramConfig { vocab_size: 400, split_by_whitespace: false, ..Default::default() };
    let trained = unigram(&words, &config).unwrap().tokenizer;
    let model = Tokenizer::from_sentencepiece(&trained.to_sentencepiece().unwrap()).unwrap();
    for tokenizer in [&trained, &Tokenizer::from_json(&trained.to_json()).unwrap(), &model] {
        assert_tokens(
            tokenizer,
            [
                "t h e ▁end▁of▁the ▁fever",
                "o f ▁the",
                "o f ▁ ▁the",
                "n o ▁fever, ▁in <0x09> t h e ▁end▁of <0x0A> t h e ▁n a ï ve",
            ],
        );
    }
    let config = BpeConfig { vocab_size: 300, split_by_whitespace: false, ..Default::default() };
    let trained = bpe(&words, &config).unwrap().tokenizer;
    for tokenizer in [&trained, &Tokenizer::from_json(&trained.to_json()).unwrap()] {
        assert_tokens(
            tokenizer,
            ["the ĠendĠofĠthe Ġfever", "of Ġthe", "of Ġ Ġthe", "n o Ġfever, Ġin ĉ the ĠendĠof Ċ the ĠnaÃ¯ve"],
        );
    }
}
