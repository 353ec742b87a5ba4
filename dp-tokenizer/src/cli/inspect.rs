//! `inspect`: what a tokenizer contains, and measurements on public text.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use dp_tokenizer::corpus::{Source, open};
use mechanisms::Words;
use serde_json::{Value, json};
use tokenizer::Tokenizer;

use super::failure::refuse;
use super::line::in_one_word;
use super::statement;
use super::tokenizer_file::TokenizerFile;

/// Show what a tokenizer contains.
#[derive(Args)]
pub(super) struct Inspect {
    #[command(flatten)]
    tokenizer: TokenizerFile,
    /// PUBLIC text on which to measure tokens per word.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    public_text: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// List the vocabulary of a tokenizer.
#[derive(Args)]
pub(super) struct Vocab {
    #[command(flatten)]
    tokenizer: TokenizerFile,
    /// Write a JSON object a line, with id, token, score and special.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Inspect) -> anyhow::Result<()> {
    let tokenizer = arguments.tokenizer.load()?;
    let name = |id: Option<u32>| id.and_then(|id| tokenizer.token(id)).map(str::to_owned);
    let mut summary = json!({
        "vocab_size": tokenizer.vocab_size(),
        "pad": name(tokenizer.pad_id()),
        "eos": name(tokenizer.eos_id()),
        "unk": name(tokenizer.unk_id()),
        "privacy": statement_beside(&arguments.tokenizer.path),
    });
    if !arguments.public_text.is_empty() {
        summary["public_text"] = measure(&tokenizer, arguments)?;
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        return Ok(writeln!(out, "{summary:#}")?);
    }
    if let Value::Object(fields) = &summary {
        for (field, value) in fields {
            match field.as_str() {
                "privacy" => writeln!(out, "{field}: {}", statement::in_words(value))?,
                _ => writeln!(out, "{field}: {value}")?,
            }
        }
    }
    Ok(())
}

/// Returns the `privacy.json` beside a tokenizer: null if there is none, and a text if it belongs to another tokenizer.
fn statement_beside(tokenizer: &Path) -> Value {
    let Ok(bytes) = std::fs::read(tokenizer.with_file_name("privacy.json")) else { return Value::Null };
    let statement = statement::parse(&bytes);
    if statement::is_of(&statement, tokenizer) { statement } else { Value::from(statement::OF_ANOTHER) }
}

/// Lists the vocabulary.
pub(super) fn list(arguments: &Vocab) -> anyhow::Result<()> {
    let tokenizer = arguments.tokenizer.load()?;
    let mut out = BufWriter::new(io::stdout().lock());
    for id in 0..tokenizer.vocab_size() as u32 {
        // Some files leave ids without a token.
        let Some(token) = tokenizer.token(id) else { continue };
        let score = tokenizer.score(id);
        if arguments.json {
            let special = tokenizer.is_special(id);
            writeln!(out, "{}", json!({"id": id, "token": token, "score": score, "special": special}))?;
        } else {
            let score = score.map_or_else(String::new, |score| format!("\t{score}"));
            writeln!(out, "{id}\t{}{score}", in_one_word(token))?;
        }
    }
    Ok(out.flush()?)
}

fn measure(tokenizer: &Tokenizer, arguments: &Inspect) -> anyhow::Result<Value> {
    let (mut words, mut tokens, mut bytes, mut unknown) = (0, 0, 0, 0);
    let (mut items, mut whole) = (0_u64, 0_u64);
    let mut encoder = tokenizer.encoder();
    for record in open(&Source::files(arguments.public_text.clone())).map_err(refuse)? {
        let text = record.map_err(refuse)?.text;
        let ids = encoder.encode(&text);
        words += text.split_whitespace().count();
        bytes += text.len();
        tokens += ids.len();
        dp_tokenizer::count::items(&text, Words::ByClass, |item| {
            items += 1;
            whole += u64::from(encoder.encode(&item.replace('\u{2581}', " ")).len() == 1);
        });
        unknown += ids.iter().filter(|&&id| Some(id) == tokenizer.unk_id()).count();
    }
    Ok(json!({
        "words": words,
        "tokens": tokens,
        "tokens_per_word": tokens as f64 / words.max(1) as f64,
        "bytes_per_token": bytes as f64 / tokens.max(1) as f64,
        "unknown_tokens": unknown,
        // Items are counted as a release counts them by class: words, and the text between them.
        "share_in_one_token": whole as f64 / items.max(1) as f64,
    }))
}
