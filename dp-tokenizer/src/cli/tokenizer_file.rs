//! Reads tokenizers in the formats of several tools, recognized by file name.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use tokenizer::format::{gpt2, tiktoken, vocab_txt};
use tokenizer::normalize::BertNormalizer;
use tokenizer::sentencepiece::SentencePieceModel;
use tokenizer::{FormatError, Tokenizer};

use super::failure::refuse;
use super::statement;

/// The format that a file name implies.
pub(super) enum TokenizerFormat {
    TokenizerJson,
    SentencePiece,
    VocabTxt,
    Gpt2,
    Tiktoken,
}

/// Returns the format by the name of the file, where that is not the name of two formats, or by its content where the name tells nothing.
fn format_of_content(path: &Path) -> anyhow::Result<TokenizerFormat> {
    let error = match format_of(path) {
        // Llama 3 names its tiktoken file tokenizer.model.
        Ok(TokenizerFormat::SentencePiece) if tiktoken::is_tiktoken(&read(path)?) => {
            return Ok(TokenizerFormat::Tiktoken);
        }
        Ok(format) => return Ok(format),
        Err(error) => error,
    };
    let bytes = read(path)?;
    match () {
        () if bytes.trim_ascii_start().starts_with(b"{") => Ok(TokenizerFormat::TokenizerJson),
        () if SentencePieceModel::from_bytes(&bytes).is_ok() => Ok(TokenizerFormat::SentencePiece),
        () => Err(error),
    }
}

pub(super) fn format_of(path: &Path) -> anyhow::Result<TokenizerFormat> {
    match (path.file_name().and_then(|n| n.to_str()), path.extension().and_then(|e| e.to_str())) {
        (_, Some("model" | "spm")) => Ok(TokenizerFormat::SentencePiece),
        (_, Some("txt")) => Ok(TokenizerFormat::VocabTxt),
        (_, Some("tiktoken")) => Ok(TokenizerFormat::Tiktoken),
        (Some("vocab.json"), _) => Ok(TokenizerFormat::Gpt2),
        (_, Some("json")) => Ok(TokenizerFormat::TokenizerJson),
        _ => Err(refuse(format!(
            "{}: the format is told by the name; allowed: tokenizer.json, *.model, *.spm, *.tiktoken, vocab.txt, vocab.json with merges.txt",
            path.display()
        ))),
    }
}

/// A tokenizer to use.
#[derive(Args)]
pub(super) struct TokenizerFile {
    /// A tokenizer.json, a SentencePiece .model or .spm, a .tiktoken file, BERT's vocab.txt, or GPT-2's vocab.json beside its merges.txt; or a folder,
    /// which stands for the first of these in it.
    #[arg(long = "tokenizer", value_name = "PATH", value_parser = locate)]
    pub(super) path: PathBuf,
    /// Keep the case of the text. For a vocab.txt [default: what the tokenizer_config.json beside it says; without one,
    /// whether a token has a capital from A to Z].
    #[arg(long, conflicts_with = "uncased")]
    pub(super) cased: bool,
    /// Put text into lower case and remove its accents. For a vocab.txt.
    #[arg(long)]
    pub(super) uncased: bool,
}

impl TokenizerFile {
    /// Reads a tokenizer from a file.
    pub(super) fn load(&self) -> anyhow::Result<Tokenizer> {
        let path = &self.path;
        let format = format_of_content(path)?;
        if (self.cased || self.uncased) && !matches!(format, TokenizerFormat::VocabTxt) {
            let flag = if self.cased { "--cased" } else { "--uncased" };
            return Err(refuse(format!(
                "{}: this format states how text is normalized; {flag} is for a vocab.txt alone",
                path.display()
            )));
        }
        let bytes = read(path)?;
        let tokenizer = match format {
            TokenizerFormat::VocabTxt => {
                let stated = if self.cased || self.uncased { Some(self.cased) } else { stated_case(path)? };
                vocab_txt::read(&bytes).and_then(|vocabulary| bert(vocabulary, stated))
            }
            TokenizerFormat::Gpt2 => parse(&format, &bytes, &read(&path.with_file_name("merges.txt"))?),
            TokenizerFormat::TokenizerJson => with_stated_roles(parse(&format, &bytes, &[]), path),
            TokenizerFormat::SentencePiece | TokenizerFormat::Tiktoken => parse(&format, &bytes, &[]),
        };
        tokenizer.map_err(|error| refuse(error.in_file(path)))
    }
}

