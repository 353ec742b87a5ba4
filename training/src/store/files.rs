//! Names of the files in a run folder, and checks that a folder can be used.

use std::fs;
use std::path::{Path, PathBuf};

use crate::RunError;

/// The plan, byte for byte as the user gave it.
pub const PLAN: &str = "plan.json";
/// The ledger, which records what was spent.
pub const LEDGER: &str = "ledger.jsonl";
/// State of a run between two steps.
pub(crate) const CHECKPOINT: &str = "checkpoint.safetensors";
/// The best weights so far by public evaluation text, during the run.
pub(crate) const BEST: &str = "best.safetensors";
/// Models after selected steps, each in a folder named after its number of steps.
pub(crate) const SNAPSHOTS: &str = "snapshots";
/// The tokenizer.
pub const TOKENIZER: &str = "tokenizer.json";
/// The tokenizer's settings as `transformers` reads them.
pub(crate) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
/// The chat template of a tokenizer, as `transformers` reads it.
pub const CHAT_TEMPLATE: &str = "chat_template.jinja";
/// Weights of a finished model, both in a run folder and in a checkpoint of `transformers`.
pub const MODEL: &str = "model.safetensors";
/// Configuration of a model, both in a run folder and in a checkpoint of `transformers`.
pub const CONFIG: &str = "config.json";
/// Settings with which `transformers` generates text, if the model generates any.
pub(crate) const GENERATION_CONFIG: &str = "generation_config.json";
/// Low-rank adapters as PEFT loads them.
pub(crate) const ADAPTER: &str = "adapter/adapter_model.safetensors";
/// Configuration of the low-rank adapters.
pub(crate) const ADAPTER_CONFIG: &str = "adapter/adapter_config.json";
/// The parts of a `sentence-transformers` model that classifies means of hidden states.
pub(crate) const MODULES: &str = "modules.json";
/// The longest text of a `sentence-transformers` model, in tokens.
pub(crate) const MODULES_LENGTH: &str = "sentence_bert_config.json";
/// The mean of hidden states in a `sentence-transformers` model.
pub(crate) const MODULES_POOLING: &str = "1_Pooling/config.json";
/// The shape of the head in a `sentence-transformers` model.
pub(crate) const MODULES_HEAD_CONFIG: &str = "2_Dense/config.json";
/// The head of a `sentence-transformers` model.
pub(crate) const MODULES_HEAD: &str = "2_Dense/model.safetensors";
/// The released counts of labels.
pub const LABELS: &str = "labels.json";
/// Public figures of training, one line an evaluation.
pub const METRICS: &str = "metrics.jsonl";
/// Public figures of training for TensorBoard, which looks for `tfevents`.
pub(crate) const TENSORBOARD: &str = "events.out.tfevents.run";
/// Figures of the finished model on the public evaluation text.
pub(crate) const EVALUATION: &str = "evaluation.json";
/// Canaries of an audit.
pub(crate) const CANARIES: &str = "canaries.json";
/// Findings of an audit.
pub const AUDIT: &str = "audit.json";
/// A keyed digest of the training text, which is private and exists only during the run.
pub(crate) const CORPUS_DIGEST: &str = ".corpus-digest";
/// The certificate for programs.
pub const CERTIFICATE_JSON: &str = "certificate.json";
/// The certificate for readers.
pub const CERTIFICATE_MARKDOWN: &str = "certificate.md";
/// A sweep as the user wrote it.
pub(crate) const SWEEP: &str = "sweep.json";
/// An evolution as the user wrote it.
pub(crate) const EVOLUTION: &str = "evolution.json";
/// A paraphrase as the user wrote it.
pub const PARAPHRASE: &str = "paraphrase.json";
/// The texts of a paraphrase that were drawn so far.
pub(crate) const TEXTS: &str = "texts.json";
/// The candidates of an evolution between two rounds of votes.
pub(crate) const CANDIDATES: &str = "candidates.json";
/// The synthetic records of an evolution or a paraphrase.
pub const RECORDS: &str = "records.jsonl";
/// The card of these records.
pub(crate) const RECORDS_CARD: &str = "records.card.md";
/// The charge of a sweep, written before its first trial begins.
pub(crate) const CHARGE: &str = "charge.json";
/// Proofs of the stages that a run builds on, a folder each.
pub const PARENTS: &str = "parents";
/// Model and tokenizer for llama.cpp, in an export.
pub const GGUF: &str = "model.gguf";
/// The statement of `dp-tokenizer train` about a vocabulary.
pub(crate) const PRIVACY: &str = "privacy.json";
/// The report of a finished run.
pub const REPORT: &str = "report.html";

/// The page about a finished run that is printed and signed.
pub const STATEMENT: &str = "statement.html";

/// Returns whether a file of this name is part of a snapshot. Snapshots may be removed, and exports leave them out.
pub fn is_snapshot(name: &str) -> bool {
    name.strip_prefix(SNAPSHOTS).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the name of the file of an evolution or a paraphrase, if a folder holds one.
#[must_use]
pub fn synthesis_in(folder: &Path) -> Option<&'static str> {
    let is_there = |name: &&str| folder.join(name).exists();
    [EVOLUTION, PARAPHRASE].into_iter().find(is_there).filter(|_| folder.join(LEDGER).exists())
}

