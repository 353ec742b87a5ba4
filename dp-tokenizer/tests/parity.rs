//! Released words, vocabularies, scores and ids are equal natively and in WASM, to the last bit.
//!
//! `parity.json` holds the results of the native build; `cargo xtask web vectors` writes it. The native test finds changed
//! results; the browser test compares WASM with native. Floats are written with the shortest digits that parse back to the
//! same bits, so equal text means equal bits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use dp_tokenizer::corpus::Source;
use dp_tokenizer::count::{CountOptions, UnitItems};
use dp_tokenizer::release::{ReleaseConfig, release_items};
use dp_tokenizer::train::{BpeConfig, Trained, UnigramConfig, WordPieceTraining, bpe, unigram, wordpiece};
use mechanisms::{PrivacyUnit, ReleaseMethod, TestRng, Words};
use serde_json::{Value, json};
use tokenizer::{OffsetUnit, Tokenizer};

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};
#[cfg(target_arch = "wasm32")]
wasm_bindgen_test_configure!(run_in_browser);

const VECTORS: &str = include_str!("parity.json");

const TEXTS: [&str; 6] = [
    "Ms Novak has had a fever of 38.5 since yesterday.",
    "No known allergies.\n\tContinue metformin 500 mg twice daily",
    "  two  blanks, and a long-winded, hyphenated word: electroencephalographically",
    "Straße, café, naïve — “quoted” … 東京 и слово 😀 \u{301}",
    "literal \u{2581} mark and <unk> and </s>",
    "",
];

/// Returns the words that each release method finds under a test key.
fn released(method: ReleaseMethod) -> Vec<(String, f64)> {
    let notes = Source::Embedded { records: 2000, seed: 7 };
    let options = CountOptions::default();
    let items = UnitItems::read(&notes, PrivacyUnit::Record, Words::ByClass, &options).unwrap();
    let config = ReleaseConfig::new(method, 1.0, 1e-6).unwrap();
    release_items(&items, &config, &TestRng::from_seed(1)).unwrap().words
}

fn trained(words: &[(String, f64)]) -> [(&'static str, Tokenizer); 3] {
    let vocab_size = 500;
    let of = |trained: Trained| trained.tokenizer;
    [
        (
            "unigram",
            of(unigram(
                words,
                &UnigramConfig { vocab_size, released: Some(Words::ByClass), ..Default::default() },
            )
            .unwrap()),
        ),
        ("bpe", of(bpe(words, &BpeConfig { vocab_size, ..Default::default() }).unwrap())),
        ("wordpiece", of(wordpiece(words, &WordPieceTraining { vocab_size, ..Default::default() }).unwrap())),
    ]
}

/// Returns everything that is compared, as JSON text.
fn results() -> String {
    let releases: Vec<Value> = ReleaseMethod::GENERAL
        .into_iter()
        .map(|method| {
            let words = released(method);
            assert!(words.len() > 100, "{method:?} finds {} words", words.len());
            json!({"method": method, "words": words})
        })
        .collect();
    let models: Vec<Value> = trained(&released(ReleaseMethod::Pooled))
        .into_iter()
        .map(|(name, tokenizer)| {
            let file: Value = serde_json::from_str(&tokenizer.to_json()).unwrap();
            let encodings: Vec<Value> = TEXTS
                .iter()
                .map(|text| {
                    let encoding = tokenizer.encode_with_offsets(text, OffsetUnit::Bytes);
                    assert_eq!(encoding.ids, tokenizer.encode(text), "{name} {text:?}");
                    json!({"ids": encoding.ids, "offsets": encoding.offsets, "decoded": tokenizer.decode(&encoding.ids)})
                })
                .collect();
            json!({"name": name, "model": file["model"], "encodings": encodings})
        })
        .collect();
    format!("{}\n", json!({"releases": releases, "models": models}))
}

#[cfg_attr(not(target_arch = "wasm32"), test)]
#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test)]
fn the_vectors_are_those_this_build_would_write() {
    let found = results();
    #[cfg(not(target_arch = "wasm32"))]
    if std::env::var_os("WRITE_VECTORS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parity.json"), found).unwrap();
        return;
    }
    if found == VECTORS {
        return;
    }
    let (found, wanted): (Value, Value) = (parse(&found), parse(VECTORS));
    for part in ["releases", "models"] {
        for (found, wanted) in found[part].as_array().unwrap().iter().zip(wanted[part].as_array().unwrap()) {
            assert_eq!(found, wanted, "{part} differ; if that is intended, run `cargo xtask web vectors`");
        }
    }
    panic!("the results changed; if that is intended, run `cargo xtask web vectors`");
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
