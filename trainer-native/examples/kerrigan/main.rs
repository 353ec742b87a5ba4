//! The setting of Kerrigan, Slack & Tuyls 2020, <https://arxiv.org/abs/2009.05886>, from end to end: models of the public
//! Brown corpus, fine-tuned on 10,000 Reddit comments at ε ≤ 8 and measured on 5,000 others.
//!
//! ```sh
//! cargo run --release -p trainer-native --example kerrigan -- brown.tsv train.tsv test.tsv [FOLDER]
//! ```
//!
//! `brown.tsv`: a header, then file, category and sentence a line. The others: a comment, a tab and more a line, as
//! GoEmotions has them (Demszky et al. 2020). Also `.gz` and `.zst`. Finished runs are not run again, others go on where
//! they stopped.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

#[path = "../common/mod.rs"]
mod common;

use common::{NamedPlan, Outcome, arguments, brown, carry_out, column, write};

/// Words of the fixed vocabulary, learnt on the public text alone; special tokens are among them.
const VOCABULARY: usize = 10_000;

/// Each public model and what is made of it, with privacy and without.
const PLANS: [[NamedPlan; 2]; 2] = [
    [
        NamedPlan { name: "ff-public", text: include_str!("ff-public.json") },
        NamedPlan { name: "ff-private", text: include_str!("ff-private.json") },
    ],
    [
        NamedPlan { name: "dec-public", text: include_str!("dec-public.json") },
        NamedPlan { name: "dec-private", text: include_str!("dec-private.json") },
    ],
];

fn main() -> Outcome {
    let usage = "give BROWN.tsv TRAIN.tsv TEST.tsv and optionally a folder";
    let (texts, folder) = arguments("runs/kerrigan", usage)?;
    prepare(&texts, &folder)?;
    for [public, private] in PLANS {
        carry_out(public, &folder, false)?;
        carry_out(private, &folder, false)?;
        carry_out(private, &folder, true)?;
    }
    Ok(())
}

/// Writes the texts as a line a record, and the vocabulary.
fn prepare([brown_path, train, test]: &[PathBuf; 3], folder: &Path) -> Outcome {
    let sentences = brown(brown_path)?;
    fs::write(folder.join("words.json"), words(&sentences).to_string())?;
    write(&folder.join("brown.txt"), &sentences)?;
    write(&folder.join("reddit.txt"), &comments(train, 10_000)?)?;
    let test = comments(test, 5_000)?;
    write(&folder.join("reddit-test.txt"), &test)?;
    write(&folder.join("reddit-test-1000.txt"), &test[..test.len().min(1_000)])
}

/// The first comments of a table. What stands for a name that was taken out is one word, not three in a fixed order.
fn comments(path: &Path, most: usize) -> Outcome<Vec<String>> {
    let signs = [
        ("\u{2018}", "'"),
        ("\u{2019}", "'"),
        ("\u{201c}", "\""),
        ("\u{201d}", "\""),
        ("[NAME]", "Name"),
        ("[RELIGION]", "Religion"),
    ];
    let mut comments = column(path, 0, &signs)?;
    comments.truncate(most);
    Ok(comments)
}

/// A `tokenizer.json` of the most frequent words and marks in lower case; anything else is the unknown token. WordPiece
/// without a continuing piece takes whole words only.
fn words(texts: &[String]) -> serde_json::Value {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for text in texts {
        for run in text.to_lowercase().split_inclusive(|c: char| !c.is_alphanumeric()) {
            let end = run.trim_end_matches(|c: char| !c.is_alphanumeric()).len();
            for word in [&run[..end], run[end..].trim()].into_iter().filter(|word| !word.is_empty()) {
                *counts.entry(word.to_owned()).or_default() += 1;
            }
        }
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let special = ["[PAD]", "[UNK]", "[SEP]"];
    let tokens = special.into_iter().map(str::to_owned).chain(counts.into_iter().map(|(word, _)| word));
    let vocabulary: serde_json::Map<_, _> = tokens.take(VOCABULARY).zip((0..).map(|id| json!(id))).collect();
    let added = |(id, content)| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true })
    };
    json!({
        "version": "1.0",
        "added_tokens": (0..).zip(special).map(added).collect::<Vec<_>>(),
        "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                        "strip_accents": null, "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": false },
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                   "max_input_chars_per_word": 100, "vocab": vocabulary }
    })
}