/// Refuses a folder that holds no run.
///
/// # Errors
/// [`RunError::Refused`], with what to give instead.
pub(crate) fn require_run(folder: &Path) -> Result<(), RunError> {
    if let Some(file) = synthesis_in(folder) {
        let what = if file == EVOLUTION { "an evolution" } else { "a paraphrase" };
        return Err(RunError::Refused(format!(
            "{} is the folder of {what}, which has no model; `trainer-native verify` and `trainer-native history` take it",
            folder.display()
        )));
    }
    if folder.join(LEDGER).exists() {
        return Ok(());
    }
    if folder.join(PRIVACY).exists() {
        return Err(RunError::Refused(format!(
            "{0} is the folder of a vocabulary; `trainer-native history {0} --delta D` verifies its statement and computes its ε, and \
             `dp-tokenizer inspect --tokenizer {0}` shows it",
            folder.display()
        )));
    }
    Err(RunError::Refused(format!(
        "{} is not a run folder: it has no {LEDGER}; give the folder that `trainer-native --plan PLAN.json` wrote \
         (default: runs/<plan name>)",
        folder.display()
    )))
}

/// Returns the statements of the releases that `dp-tokenizer train --overwrite` replaced in a folder: `privacy.1.json`
/// and so on.
///
/// # Errors
/// [`RunError::Storage`] if the folder cannot be read.
pub(crate) fn earlier_statements(folder: &Path) -> Result<Vec<PathBuf>, RunError> {
    let listing = fs::read_dir(folder).map_err(|error| RunError::storage("read", folder, &error))?;
    let number = |path: &PathBuf| -> Option<u64> {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix("privacy.")?.strip_suffix(".json")?.parse().ok()
    };
    let mut found: Vec<PathBuf> =
        listing.flatten().map(|entry| entry.path()).filter(|path| number(path).is_some()).collect();
    found.sort_by_key(number);
    Ok(found)
}

/// Returns the folder, beside a text, with the proof of the run whose model wrote the text.
pub fn proof_of_text(text: &Path) -> PathBuf {
    let is_compressed = text.extension().is_some_and(|extension| extension == "gz" || extension == "zst");
    let text = if is_compressed { text.with_extension("") } else { text.to_owned() };
    text.with_extension("proof")
}

/// Returns the proofs of those texts that have one, each once. If a text is a link, its target's
/// proof is included.
pub(crate) fn proofs_of_texts(texts: &[PathBuf]) -> Vec<PathBuf> {
    let targets = texts.iter().filter_map(|text| text.canonicalize().ok());
    let mut proofs: Vec<PathBuf> = texts
        .iter()
        .cloned()
        .chain(targets)
        .filter_map(|text| proof_of_text(&text).canonicalize().ok())
        .collect();
    proofs.sort_unstable();
    proofs.dedup();
    proofs
}

/// Refuses a folder without a finished model.
///
/// # Errors
/// [`RunError::Refused`], with the command that finishes the run.
pub fn require_finished(folder: &Path) -> Result<(), RunError> {
    require_run(folder)?;
    if folder.join(MODEL).exists() { Ok(()) } else { Err(unfinished(folder)) }
}

/// Returns the refusal of a run that has no model yet.
pub(super) fn unfinished(folder: &Path) -> RunError {
    RunError::Refused(format!(
        "the run in {0} is not finished, so it has no model yet; continue it with `trainer-native --plan PLAN.json --out {0} \
         --resume`",
        folder.display()
    ))
}

/// Refuses to overwrite a file of a run, or any other file without `overwrite`.
///
/// # Errors
/// [`RunError::Refused`], with what to give instead.
pub fn check_new(path: &Path, overwrite: bool) -> Result<(), RunError> {
    let name = path.file_name().unwrap_or_default();
    let beside_ledger = path.with_file_name(LEDGER).exists() && name != REPORT && name != STATEMENT;
    if beside_ledger || (path.symlink_metadata().is_ok() && !overwrite) {
        let fix = if beside_ledger {
            "a run folder is left as it is; name a file elsewhere"
        } else {
            "it exists; name another file, or replace it with --overwrite"
        };
        return Err(RunError::Refused(format!("--out: {}: {fix}", path.display())));
    }
    Ok(())
}

/// Refuses a folder with files other than `left`, which an `owner` (a run or a sweep) may leave if
/// it is killed before its ledger begins. A stray `tokenizer.json` must never be taken for the
/// owner's.
pub(crate) fn require_empty(folder: &Path, owner: &str, left: &[&str]) -> Result<(), RunError> {
    let Ok(listing) = fs::read_dir(folder) else { return Ok(()) };
    for entry in listing.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_temporary = name.starts_with('.') && name.ends_with(".tmp");
        if !is_temporary && name != ".lock" && !left.contains(&&*name) {
            return Err(RunError::Refused(format!(
                "{} holds {name}, which no {owner} wrote; give a new or empty folder with --out",
                folder.display()
            )));
        }
    }
    Ok(())
}
