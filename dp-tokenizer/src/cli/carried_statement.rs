//! The statement of a private release, carried along to a file of its tokenizer in another format.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;
use tokenizer::{StageMark, Tokenizer};

use super::failure::refuse;
use super::statement;

const PRIVACY: &str = "privacy.json";

/// A `privacy.json` for the folder of a file that most formats leave without a mark.
pub(super) struct CarriedStatement {
    bytes: Vec<u8>,
}

impl CarriedStatement {
    /// That of the tokenizer in `from`, if it was made from private text and `out` lies in another folder. Byte for byte, so that
    /// it is known as the same release. A tokenizer that a private run made has its ledger in place of it; then the statement
    /// names the run, and says nothing that could be added up.
    pub(super) fn of(from: &Path, tokenizer: &Tokenizer, out: &Path) -> anyhow::Result<Option<Self>> {
        let is_json = from.extension().is_some_and(|extension| extension == "json");
        let (from, out) = (folder_of(from), folder_of(out));
        let same = matches!((from.canonicalize(), out.canonicalize()), (Ok(from), Ok(out)) if from == out);
        let found = std::fs::read(from.join(PRIVACY)).ok();
        let bytes = match found.filter(|bytes| !statement::is_of_public_text(&statement::parse(bytes))) {
            _ if same => return Ok(None),
            Some(bytes) => bytes,
            // A run's own tokenizer.json bears its mark; another format of it beside the ledger cannot.
            None if tokenizer.mark().is_some() || (!is_json && from.join("ledger.jsonl").exists()) => {
                let id = tokenizer.mark().and_then(StageMark::id);
                let reason =
                    "a training run made this tokenizer, or lies beside it; its ledger says what it cost";
                format!("{:#}\n", json!({ "private": true, "reason": reason, "id": id })).into_bytes()
            }
            None => return Ok(None),
        };
        let there = out.join(PRIVACY);
        match std::fs::read(&there) {
            Ok(other) if other != bytes => Err(refuse(format!(
                "--out: {} is of another tokenizer; name another folder",
                there.display()
            ))),
            _ => Ok(Some(Self { bytes })),
        }
    }

    /// Writes it beside a file that is not written yet.
    pub(super) fn write(&self, out: &Path) -> anyhow::Result<()> {
        let path = folder_of(out).join(PRIVACY);
        std::fs::write(&path, &self.bytes).with_context(|| format!("{}: cannot be written", path.display()))
    }
}

fn folder_of(file: &Path) -> PathBuf {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}
