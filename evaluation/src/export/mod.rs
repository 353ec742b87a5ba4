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
/// `trainer-native verify` accepts the new folder as it does the run's. Until it is whole, it has another name, which a killed process
/// leaves to the next export of that folder.
///
/// # Errors
/// [`RunError::Verification`] if the run is not what it claims; [`RunError::Refused`] if `out` holds files, a weight is
/// too large for the format, the run is itself an export in 16 bits, the licence is no identifier, or GGUF cannot say what the model is;
/// [`RunError::Storage`] if it cannot be written.
pub fn export(run: &Path, out: &Path, options: &ExportOptions) -> Result<(), RunError> {
    let ExportOptions { format, gguf: as_gguf, licence } = options;
    if !model_card::is_licence(licence) {
        return Err(RunError::Refused(format!(
            "--licence: {licence:?}; allowed: an identifier of model hubs in lower case, such as apache-2.0, mit or cc-by-4.0"
        )));
    }
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
    let gguf = as_gguf.then(|| Gguf::of_run(run, *format, &mark)).transpose()?;
    let whole = &std::path::absolute(out).map_err(|error| RunError::storage("find", out, &error))?;
    let (_lock, aside) = (empty_beside(whole)?, durable::temporary(whole));
    let out = aside.as_path();
    if let Some(gguf) = gguf {
        gguf.write(run, &out.join(files::GGUF))?;
    }
    let is_of_model = |file: &&FileDigest| !files::is_snapshot(&file.name);
    for FileDigest { name, .. } in ledger.files().iter().filter(is_of_model) {
        let (from, to) = (run.join(name), out.join(name));
        to.parent().map_or(Ok(()), durable::create_folder)?;
        match name.as_str() {
            files::MODEL if *format != NumberFormat::F32 => {
                weights(&read_tensors(&from)?, *format, &mark, &to)?
            }
            files::CONFIG if *format != NumberFormat::F32 => {
                durable::write_atomic(&to, config(run, *format)?.as_bytes())?
            }
            _ => durable::copy(&from, &to)?,
        }
    }
    for name in [files::PLAN, files::LEDGER, files::CERTIFICATE_JSON, files::CERTIFICATE_MARKDOWN] {
        durable::write_atomic(&out.join(name), &durable::read(&run.join(name))?)?;
    }
    copy_proofs(run, out)?;
    let evaluation = read_evaluation(run, ledger.files())?;
    let card = model_card::render(&certificate, plan.plan(), evaluation.as_ref(), licence);
    durable::write_atomic(&out.join(model_card::NAME), card.as_bytes())?;
    training::store::settle(out);
    // Another version of this program may write other bytes, for which there is no digest.
    VerifiedRun::read(out)?;
    // An empty folder gives way to the whole one, which not every system does by itself.
    let _ = fs::remove_dir(whole);
    fs::rename(out, whole).map_err(|error| RunError::storage("write", whole, &error))?;
    Ok(durable::sync_parent(whole)?)
}

/// How a model is exported.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// Number format of the weights.
    pub format: NumberFormat,
    /// Whether the model is also written for llama.cpp.
    pub gguf: bool,
    /// The licence that the model card states.
    pub licence: String,
}

/// Creates the folder beside `whole` that is to become it, in place of what a killed export left there, and keeps other exports out. Refuses
/// a `whole` that holds anything.
fn empty_beside(whole: &Path) -> Result<FolderLock, RunError> {
    let aside = durable::temporary(whole);
    let failed = |error| RunError::storage("create", &aside, &error);
    let is_empty = fs::read_dir(whole).map_or(!whole.exists(), |mut listing| listing.next().is_none());
    if !is_empty {
        return Err(RunError::Refused(format!(
            "{} is not empty; give a new or empty folder with --out",
            whole.display()
        )));
    }
    whole.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    let lock = FolderLock::of_file(whole)?;
    if aside.exists() {
        fs::remove_dir_all(&aside).map_err(failed)?;
    }
    fs::create_dir(&aside).map_err(failed)?;
    Ok(lock)
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
