//! A finished run as a model folder to publish: weights in a chosen number format, tokenizer, certificate, model card.

mod gguf;

use std::fs;
use std::path::Path;

use plan::Objective;

use crate::RunError;
use crate::durable::{self, FolderLock};
use crate::infer::Evaluation;
use crate::store::certificate::{self, Certificate};
use crate::store::exported::Export;
use crate::store::files;
use crate::store::ledger::FileDigest;
use crate::store::lineage::copy_proofs;
use crate::summary::read_evaluation;
use crate::tensor_file::{Formatted, NamedTensor, NumberFormat, read_tensors, write_model};
use crate::verify::VerifiedRun;

/// Verifies a finished run and writes its model to the new or empty folder `out`, with everything that proves its guarantee:
/// `trainer-native verify` accepts the new folder as it does the run's. With `as_gguf`, the model is also written for llama.cpp.
///
/// # Errors
/// [`RunError::Verification`] if the run is not what it claims; [`RunError::Refused`] if `out` holds files, a weight is
/// too large for the format, the run is itself an export in 16 bits, or GGUF cannot say what the model is; [`RunError::Storage`] if it cannot be written.
pub(crate) fn export(run: &Path, out: &Path, format: NumberFormat, as_gguf: bool) -> Result<(), RunError> {
    let VerifiedRun { plan, ledger, certificate } = VerifiedRun::read(run)?;
    if Export::read(run)?.is_some() {
        return Err(RunError::Refused(format!(
            "{} holds rounded weights; export the run folder itself",
            run.display()
        )));
    }
    let mark = certificate::mark(&plan, &ledger);
    let _lock = empty_folder(out)?;
    if as_gguf {
        // First, because it may be refused.
        gguf::write(run, &out.join(files::GGUF), format, &mark)?;
    }
    let mut changed = Vec::new();
    for FileDigest { name, .. } in &certificate.hashes.files {
        let (from, to) = (run.join(name), out.join(name));
        to.parent().map_or(Ok(()), durable::create_folder)?;
        match name.as_str() {
            files::MODEL if format != NumberFormat::F32 => {
                weights(&read_tensors(&from)?, format, &mark, &to)?
            }
            files::CONFIG if format != NumberFormat::F32 => {
                durable::write_atomic(&to, &config(run, format)?)?
            }
            _ => {
                durable::copy(&from, &to)?;
                continue;
            }
        }
        changed.push(FileDigest { name: name.clone(), sha256: durable::sha256_of(&to)? });
    }
    if !changed.is_empty() {
        let export = Export { format: 1, dtype: format.of_transformers().to_owned(), files: changed };
        let text = serde_json::to_vec_pretty(&export).map_err(|error| RunError::Failed(error.to_string()))?;
        durable::write_atomic(&out.join(files::EXPORT), &text)?;
    }
    for name in [files::PLAN, files::LEDGER, files::CERTIFICATE_JSON, files::CERTIFICATE_MARKDOWN] {
        durable::write_atomic(&out.join(name), &durable::read(&run.join(name))?)?;
    }
    copy_proofs(run, out)?;
    let card = model_card(&certificate, plan.plan(), read_evaluation(run).as_ref());
    durable::write_atomic(&out.join("README.md"), card.as_bytes())
}

/// Creates the folder, or finds it empty, and keeps other processes out of it.
fn empty_folder(out: &Path) -> Result<FolderLock, RunError> {
    fs::create_dir_all(out).map_err(|error| RunError::storage("create", out, &error))?;
    let lock = FolderLock::take(out)?;
    let listing = fs::read_dir(out).map_err(|error| RunError::storage("read", out, &error))?;
    match listing.flatten().find(|entry| entry.file_name() != ".lock") {
        None => Ok(lock),
        Some(_) => Err(RunError::Refused(format!(
            "{} is not empty; give a new or empty folder with --out",
            out.display()
        ))),
    }
}

fn weights(tensors: &[NamedTensor], format: NumberFormat, mark: &str, out: &Path) -> Result<(), RunError> {
    if format == NumberFormat::F16 {
        let beyond = |tensor: &&NamedTensor| tensor.data.iter().any(|v| !half::f16::from_f32(*v).is_finite());
        if let Some(tensor) = tensors.iter().find(beyond) {
            return Err(RunError::Refused(format!(
                "tensor {} has a value beyond 65504, the largest of f16; export with --dtype bf16 or f32",
                tensor.name
            )));
        }
    }
    let view = |tensor| Formatted { tensor, format };
    write_model(out, tensors.iter().map(|tensor| (&*tensor.name, view(tensor))).collect(), mark)
}

fn config(run: &Path, format: NumberFormat) -> Result<Vec<u8>, RunError> {
    let path = run.join(files::CONFIG);
    let failed = |error: serde_json::Error| RunError::Failed(format!("{}: {error}", path.display()));
    let mut config: serde_json::Value = serde_json::from_slice(&durable::read(&path)?).map_err(failed)?;
    config["dtype"] = serde_json::json!(format.of_transformers());
    let mut text = serde_json::to_vec_pretty(&config).map_err(failed)?;
    text.push(b'\n');
    Ok(text)
}

/// A model card as model hubs show it: what is promised first, and what is not.
fn model_card(c: &Certificate, plan: &plan::Plan, evaluation: Option<&Evaluation>) -> String {
    let title = c.name.replace(['\n', '\r'], " ");
    let tags = if c.private { "\n- differential-privacy" } else { "" };
    let library = if plan.model().family.is_in_transformers() { "library_name: transformers\n" } else { "" };
    let task = match plan.training().objective {
        Objective::CausalLm | Objective::Chat => "text-generation",
        Objective::SpanCorruption | Objective::PrefixLm | Objective::TextToText => "text2text-generation",
        Objective::MaskedLm | Objective::MaskedLmNextSentence => "fill-mask",
        Objective::SequenceClassification | Objective::MultiLabelClassification => "text-classification",
        Objective::TokenClassification => "token-classification",
    };
    let promise = c.summary.as_ref().unwrap_or(&c.guarantee.statement);
    let mut card = format!("---\n{library}tags:\n- {task}{tags}\n---\n\n# {title}\n\n{promise}\n");
    card.push_str(&c.promise_in_markdown());
    if let Some(evaluation) = evaluation {
        card.push_str(&format!(
            "\nOn held-out public text: {}.\n",
            evaluation.to_string().replace('\n', "; ")
        ));
    }
    card.push_str("\n## What is not protected\n\n");
    for item in &c.not_protected {
        card.push_str(&format!("- {item}\n"));
    }
    card.push_str(
        "\n`certificate.md` has every parameter and condition. `trainer-native verify` on this folder recomputes ε from the plan \
         and the ledger, and compares every file with the run's digests. Weights in 16 bits are compared with export.json.\n",
    );
    card
}
