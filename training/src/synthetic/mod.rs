//! What an evolution and a paraphrase share: their request, their public and private inputs, and the records that they write.

pub(crate) mod inputs;
pub(crate) mod records;

use std::path::PathBuf;

use plan::Device;

/// The evolution or the paraphrase that the user asks for.
#[derive(Clone, Debug)]
pub struct SynthesisRequest {
    /// Its file.
    pub file: PathBuf,
    /// Its folder; by default `runs/` and the name in the file.
    pub out: Option<PathBuf>,
    /// Whether to resume what the folder holds.
    pub resume: bool,
    /// The device of the run that writes texts.
    pub device: Device,
    /// A known key for tests. The records are then not private.
    pub test_key: Option<u64>,
}
