//! Weights from a checkpoint of Hugging Face's `transformers` or of a run of the trainer.
//!
//! Whatever is in the folder and is not understood is refused: a tensor left out in silence would be another model.

mod config;
mod describe;
mod folder;
mod names;
mod read;

use std::path::Path;

use durable::FileError;

pub use describe::describe;
pub use names::Assigned;
pub use read::PretrainedCheckpoint;

/// The plan's field that names a checkpoint.
pub const FIELD: &str = "model.initial";

/// Name of the configuration in a checkpoint.
pub const CONFIG_FILE_NAME: &str = "config.json";

/// Name of the only file of tensors in a checkpoint.
const MODEL_FILE_NAME: &str = "model.safetensors";

/// Name of the file that says which of several files has which tensor.
const INDEX_FILE_NAME: &str = "model.safetensors.index.json";

/// Returns the refusal of a folder that `field` names.
fn refused(field: &str, folder: &Path, what: &dyn std::fmt::Display) -> FileError {
    FileError::Refused(format!("{field}: {}: {what}", folder.display()))
}

#[cfg(test)]
mod keys;
#[cfg(test)]
mod tests;
