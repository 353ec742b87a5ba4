//! The setting of Kerrigan, Slack & Tuyls 2020, <https://arxiv.org/abs/2009.05886>, from end to end: models of the public
//! Brown corpus, fine-tuned on 10,000 Reddit comments at ε ≤ 8, measured on 5,000 other comments.
//!
//! ```sh
//! cargo run --release -p trainer-native --example kerrigan -- brown.tsv train.tsv test.tsv [FOLDER]
//! ```
//!
//! `brown.tsv`: a header, then file, category and sentence a line. The others: a comment, a tab and more a line, as
//! GoEmotions has them (Demszky et al. 2020). Also `.gz` and `.zst`. Runs that are finished are not run again.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{BadUtf8, Files, Format, Meter, Source, open};
use serde_json::json;
use trainer_native::run::{Request, run};

/// Words of the fixed vocabulary, learnt on the public text alone; special tokens are among them.
const VOCABULARY: usize = 10_000;

const PLANS: [(&str, &str); 6] = [
    ("words-feed-forward-public", include_str!("kerrigan/words-feed-forward-public.json")),
    ("words-feed-forward", include_str!("kerrigan/words-feed-forward.json")),
    ("words-decoder-public", include_str!("kerrigan/words-decoder-public.json")),
    ("words-decoder", include_str!("kerrigan/words-decoder.json")),
    ("pieces-decoder-public", include_str!("kerrigan/pieces-decoder-public.json")),
    ("pieces-decoder", include_str!("kerrigan/pieces-decoder.json")),
];

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (brown, train, test, folder) = match paths.as_slice() {
        [brown, train, test] => (brown, train, test, Path::new("runs/kerrigan")),
        [brown, train, test, folder] => (brown, train, test, folder.as_path()),
        _ => return Err("give BROWN.tsv TRAIN.tsv TEST.tsv and, if you like, a folder".into()),
    };
    fs::create_dir_all(folder)?;
    prepare(brown, train, test, folder)?;
    for (name, plan) in PLANS {
        let path = folder.join(format!("{name}.json"));
        fs::write(&path, plan)?;
        carry_out(&path, &folder.join(format!("{name}-run")), false)?;
        if !name.ends_with("-public") {
            carry_out(&path, &folder.join(format!("{name}-without-privacy-run")), true)?;
        }
    }
    Ok(())
}

/// Runs a plan, or goes on with it, and prints its held-out figures.
fn carry_out(plan: &Path, out: &Path, non_private: bool) -> Result<(), Box<dyn Error>> {
    let (plan, out) = (plan.to_owned(), Some(out.to_owned()));
    let request =
        Request { plan, out, resume: true, device: None, test_key: None, non_private, canaries: None };
    writeln!(stdout(), "{}\n", run(&request)?)?;
    Ok(())
}

/// Writes the texts as a line a record, and the vocabulary.
fn prepare(brown: &Path, train: &Path, test: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let sentences = column(brown, 2, 1, usize::MAX, &BROWN_SIGNS)?;
    fs::write(folder.join("words.json"), words(&sentences).to_string())?;
    lines(&folder.join("brown.txt"), &sentences)?;
    lines(&folder.join("reddit.txt"), &column(train, 0, 0, 10_000, &REDDIT_SIGNS)?)?;
    lines(&folder.join("reddit-test.txt"), &column(test, 0, 0, 5_000, &REDDIT_SIGNS)?)
}

/// Brown's signs stand between blanks.
const BROWN_SIGNS: [(&str, &str); 13] = [
    ("`` ", "\""),
    (" ''", "\""),
    ("``", "\""),
    ("''", "\""),
    (" n't", "n't"),
    (" .", "."),
    (" ,", ","),
    (" ;", ";"),
    (" :", ":"),
    (" !", "!"),
    (" ?", "?"),
    (" )", ")"),
    ("( ", "("),
];

/// Names that were taken out of the comments are one word, not three that follow one another.
const REDDIT_SIGNS: [(&str, &str); 6] = [
    ("\u{2018}", "'"),
    ("\u{2019}", "'"),
    ("\u{201c}", "\""),
    ("\u{201d}", "\""),
    ("[NAME]", "Name"),
    ("[RELIGION]", "Religion"),
];

/// The first texts in a column of a table, from its line `from` on, each on one line.
fn column(
    path: &Path,
    column: usize,
    from: usize,
    most: usize,
    signs: &[(&str, &str)],
) -> Result<Vec<String>, Box<dyn Error>> {
    let files = Files {
        paths: vec![path.to_owned()],
        format: Format::Text,
        text_field: String::new(),
        user_field: None,
        bad_utf8: BadUtf8::Refuse,
        meter: Meter::default(),
    };
    let mut texts = Vec::new();
    for record in open(&Source::Files(files))?.skip(from) {
        let line = record?.text;
        let text = line.split('\t').nth(column).unwrap_or_default();
        let text = signs.iter().fold(text.to_owned(), |text, (sign, plain)| text.replace(sign, plain));
        if !text.trim().is_empty() && texts.len() < most {
            texts.push(text.trim().to_owned());
        }
    }
    Ok(texts)
}

fn lines(path: &Path, texts: &[String]) -> Result<(), Box<dyn Error>> {
    Ok(fs::write(path, texts.iter().map(|text| format!("{text}\n")).collect::<String>())?)
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
