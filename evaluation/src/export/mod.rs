//! Writes a finished run as a model folder for publication: weights in a chosen number format,
//! tokenizer, certificate and model card.

mod gguf;

use std::fs;
use std::path::Path;

use durable::FolderLock;
use gguf::Gguf;
use network::tensor_file::{Formatted, NamedTensor, NumberFormat, PrivacyMark, read_tensors, write_model};
use training::store::ledger::FileDigest;
use training::store::lineage::copy_proofs;
use training::store::{certificate, covered, files};
use training::summary::read_evaluation;
use training::verify::VerifiedRun;
use training::{RunError, model_card};

/// Verifies a finished run and writes its model to the new or empty folder `out`, with everything that proves its guarantee:
/// `trainer-native verify` accepts the new folder as it does the run's. With `as_gguf`, the model is also written for llama.cpp.
///
/// # Errors
/// [`RunError::Verification`] if the run is not what it claims; [`RunError::Refused`] if `out` holds files, a weight is
/// too large for the format, the run is itself an export in 16 bits, or GGUF cannot say what the model is; [`RunError::Storage`] if it cannot be written.
pub fn export(run: &Path, out: &Path, format: NumberFormat, as_gguf: bool) -> Result<(), RunError> {
    let VerifiedRun { plan, ledger, certificate, rounded, .. } = VerifiedRun::read(run)?;
    covered::check_nothing_added(run, ledger.files())?;
    if rounded.is_some() {
        return Err(RunError::Refused(format!(
            "{} holds rounded weights; export the run folder itself",
            run.display()
        )));
    }
    let mark = certificate::mark(&plan, &ledger);
    // Before the folder is made, because it may be refused.
    let gguf = as_gguf.then(|| Gguf::of_run(run, format, &mark)).transpose()?;
    let _lock = empty_folder(out)?;
    if let Some(gguf) = gguf {
        gguf.write(run, &out.join(files::GGUF))?;
    }
    let is_of_model = |file: &&FileDigest| !files::is_snapshot(&file.name);
    for FileDigest { name, .. } in ledger.files().iter().filter(is_of_model) {
        let (from, to) = (run.join(name), out.join(name));
        to.parent().map_or(Ok(()), durable::create_folder)?;
        match name.as_str() {
            files::MODEL if format != NumberFormat::F32 => {
                weights(&read_tensors(&from)?, format, &mark, &to)?
            }
            files::CONFIG if format != NumberFormat::F32 => {
                durable::write_atomic(&to, config(run, format)?.as_bytes())?
            }
            _ => durable::copy(&from, &to)?,
        }
    }
    for name in [files::PLAN, files::LEDGER, files::CERTIFICATE_JSON, files::CERTIFICATE_MARKDOWN] {
        durable::write_atomic(&out.join(name), &durable::read(&run.join(name))?)?;
    }
    copy_proofs(run, out)?;
    let evaluation = read_evaluation(run, ledger.files())?;
    let card = model_card::render(&certificate, plan.plan(), evaluation.as_ref());
    durable::write_atomic(&out.join(model_card::NAME), card.as_bytes())?;
    training::store::settle(out);
    // Another version of this program may write other bytes, for which there is no digest.
    VerifiedRun::read(out).map(|_| ())
}

/// Creates the folder or checks that it is empty, and keeps other processes out of it.
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

fn weights(
    tensors: &[NamedTensor],
    format: NumberFormat,
    mark: &PrivacyMark,
    out: &Path,
) -> Result<(), RunError> {
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
    Ok(write_model(out, tensors.iter().map(|tensor| (&*tensor.name, view(tensor))).collect(), mark)?)
}

fn config(run: &Path, format: NumberFormat) -> Result<String, RunError> {
    let path = run.join(files::CONFIG);
    let failed = |error: serde_json::Error| RunError::Failed(format!("{}: {error}", path.display()));
    let mut config: serde_json::Value = serde_json::from_slice(&durable::read(&path)?).map_err(failed)?;
    format.name_in(&mut config);
    Ok(durable::pretty_json(&config)?)
}
