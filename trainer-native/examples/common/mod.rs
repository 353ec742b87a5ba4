//! Shared by the examples: public corpora with one record per line, and a function that carries out a plan.

#![allow(dead_code, reason = "each example uses its part")]

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{BadUtf8, Files, Format, Source, open};
use serde_json::json;
use training::run::{Request, run};

pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A plan with its name.
#[derive(Clone, Copy)]
pub struct NamedPlan {
    pub name: &'static str,
    pub text: &'static str,
}

/// The plan in `NAME.json` beside the file that asks for it.
#[macro_export]
macro_rules! named_plan {
    ($name:literal) => {
        $crate::common::NamedPlan { name: $name, text: include_str!(concat!($name, ".json")) }
    };
}

/// The paths of the texts, and the folder of the runs, which may be left out.
pub fn arguments<const TEXTS: usize>(folder: &str, usage: &str) -> Outcome<([PathBuf; TEXTS], PathBuf)> {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let named = if paths.len() > TEXTS { paths.pop() } else { None };
    let folder = named.unwrap_or_else(|| PathBuf::from(folder));
    let texts = paths.try_into().map_err(|_| usage)?;
    fs::create_dir_all(&folder)?;
    Ok((texts, folder))
}

/// Runs or resumes a plan, and prints its evaluation.
pub fn carry_out(plan: NamedPlan, folder: &Path, non_private: bool) -> Outcome {
    let name = plan.name;
    let path = folder.join(format!("{name}.json"));
    fs::write(&path, plan.text)?;
    let end = if non_private { "-without-privacy-run" } else { "-run" };
    let out = folder.join(format!("{name}{end}"));
    let resume = out.join("ledger.jsonl").exists();
    let request = Request { resume, out: Some(out), non_private, ..Request::new(path) };
    writeln!(stdout(), "{}\n", run(&request)?)?;
    Ok(())
}

/// Brown's sentences, whose signs stand between blanks there.
pub fn brown(path: &Path) -> Outcome<Vec<String>> {
    let signs = [
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
    Ok(column(path, 2, &signs)?.into_iter().skip(1).collect())
}

/// The texts in a column of a table, without blanks at their ends and none that is empty.
pub fn column(path: &Path, column: usize, signs: &[(&str, &str)]) -> Outcome<Vec<String>> {
    let text = |line: String| {
        let text = line.split('\t').nth(column).unwrap_or_default();
        signs.iter().fold(text.to_owned(), |text, (sign, plain)| text.replace(sign, plain)).trim().to_owned()
    };
    let texts = records(path, Format::Text)?.into_iter().map(text);
    Ok(texts.filter(|text| !text.is_empty()).collect())
}

/// The texts of a file's records: of its lines, or of the field `text` of JSON lines.
pub fn records(path: &Path, format: Format) -> Outcome<Vec<String>> {
    let files = Files { format, bad_utf8: BadUtf8::Refuse, ..Files::of([path.to_owned()]) };
    open(&Source::Files(files))?.map(|record| Ok(record?.text)).collect()
}

/// Writes texts, one a line.
pub fn write(path: &Path, texts: &[String]) -> Outcome {
    Ok(fs::write(path, texts.iter().map(|text| format!("{text}\n")).collect::<String>())?)
}

/// A `tokenizer.json` of the most frequent words and marks in lower case; anything else is the unknown token. WordPiece
/// without a continuing piece takes whole words only.
pub fn word_vocabulary(texts: &[String], size: usize) -> serde_json::Value {
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
    let vocabulary: serde_json::Map<_, _> = tokens.take(size).zip((0..).map(|id| json!(id))).collect();
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

/// The first comments of a table. What stands for a name that was taken out is one word, not three in a fixed order.
pub fn comments(path: &Path, most: usize) -> Outcome<Vec<String>> {
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
