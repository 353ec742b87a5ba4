//! The setting of Kerrigan, Slack & Tuyls 2020, <https://arxiv.org/abs/2009.05886>: models of the public Brown corpus,
//! fine-tuned on 10,000 Reddit comments at ε ≤ 8 and measured on 5,000 others.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::{NamedPlan, Outcome, brown, carry_out, column, write};

/// Words of the fixed vocabulary, learnt on the public text alone; special tokens are among them.
const VOCABULARY: usize = 10_000;

/// Each public model and what is made of it, with privacy and without.
const PLANS: [[NamedPlan; 2]; 2] = [
    [
        ("ff-public", include_str!("kerrigan/ff-public.json")),
        ("ff-private", include_str!("kerrigan/ff-private.json")),
    ],
    [
        ("dec-public", include_str!("kerrigan/dec-public.json")),
        ("dec-private", include_str!("kerrigan/dec-private.json")),
    ],
];

pub fn all(texts: &[PathBuf], folder: &Path) -> Outcome {
    let sentences = brown(&texts[0])?;
    fs::write(folder.join("words.json"), words(&sentences).to_string())?;
    write(&folder.join("brown.txt"), &sentences)?;
    write(&folder.join("reddit.txt"), &comments(&texts[1], 10_000)?)?;
    let test = comments(&texts[2], 5_000)?;
    write(&folder.join("reddit-test.txt"), &test)?;
    write(&folder.join("reddit-test-1000.txt"), &test[..test.len().min(1_000)])?;
    for [public, private] in PLANS {
        carry_out(public, folder, false)?;
        carry_out(private, folder, false)?;
        carry_out(private, folder, true)?;
    }
    Ok(())
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
