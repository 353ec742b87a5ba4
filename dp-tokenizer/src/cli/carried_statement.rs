//! The statement of a private release, carried along to a file of its tokenizer in another format.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokenizer::{StageMark, Tokenizer};

use super::failure::refuse;
use super::output::write_whole;
use super::statement;

const PRIVACY: &str = "privacy.json";

/// A `privacy.json` for the folder of a file that most formats leave without a mark.
pub(super) struct CarriedStatement {
    bytes: Vec<u8>,
}

impl CarriedStatement {
    /// Returns the statement of the tokenizer in `from`, if that was made from private text and `files` lie in another
    /// folder. The statement names the files that its tokenizer.json does not vouch for. A tokenizer that a private run
    /// made has a ledger instead; then the statement names the run, and has no figures that could be added up.
    pub(super) fn of(
        from: &Path,
        tokenizer: &Tokenizer,
        files: &[(PathBuf, Vec<u8>)],
    ) -> anyhow::Result<Option<Self>> {
        let Some((out, _)) = files.first() else { return Ok(None) };
        let is_json = from.extension().is_some_and(|extension| extension == "json");
        let (from_folder, out) = (folder_of(from), folder_of(out));
        let same =
            matches!((from_folder.canonicalize(), out.canonicalize()), (Ok(from), Ok(out)) if from == out);
        let found = std::fs::read(from_folder.join(PRIVACY)).ok();
        let (bytes, is_of_it) = match found
            .map(|bytes| (statement::parse(&bytes), bytes))
            .filter(|(stated, _)| !statement::is_of_public_text(stated))
        {
            _ if same => return Ok(None),
            Some((stated, bytes)) => {
                let is_of_it = stated["tokenizer_sha256"].is_string() && statement::is_of(&stated, from);
                (bytes, is_of_it)
            }
            // The tokenizer.json of a run bears its mark; another format of it beside the ledger cannot.
            None if tokenizer.mark().is_some() || (!is_json && from_folder.join("ledger.jsonl").exists()) => {
                let id = tokenizer.mark().and_then(StageMark::id);
                let reason =
                    "a training run made this tokenizer, or lies beside it; its ledger says what it cost";
                (text_of(&json!({ "private": true, "reason": reason, "id": id })), false)
            }
            None => return Ok(None),
        };
        let there = out.join(PRIVACY);
        let earlier = std::fs::read(&there).ok();
        let stated = |bytes: &[u8]| statement::without_converted(&statement::parse(bytes));
        if earlier.as_ref().is_some_and(|earlier| *earlier != bytes && stated(earlier) != stated(&bytes)) {
            return Err(refuse(format!(
                "--out: {} is of another tokenizer; name another folder",
                there.display()
            )));
        }
        if !is_of_it {
            return Ok(Some(Self { bytes }));
        }
        let known = statement::parse(&earlier.unwrap_or_else(|| text_of(&stated(&bytes))));
        let named =
            statement::with_converted(&known, files.iter().map(|(_, bytes)| durable::sha256_hex(bytes)));
        // The statement stays byte for byte the same if no other file has to be named.
        let bytes = if named == statement::parse(&bytes) { bytes } else { text_of(&named) };
        Ok(Some(Self { bytes }))
    }

    /// Writes the statement beside a file that is not written yet.
    pub(super) fn write(&self, out: &Path) -> anyhow::Result<()> {
        let path = folder_of(out).join(PRIVACY);
        write_whole(&path, &self.bytes)
    }
}

fn text_of(statement: &Value) -> Vec<u8> {
    format!("{statement:#}\n").into_bytes()
}

pub(super) fn folder_of(file: &Path) -> PathBuf {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}
