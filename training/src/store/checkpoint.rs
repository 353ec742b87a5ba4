//! The checkpoint: what a run needs to resume, in one file that is replaced in one rename.

use std::path::Path;

use safetensors::tensor::SafeTensors;
use sha2::{Digest, Sha256};

use super::files;
use super::ledger::LedgerPosition;
use crate::RunError;
use network::tensor_file::{
    Formatted, NamedTensor, NumberFormat, Values, digest_tensor, from_safetensors, little_endian,
    write_digested,
};

/// The field of the metadata with the digest of all contents.
const CONTENTS: &str = "contents_sha256";

/// The state of a run between two steps.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Checkpoint<V = Vec<f32>> {
    /// Logical steps done.
    pub steps_done: u64,
    /// Position of the ledger at that time.
    pub ledger: LedgerPosition,
    /// Weights, the optimizer's tensors and its counters.
    pub state: Vec<NamedTensor<V>>,
}

impl<V: Values> Checkpoint<V> {
    /// Replaces the run folder's checkpoint. After a crash, the folder holds either the old one or the new one,
    /// complete.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be written; the old one then stays.
    pub fn write(&self, folder: &Path) -> Result<(), RunError> {
        self.write_as(folder, files::CHECKPOINT)
    }

    /// Writes the checkpoint to a file of this name in `folder`.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) fn write_as(&self, folder: &Path, name: &str) -> Result<(), RunError> {
        let [steps_done, lines] = [self.steps_done, self.ledger.lines].map(|number| number.to_string());
        let metadata = [
            ("format", "dp-checkpoint-1"),
            ("steps_done", steps_done.as_str()),
            ("ledger_lines", lines.as_str()),
            ("ledger_sha256", self.ledger.sha256.as_str()),
        ];
        let format = NumberFormat::F32;
        let views = self.state.iter().map(|tensor| (tensor.name.as_str(), Formatted { tensor, format }));
        let digest = begun_digest(self.steps_done, &self.ledger);
        Ok(write_digested(&folder.join(name), views.collect(), &metadata, CONTENTS, digest)?)
    }
}

impl Checkpoint {
    /// Reads the run folder's checkpoint, if it has one.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be read, [`RunError::Verification`] if it is not as it was written.
    pub fn read(folder: &Path) -> Result<Option<Self>, RunError> {
        Self::read_as(folder, files::CHECKPOINT)
    }

    /// Reads the checkpoint from a file of this name in `folder`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_as(folder: &Path, name: &str) -> Result<Option<Self>, RunError> {
        let path = folder.join(name);
        if !path.exists() {
            return Ok(None);
        }
        let altered =
            |what: String| RunError::Verification(format!("{} was altered: {what}", path.display()));
        let bytes = durable::read(&path)?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|error| altered(error.to_string()))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let field = |name: &str| metadata.get(name).ok_or_else(|| altered(format!("it has no field {name}")));
        let number = |name: &str| {
            field(name)?.parse::<u64>().map_err(|_| altered(format!("its field {name} is not a number")))
        };
        let ledger =
            LedgerPosition { lines: number("ledger_lines")?, sha256: field("ledger_sha256")?.clone() };
        let steps_done = number("steps_done")?;
        let state = from_safetensors(&bytes).map_err(altered)?;
        if *field(CONTENTS)? == contents_digest(steps_done, &ledger, &state) {
            Ok(Some(Self { steps_done, ledger, state }))
        } else {
            Err(altered("its digest does not match its contents".to_owned()))
        }
    }
}

/// Returns the digest of what a checkpoint holds beside its tensors.
fn begun_digest(steps_done: u64, ledger: &LedgerPosition) -> Sha256 {
    Sha256::new().chain_update(format!("{steps_done} {} {}\n", ledger.lines, ledger.sha256))
}

/// Returns the digest of a checkpoint that was read: its tensors are in the order of their names, as in the file.
fn contents_digest(steps_done: u64, ledger: &LedgerPosition, state: &[NamedTensor]) -> String {
    let mut digest = begun_digest(steps_done, ledger);
    for NamedTensor { name, shape, data } in state {
        digest_tensor(&mut digest, name, shape, &little_endian(data));
    }
    durable::hex(&digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        let tensor =
            |name: &str, shape: Vec<usize>, data: Vec<f32>| NamedTensor { name: name.into(), shape, data };
        Checkpoint {
            steps_done: 17,
            ledger: LedgerPosition { lines: 20, sha256: "ab".repeat(32) },
            state: vec![
                tensor("a", vec![2, 2], vec![1.0, -2.5, f32::MIN_POSITIVE, 3e30]),
                tensor("optimizer.first.a", vec![1], vec![0.25]),
            ],
        }
    }

    #[test]
    fn checkpoint_reads_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Checkpoint::read(folder.path()).unwrap(), None);
        checkpoint().write(folder.path()).unwrap();
        assert_eq!(Checkpoint::read(folder.path()).unwrap(), Some(checkpoint()));
    }

    /// PITFALLS 9: a checkpoint that is not the one written is refused, whichever bit changed.
    #[test]
    fn any_flipped_bit_of_a_checkpoint_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        checkpoint().write(folder.path()).unwrap();
        let path = folder.path().join(files::CHECKPOINT);
        let bytes = std::fs::read(&path).unwrap();
        for index in 0..bytes.len() {
            for bit in [0, 3, 7] {
                let mut flipped = bytes.clone();
                flipped[index] ^= 1 << bit;
                std::fs::write(&path, &flipped).unwrap();
                let read = Checkpoint::read(folder.path());
                // The name of the format and the padding do not affect the state.
                assert!(
                    read.is_err() || read.unwrap() == Some(checkpoint()),
                    "byte {index} bit {bit} changed the state unseen"
                );
            }
        }
    }
}
