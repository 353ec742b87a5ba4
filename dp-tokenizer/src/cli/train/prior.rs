//! `--prior`: public words that stand for those that were not released.

use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::read_counts;
use dp_tokenizer::train::{joint_prior, prior_words};
use serde_json::{Value, json};

use super::arguments::Train;
use super::extension::public_tokenizer;
use crate::cli::failure::refuse;
use crate::cli::tokenizer_file;

/// The public files, and their words with their shares.
pub(super) struct Priors {
    files: Vec<Prior>,
    pub(super) words: Vec<(String, f64)>,
}

impl Priors {
    /// Reads the files that the arguments name; `None` if they name none.
    pub(super) fn of(arguments: &Train) -> anyhow::Result<Option<Self>> {
        let read = |path: &PathBuf| Prior::read(path, arguments);
        let files = arguments.priors.iter().map(read).collect::<anyhow::Result<Vec<Prior>>>()?;
        let words: Vec<Vec<(String, f64)>> = files.iter().map(|prior| prior.words.clone()).collect();
        Ok((!files.is_empty()).then(|| Self { words: joint_prior(&words), files }))
    }

    /// Returns the part of privacy.json about the priors.
    pub(super) fn statement(&self) -> Value {
        self.files.iter().map(Prior::statement).collect()
    }
}

/// Public words with their counts or shares.
struct Prior {
    path: PathBuf,
    digest: String,
    words: Vec<(String, f64)>,
}

impl Prior {
    /// Reads counts of words (.tsv), or a public tokenizer.
    fn read(path: &Path, arguments: &Train) -> anyhow::Result<Self> {
        let path = path.to_owned();
        if path.extension().is_some_and(|extension| extension == "tsv") {
            let bytes =
                std::fs::read(&path).map_err(|error| refuse(format!("{}: {error}", path.display())))?;
            let words = read_counts(std::slice::from_ref(&path), arguments.words()).map_err(refuse)?;
            return Ok(Self { path, digest: durable::sha256_hex(&bytes), words });
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
        Ok(Self { path, digest, words })
    }

    fn statement(&self) -> Value {
        let file = self.path.file_name().map(|name| name.to_string_lossy());
        json!({"file": file, "sha256": self.digest, "words": self.words.len()})
    }
}
