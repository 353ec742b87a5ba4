//! Words as written, from text to ids: punctuation stays with its word in counts, pieces and encodings.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::path::Path;
use std::sync::LazyLock;

use dp_tokenizer::corpus::Source;
use dp_tokenizer::count::{CountOptions, Words};
use dp_tokenizer::release::public_corpus_counts;
use dp_tokenizer::train::{CharacterConfig, UnigramConfig, characters, unigram};
use proptest::prelude::*;
use tokenizer::{OffsetUnit, Tokenizer};

#[path = "../../tests/src/program.rs"]
mod program;

/// Trains on texts whose words have punctuation, also at line ends within a text and after tabs.
fn trained(words: Words) -> [Tokenizer; 2] {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.jsonl");
    let note = |n: usize| {
        format!(
            "{{\"text\":\"No fever, (37.{}) isn't high.\\n\\tMr. Straße—well-known, too; rests.\"}}\n",
            n % 7
        )
    };
    std::fs::write(&path, (0..500).map(note).collect::<String>()).unwrap();
    let counts = public_corpus_counts(&Source::files([path]), words, &CountOptions::default()).unwrap();
    let pieces = UnigramConfig { vocab_size: 420, ..UnigramConfig::default() };
    let single = CharacterConfig { vocab_size: 420, ..CharacterConfig::default() };
    [unigram(&counts, &pieces).unwrap().tokenizer, characters(&counts, &single).unwrap().tokenizer]
}

fn tokens(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    tokenizer.encode(text).iter().map(|id| tokenizer.token(*id).unwrap().to_owned()).collect()
}

#[test]
fn pieces_join_letters_and_punctuation_only_as_written() {
    let text = " fever, isn't too;";
    assert_eq!(tokens(&trained(Words::AsWritten)[0], text), ["▁fever,", "▁isn't", "▁too;"]);
    assert_eq!(tokens(&trained(Words::ByClass)[0], text), ["▁fever", ",", "▁isn", "'", "t", "▁too", ";"]);
}

#[test]
fn the_command_line_counts_words_as_written_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("vocabulary");
    let train = |more: &[&str]| {
        let arguments =
            ["train", "--embedded", "--words", "as-written", "--overwrite", "--vocab-size", "1000", "--out"];
        let arguments = [&arguments[..], &[out.to_str().unwrap()], more].concat();
        program::run(env!("CARGO_BIN_EXE_dp-tokenizer"), &arguments, "")
    };
    for budget in [&["--epsilon", "8", "--delta", "1e-6"][..], &["--public"]] {
        let done = train(budget);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(read(&out.join("tokenizer.json")).contains("▁daily.\""), "{budget:?}");
        assert_eq!(budget.len() == 4, read(&out.join("privacy.json")).contains("\"words\": \"as_written\""));
    }
    for model in ["bpe", "wordpiece"] {
        let refused = train(&["--public", "--model", model]);
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!((refused.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.contains("--words as-written goes with --model unigram and char"), "{message}");
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_token_crosses_white_space_and_a_file_read_back_encodes_alike(
        text in "( |\n|\t|\u{a0}|No|fever,|isn't|37\\.[0-9]|Stra|ße—|rests\\.|[ -~é中]){0,24}",
    ) {
        static TRAINED: LazyLock<[Tokenizer; 2]> = LazyLock::new(|| trained(Words::AsWritten));
        for tokenizer in &*TRAINED {
            let encoding = tokenizer.encode_with_offsets(&text, OffsetUnit::Bytes);
            for (id, &(from, to)) in encoding.ids.iter().zip(&encoding.offsets) {
                // Unknown characters in a row have one place for all of their bytes.
                if tokenizer.token(*id).unwrap().starts_with("<0x") {
                    continue;
                }
                let token = text.get(from..to).unwrap_or_default();
                let body = token.strip_prefix(' ').unwrap_or(token);
                let blanks = body.chars().filter(|c| c.is_whitespace()).count();
                prop_assert!(blanks == 0 || blanks == body.chars().count(), "{:?} in {:?}", token, text);
            }
            let loaded = Tokenizer::from_json(&tokenizer.to_json()).unwrap();
            prop_assert_eq!(loaded.encode(&text), encoding.ids);
        }
    }
}
