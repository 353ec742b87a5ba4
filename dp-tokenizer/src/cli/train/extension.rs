//! `--extend`: released words become tokens of a public tokenizer.

use std::path::{Path, PathBuf};

use dp_tokenizer::train::{Trained, extend, nothing_added};
use serde_json::{Value, json};
use tokenizer::Tokenizer;

use super::arguments::Train;
use crate::cli::failure::refuse;
use crate::cli::statement::{is_of_public_text, parse};
use crate::cli::tokenizer_file::TokenizerFile;

/// The default for the most tokens that are added.
const ADDED_TOKENS: usize = 4000;

/// The tokenizer to extend.
pub(super) struct Extension {
    path: PathBuf,
    digest: String,
    public: Tokenizer,
    most: usize,
}

impl Extension {
    /// Returns the extension that the arguments ask for. Every fault of the file that can be refused is refused here,
    /// before anything is spent.
    pub(super) fn of(arguments: &Train) -> anyhow::Result<Option<Self>> {
        let Some(path) = arguments.extend.clone() else { return Ok(None) };
        let (public, digest) = public_tokenizer(&path)?;
        let most = arguments.added_tokens.unwrap_or(ADDED_TOKENS);
        let extension = Self { path, digest, public, most };
        extension.train(&[("\u{2581}a".to_owned(), 1.0)])?;
        Ok(Some(extension))
    }

    pub(super) fn train(&self, words: &[(String, f64)]) -> anyhow::Result<Trained> {
        extend(&self.public, words, self.most)
            .map_err(|error| refuse(format!("{}: {error}", self.path.display())))
    }

    pub(super) fn nothing_added(&self, extended: &Tokenizer) -> Option<String> {
        nothing_added(&self.public, extended)
    }

    /// Returns the most tokens that the result can have.
    pub(super) fn largest(&self) -> usize {
        self.public.vocab_size().saturating_add(self.most)
    }

    /// Returns the part of privacy.json about the extension.
    pub(super) fn statement(&self) -> Value {
        let file = self.path.file_name().map(|name| name.to_string_lossy());
        json!({"file": file, "sha256": self.digest, "tokens": self.public.vocab_size()})
    }
}

/// Loads a tokenizer that nothing marks as private, and returns it with the digest of its file.
pub(super) fn public_tokenizer(path: &Path) -> anyhow::Result<(Tokenizer, String)> {
    if path.with_file_name("ledger.jsonl").exists() {
        return Err(refuse(format!(
            "{}: it is the tokenizer of a training run, which private text may have made; give a public tokenizer",
            path.display()
        )));
    }
    let statement = std::fs::read(path.with_file_name("privacy.json"));
    if statement.is_ok_and(|bytes| !is_of_public_text(&parse(&bytes))) {
        return Err(refuse(format!(
            "{}: the privacy.json beside it does not say that it was made from public text, and the ε of private text would \
             add to that of this release; give a public tokenizer",
            path.display()
        )));
    }
    let public = TokenizerFile { path: path.to_owned(), cased: false, uncased: false }.load()?;
    if public.mark().is_some() {
        return Err(refuse(format!(
            "{}: its mark says that a private stage made it, and the ε of private text would add to that of this release; give \
             a public tokenizer",
            path.display()
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| refuse(format!("{}: {error}", path.display())))?;
    Ok((public, durable::sha256_hex(&bytes)))
}
