//! `convert`: tokenizers in the formats of several tools, recognized by file name.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use durable::ExclusiveFile;

use super::carried_statement::{CarriedStatement, folder_of};
use super::failure::refuse;
use super::output::{Output, write_whole};
use super::progress::note;
use super::tokenizer_file::{TokenizerFile, TokenizerFormat, format_of, parse};

/// Write a tokenizer in another format.
#[derive(Args)]
pub(super) struct Convert {
    #[command(flatten)]
    tokenizer: TokenizerFile,
    /// File to write. Its name determines the format, as above.
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Write the file even if a few texts are read otherwise, such as those that spell a special token. They are named.
    #[arg(long)]
    allow_rare_differences: bool,
    #[command(flatten)]
    output: Output,
}

impl Convert {
    /// Returns the paths of the files that are read.
    fn inputs(&self) -> [PathBuf; 2] {
        [self.tokenizer.path.clone(), self.tokenizer.path.with_file_name("merges.txt")]
    }
}

/// Refuses to write over the tokenizer of a release or a run: what is stated beside it is not true of another one.
fn check_statement(path: &Path) -> anyhow::Result<()> {
    let states = |name: &&str| path.with_file_name(name).exists();
    match ["privacy.json", "ledger.jsonl"].into_iter().find(states) {
        Some(statement) if path.file_name().is_some_and(|name| name == "tokenizer.json") => {
            Err(refuse(format!(
                "--out: {}: the {statement} beside it is of its own tokenizer; name another folder",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Reads one format and writes another, unless it would be read otherwise.
pub(super) fn run(arguments: &Convert) -> anyhow::Result<()> {
    let tokenizer = arguments.tokenizer.load()?;
    let out = &arguments.out;
    let format = format_of(out)?;
    let files: Vec<(PathBuf, Vec<u8>)> = match format {
        TokenizerFormat::TokenizerJson => vec![(out.clone(), tokenizer.to_json().into_bytes())],
        TokenizerFormat::SentencePiece => {
            vec![(out.clone(), tokenizer.to_sentencepiece().map_err(refuse)?.to_bytes())]
        }
        TokenizerFormat::VocabTxt => {
            vec![(out.clone(), tokenizer.to_vocab_txt().map_err(refuse)?.into_bytes())]
        }
        TokenizerFormat::Gpt2 => {
            let (vocab, merges) = tokenizer.to_gpt2().map_err(refuse)?;
            vec![(out.clone(), vocab.into_bytes()), (out.with_file_name("merges.txt"), merges.into_bytes())]
        }
        TokenizerFormat::Tiktoken => {
            return Err(refuse(format!(
                "--out: {}: tiktoken files are read, not written; allowed: tokenizer.json, *.model, vocab.txt, vocab.json",
                out.display()
            )));
        }
    };
    let _lock = ExclusiveFile::take(&folder_of(out).join(".lock"))
        .map_err(|error| refuse(format!("--out: {error}")))?;
    let statement = CarriedStatement::of(&arguments.tokenizer.path, &tokenizer, &files)?;
    for (path, _) in &files {
        arguments.output.check(path, &arguments.inputs())?;
        check_statement(path)?;
    }
    let merges = files.get(1).map_or([].as_slice(), |file| &file.1);
    let read = files.first().map(|file| parse(&format, &file.1, merges)).transpose().map_err(refuse)?;
    if let Some(difference) = read.as_ref().and_then(|read| tokenizer.difference(read)) {
        return Err(refuse(format!(
            "{}: not written, because it would be read otherwise: {difference}; allowed: a format that has the stages of {}",
            out.display(),
            arguments.tokenizer.path.display()
        )));
    }
    let rare = read.map_or(Vec::new(), |read| tokenizer.rare_differences(&read)).join("; ");
    if !rare.is_empty() && !arguments.allow_rare_differences {
        return Err(refuse(format!(
            "{}: not written, because a few texts would be read otherwise: {rare}; write it with --allow-rare-differences if they do \
             not matter",
            out.display()
        )));
    }
    if let Some(statement) = statement {
        statement.write(out)?;
    }
    for (path, bytes) in files {
        write_whole(&path, &bytes)?;
    }
    if !rare.is_empty() {
        note(&format!("warning: a few texts are read otherwise: {rare}"));
    }
    Ok(writeln!(io::stdout(), "{}: {} tokens", out.display(), tokenizer.vocab_size())?)
}
