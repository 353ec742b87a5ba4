//! `convert`: tokenizers in the formats of several tools, recognized by file name.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use dp_tokenizer::format::{gpt2, sentencepiece::SentencePieceModel, vocab_txt};
use dp_tokenizer::normalize::BertNormalizer;
use dp_tokenizer::{FormatError, Tokenizer};

use super::arguments::Convert;
use super::failure::refuse;

/// The format that a file name implies.
enum Kind {
    TokenizerJson,
    SentencePiece,
    VocabTxt,
    Gpt2,
}

fn kind(path: &Path) -> anyhow::Result<Kind> {
    match (path.file_name().and_then(|n| n.to_str()), path.extension().and_then(|e| e.to_str())) {
        (_, Some("model")) => Ok(Kind::SentencePiece),
        (_, Some("txt")) => Ok(Kind::VocabTxt),
        (Some("vocab.json"), _) => Ok(Kind::Gpt2),
        (_, Some("json")) => Ok(Kind::TokenizerJson),
        _ => Err(refuse(format!(
            "{}: the format is told by the name; allowed: tokenizer.json, *.model, vocab.txt, vocab.json with merges.txt",
            path.display()
        ))),
    }
}

/// Reads a tokenizer from a file.
pub(super) fn load(path: &Path) -> anyhow::Result<Tokenizer> {
    let read = |path: &Path| {
        let give = "give a tokenizer.json, .model, vocab.txt, or vocab.json beside its merges.txt";
        std::fs::read(path).map_err(|error| refuse(format!("{}: {error}; {give}", path.display())))
    };
    let bytes = read(path)?;
    let tokenizer = match kind(path)? {
        Kind::TokenizerJson => {
            let text = String::from_utf8(bytes).map_err(|e| refuse(format!("{}: {e}", path.display())))?;
            Tokenizer::from_json(&text)
        }
        Kind::SentencePiece => {
            SentencePieceModel::from_bytes(&bytes).and_then(|m| Tokenizer::from_sentencepiece(&m))
        }
        Kind::VocabTxt => vocab_txt::read(&bytes).and_then(bert),
        Kind::Gpt2 => {
            let merges = read(&path.with_file_name("merges.txt"))?;
            gpt2::read_vocab(&bytes).and_then(|vocab| Tokenizer::gpt2(vocab, gpt2::read_merges(&merges)?))
        }
    };
    tokenizer.map_err(|error| refuse(format!("{}: {error}", path.display())))
}

/// A vocab.txt does not state its case. A vocabulary with capitals was not learnt from lower-cased text.
fn bert(vocabulary: dp_tokenizer::Vocabulary) -> Result<Tokenizer, FormatError> {
    let is_special = |token: &str| token.starts_with('[') && token.ends_with(']');
    let cased = vocabulary.tokens().iter().any(|t| !is_special(t) && t.chars().any(char::is_uppercase));
    Tokenizer::bert(vocabulary, if cased { BertNormalizer::cased() } else { BertNormalizer::uncased() })
}

/// Reads one format and writes another.
pub(super) fn run(arguments: &Convert) -> anyhow::Result<()> {
    let tokenizer = load(&arguments.tokenizer)?;
    let out = &arguments.out;
    let files: Vec<(std::path::PathBuf, Vec<u8>)> = match kind(out)? {
        Kind::TokenizerJson => vec![(out.clone(), tokenizer.to_json().into_bytes())],
        Kind::SentencePiece => vec![(out.clone(), tokenizer.to_sentencepiece().map_err(refuse)?.to_bytes())],
        Kind::VocabTxt => vec![(out.clone(), tokenizer.to_vocab_txt().map_err(refuse)?.into_bytes())],
        Kind::Gpt2 => {
            let (vocab, merges) = tokenizer.to_gpt2().map_err(refuse)?;
            vec![(out.clone(), vocab.into_bytes()), (out.with_file_name("merges.txt"), merges.into_bytes())]
        }
    };
    for (path, bytes) in files {
        std::fs::write(&path, bytes).with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    Ok(writeln!(io::stdout(), "{}: {} tokens", out.display(), tokenizer.vocab_size())?)
}
