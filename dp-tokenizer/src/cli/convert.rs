//! `convert`: tokenizers in the formats of several tools, recognized by file name.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use durable::ExclusiveFile;
use tokenizer::format::{gpt2, vocab_txt};
use tokenizer::normalize::BertNormalizer;
use tokenizer::sentencepiece::SentencePieceModel;
use tokenizer::{FormatError, Tokenizer};

use super::arguments::{Convert, TokenizerFile};
use super::carried_statement::{CarriedStatement, folder_of};
use super::failure::refuse;
use super::output::write_whole;
use super::statement;

/// The format that a file name implies.
enum Kind {
    TokenizerJson,
    SentencePiece,
    VocabTxt,
    Gpt2,
}

/// By the name of the file, or by its content where the name tells nothing.
fn kind_of_file(path: &Path) -> anyhow::Result<Kind> {
    let error = match kind(path) {
        Ok(kind) => return Ok(kind),
        Err(error) => error,
    };
    let bytes = read(path)?;
    match () {
        () if bytes.trim_ascii_start().starts_with(b"{") => Ok(Kind::TokenizerJson),
        () if SentencePieceModel::from_bytes(&bytes).is_ok() => Ok(Kind::SentencePiece),
        () => Err(error),
    }
}

fn kind(path: &Path) -> anyhow::Result<Kind> {
    match (path.file_name().and_then(|n| n.to_str()), path.extension().and_then(|e| e.to_str())) {
        (_, Some("model" | "spm")) => Ok(Kind::SentencePiece),
        (_, Some("txt")) => Ok(Kind::VocabTxt),
        (Some("vocab.json"), _) => Ok(Kind::Gpt2),
        (_, Some("json")) => Ok(Kind::TokenizerJson),
        _ => Err(refuse(format!(
            "{}: the format is told by the name; allowed: tokenizer.json, *.model, *.spm, vocab.txt, vocab.json with merges.txt",
            path.display()
        ))),
    }
}

/// The file of a tokenizer: the path itself, or a file in that folder.
pub(super) fn tokenizer_file(path: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    if !path.is_dir() {
        return Ok(path);
    }
    let named = |name: &str| Some(path.join(name)).filter(|file| file.is_file());
    let mut models: Vec<PathBuf> = std::fs::read_dir(&path)
        .map_err(|error| error.to_string())?
        .filter_map(|entry| {
            Some(entry.ok()?.path()).filter(|file| matches!(kind(file), Ok(Kind::SentencePiece)))
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
    let give = "give a tokenizer.json, .model, vocab.txt, or vocab.json beside its merges.txt, or a folder that holds one";
    std::fs::read(path).map_err(|error| refuse(format!("{}: {error}; {give}", path.display())))
}

/// Reads a tokenizer from a file.
pub(super) fn load(file: &TokenizerFile) -> anyhow::Result<Tokenizer> {
    let path = &file.path;
    let kind = kind_of_file(path)?;
    if (file.cased || file.uncased) && !matches!(kind, Kind::VocabTxt) {
        let flag = if file.cased { "--cased" } else { "--uncased" };
        return Err(refuse(format!(
            "{}: this format states how text is normalized; {flag} is for a vocab.txt alone",
            path.display()
        )));
    }
    let bytes = read(path)?;
    let tokenizer = match kind {
        Kind::VocabTxt => {
            let stated = if file.cased || file.uncased { Some(file.cased) } else { stated_case(path)? };
            vocab_txt::read(&bytes).and_then(|vocabulary| bert(vocabulary, stated))
        }
        Kind::Gpt2 => parse(&kind, &bytes, &read(&path.with_file_name("merges.txt"))?),
        Kind::TokenizerJson => with_stated_roles(parse(&kind, &bytes, &[]), path),
        Kind::SentencePiece => parse(&kind, &bytes, &[]),
    };
    tokenizer.map_err(|error| refuse(format!("{}: {error}", path.display())))
}

/// A tokenizer with the roles that the `tokenizer_config.json` beside it states.
fn with_stated_roles(read: Result<Tokenizer, FormatError>, path: &Path) -> Result<Tokenizer, FormatError> {
    match (read, std::fs::read_to_string(path.with_file_name("tokenizer_config.json"))) {
        (Ok(tokenizer), Ok(config)) => tokenizer.with_config(&config),
        (read, _) => read,
    }
}

/// Reads the bytes of a file, and of the merges beside a vocab.json.
fn parse(kind: &Kind, bytes: &[u8], merges: &[u8]) -> Result<Tokenizer, FormatError> {
    match kind {
        Kind::TokenizerJson => {
            let text = std::str::from_utf8(bytes).map_err(|error| FormatError::Inconsistent {
                reason: format!("it is not UTF-8 from byte {} on", error.valid_up_to()),
            })?;
            Tokenizer::from_json(text)
        }
        Kind::SentencePiece => Tokenizer::from_sentencepiece(&SentencePieceModel::from_bytes(bytes)?),
        Kind::VocabTxt => bert(vocab_txt::read(bytes)?, None),
        Kind::Gpt2 => Tokenizer::gpt2(gpt2::read_vocab(bytes)?, gpt2::read_merges(merges)?),
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

/// A vocab.txt does not state its case. A vocabulary with capitals was not learnt from lower-cased text. Only those from A
/// to Z tell: the property of Unicode holds of characters that lower-casing leaves as they are, and BERT's own lower-cased
/// vocabulary has some.
fn bert(vocabulary: tokenizer::Vocabulary, cased: Option<bool>) -> Result<Tokenizer, FormatError> {
    let is_special = |token: &str| token.starts_with('[') && token.ends_with(']');
    let has_capital =
        |token: &String| !is_special(token) && token.bytes().any(|byte| byte.is_ascii_uppercase());
    let cased = cased.unwrap_or_else(|| vocabulary.tokens().iter().any(has_capital));
    Tokenizer::bert(vocabulary, if cased { BertNormalizer::cased() } else { BertNormalizer::uncased() })
}

impl Convert {
    /// The files that are read.
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
    let tokenizer = load(&arguments.tokenizer)?;
    let out = &arguments.out;
    let kind = kind(out)?;
    let files: Vec<(PathBuf, Vec<u8>)> = match kind {
        Kind::TokenizerJson => vec![(out.clone(), tokenizer.to_json().into_bytes())],
        Kind::SentencePiece => vec![(out.clone(), tokenizer.to_sentencepiece().map_err(refuse)?.to_bytes())],
        Kind::VocabTxt => vec![(out.clone(), tokenizer.to_vocab_txt().map_err(refuse)?.into_bytes())],
        Kind::Gpt2 => {
            let (vocab, merges) = tokenizer.to_gpt2().map_err(refuse)?;
            vec![(out.clone(), vocab.into_bytes()), (out.with_file_name("merges.txt"), merges.into_bytes())]
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
    let read = files.first().map(|file| parse(&kind, &file.1, merges)).transpose().map_err(refuse)?;
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
        super::train::progress(&format!("warning: a few texts are read otherwise: {rare}"));
    }
    Ok(writeln!(io::stdout(), "{}: {} tokens", out.display(), tokenizer.vocab_size())?)
}
