//! Starting weights from a checkpoint of Hugging Face's `transformers` or of a run of this program.
//!
//! If the folder says that private text made the checkpoint, the plan must declare how that text
//! relates to its own; see [`crate::verify`]. Everything in the folder that is not understood is
//! refused, because a model without an ignored tensor would be another model.

mod config;
mod describe;
mod extend;
mod names;
mod read;

use std::path::Path;

pub use describe::describe;
pub use names::Assigned;
pub use read::Checkpoint;

use crate::store::files;
use crate::tensor_file::{NamedTensor, StoredValues};
use crate::{RunError, durable, vocabulary};
use network::model::Network;

/// The plan's field that names a checkpoint.
const FIELD: &str = "model.initial";

/// Name of the configuration in a checkpoint.
pub(crate) const CONFIG_FILE_NAME: &str = "config.json";

/// Weights to start from that fit a plan's model.
pub struct Start {
    /// Weights in the order of the model's parameters, without a head for labels that the
    /// checkpoint lacks.
    pub weights: Vec<NamedTensor<StoredValues>>,
    /// Number of tokens of the checkpoint's table; never below the tokenizer's.
    pub vocab_size: usize,
    /// Digest of the checkpoint.
    pub sha256: String,
    /// Names of the checkpoint's tensors that the model does not use.
    pub ignored: Vec<String>,
}

/// Reads the checkpoint that a plan starts from, if it names one, and compares it with the plan's
/// model and tokenizer.
///
/// # Errors
/// [`RunError::Refused`] with the difference, before anything is written.
pub fn prepare(plan: &plan::Plan, base: &Path) -> Result<Option<Start>, RunError> {
    let (plan::Initial::Checkpoint(path), Some(public)) = (&plan.model().initial, plan.tokenizer().file())
    else {
        return Ok(None);
    };
    let folder = base.join(path);
    let checkpoint = Checkpoint::read(&folder)?;
    let tokenizer = vocabulary::read_file(&base.join(public))?;
    let own = folder.join(files::TOKENIZER);
    if own.exists() && durable::read(&own)? != durable::read(&base.join(public))? {
        let own = vocabulary::read_file(&own)?;
        if own.to_json() != tokenizer.to_json() {
            let what = format!(
                "its {} is not the tokenizer that the plan names; name the checkpoint's own",
                files::TOKENIZER
            );
            return Err(refused(FIELD, &folder, &what));
        }
    }
    let vocab_size = checkpoint.vocab_size(tokenizer.vocab_size())?;
    let network = Network::new(plan.model(), plan.training(), vocab_size)
        .map_err(|error| RunError::Refused(error.to_string()))?;
    network.selection(plan.model()).map_err(|error| RunError::Refused(error.to_string()))?;
    let Assigned { weights, ignored, .. } =
        checkpoint.stored_weights(&network.specs(), &network.hf_config())?;
    Ok(Some(Start { weights, vocab_size, sha256: checkpoint.sha256().to_owned(), ignored }))
}

/// The refusal of a folder that `field` names.
fn refused(field: &str, folder: &Path, what: &dyn std::fmt::Display) -> RunError {
    RunError::Refused(format!("{field}: {}: {what}", folder.display()))
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