/// Returns the file of a tokenizer: the path itself, or a file in that folder.
pub(super) fn locate(path: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    if !path.is_dir() {
        return Ok(path);
    }
    let named = |name: &str| Some(path.join(name)).filter(|file| file.is_file());
    let mut models: Vec<PathBuf> = std::fs::read_dir(&path)
        .map_err(|error| error.to_string())?
        .filter_map(|entry| {
            Some(entry.ok()?.path())
                .filter(|file| matches!(format_of(file), Ok(TokenizerFormat::SentencePiece)))
        })
        .collect();
    models.sort();
    let model = || match models.as_slice() {
        [_, _, ..] => Some(Err("holds several .model files; name one".to_owned())),
        one => one.first().cloned().map(Ok),
    };
    let vocab_json = || named("vocab.json").filter(|_| path.join("merges.txt").is_file());
    named("tokenizer.json")
        .map(Ok)
        .or_else(model)
        .or_else(|| named("vocab.txt").or_else(vocab_json).map(Ok))
        .unwrap_or_else(|| {
            if statement::is_spent_in(&path) {
                return Err("holds the privacy.json of a release whose tokenizer was not written; what it spent counts, so train \
                            again with what is left of the budget, or name another folder"
                    .to_owned());
            }
            Err("holds no tokenizer.json, .model, vocab.txt, or vocab.json with merges.txt; name a file or another folder"
                .to_owned())
        })
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let give = "give a tokenizer.json, .model, .tiktoken, vocab.txt, or vocab.json beside its merges.txt, or a folder that holds one";
    std::fs::read(path).map_err(|error| refuse(format!("{}: {error}; {give}", path.display())))
}

/// Gives a tokenizer the roles that the `tokenizer_config.json` beside it states.
fn with_stated_roles(read: Result<Tokenizer, FormatError>, path: &Path) -> Result<Tokenizer, FormatError> {
    match (read, std::fs::read_to_string(path.with_file_name("tokenizer_config.json"))) {
        (Ok(tokenizer), Ok(config)) => tokenizer.with_config(&config),
        (read, _) => read,
    }
}

/// Reads the bytes of a file, and of the merges beside a vocab.json.
pub(super) fn parse(format: &TokenizerFormat, bytes: &[u8], merges: &[u8]) -> Result<Tokenizer, FormatError> {
    match format {
        TokenizerFormat::TokenizerJson => {
            let text = std::str::from_utf8(bytes).map_err(|error| FormatError::Inconsistent {
                reason: format!("it is not UTF-8 from byte {} on", error.valid_up_to()),
            })?;
            Tokenizer::from_json(text)
        }
        TokenizerFormat::SentencePiece => {
            Tokenizer::from_sentencepiece(&SentencePieceModel::from_bytes(bytes)?)
        }
        TokenizerFormat::Tiktoken => tiktoken::read(bytes),
        TokenizerFormat::VocabTxt => bert(vocab_txt::read(bytes)?, None),
        TokenizerFormat::Gpt2 => Tokenizer::gpt2(gpt2::read_vocab(bytes)?, gpt2::read_merges(merges)?),
    }
}

/// Whether the `tokenizer_config.json` beside a vocab.txt says that the text keeps its case.
fn stated_case(vocabulary: &Path) -> anyhow::Result<Option<bool>> {
    let path = vocabulary.with_file_name("tokenizer_config.json");
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refuse(format!("{}: {error}", path.display()))),
    };
    let refused = |reason: String| {
        refuse(format!("{}: {reason}; mend it, or give --cased or --uncased", path.display()))
    };
    let config: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| refused(format!("not JSON ({error})")))?;
    match &config["do_lower_case"] {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::Bool(lower) => Ok(Some(!lower)),
        other => Err(refused(format!("do_lower_case is {other}; allowed: true, false"))),
    }
}

/// Returns the tokenizer of a vocab.txt, which does not state its case. A vocabulary with capitals was not learnt from
/// lower-cased text. Only capitals from A to Z tell: Unicode calls some characters upper case that lower-casing leaves
/// as they are, and BERT's own lower-cased vocabulary has some.
fn bert(vocabulary: tokenizer::Vocabulary, cased: Option<bool>) -> Result<Tokenizer, FormatError> {
    let is_special = |token: &str| token.starts_with('[') && token.ends_with(']');
    let has_capital =
        |token: &String| !is_special(token) && token.bytes().any(|byte| byte.is_ascii_uppercase());
    let cased = cased.unwrap_or_else(|| vocabulary.tokens().iter().any(has_capital));
    Tokenizer::bert(vocabulary, if cased { BertNormalizer::cased() } else { BertNormalizer::uncased() })
}
