//! `--prior`: public words that stand for those that were not released.

use std::path::PathBuf;

use dp_tokenizer::corpus::read_counts;
use dp_tokenizer::train::prior_words;
use serde_json::{Value, json};

use super::arguments::Train;
use super::extension::public_tokenizer;
use crate::cli::failure::refuse;
use crate::cli::tokenizer_file;

/// Public words with their shares.
pub(super) struct Prior {
    path: PathBuf,
    digest: String,
    pub(super) words: Vec<(String, f64)>,
}

impl Prior {
    /// Reads the file that the arguments name: counts of words (.tsv), or a public tokenizer.
    pub(super) fn of(arguments: &Train) -> anyhow::Result<Option<Self>> {
        let Some(path) = arguments.prior.clone() else { return Ok(None) };
        if path.extension().is_some_and(|extension| extension == "tsv") {
            let bytes =
                std::fs::read(&path).map_err(|error| refuse(format!("{}: {error}", path.display())))?;
            let words = read_counts(std::slice::from_ref(&path), arguments.words()).map_err(refuse)?;
            return Ok(Some(Self { path, digest: durable::sha256_hex(&bytes), words }));
        }
        let path = tokenizer_file::locate(&path.to_string_lossy()).map_err(refuse)?;
        let (public, digest) = public_tokenizer(&path)?;
        let words = prior_words(&public);
        if words.is_empty() {
            return Err(refuse(format!(
                "{}: none of its tokens is a piece of a word; give a tokenizer with learnt pieces, or counts of words (.tsv)",
                path.display()
            )));
        }
        Ok(Some(Self { path, digest, words }))
    }

    /// Returns the part of privacy.json about the prior.
    pub(super) fn statement(&self) -> Value {
        let file = self.path.file_name().map(|name| name.to_string_lossy());
        json!({"file": file, "sha256": self.digest, "words": self.words.len()})
    }
}
