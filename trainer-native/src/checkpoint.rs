//! What a run needs to go on, in one file that is replaced in one rename; and the finished model.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use sha2::{Digest, Sha256};

use crate::engine::NamedTensor;
use crate::ledger::Head;
use crate::{RunError, durable};

/// Name of the checkpoint in a run folder.
pub const FILE_NAME: &str = "checkpoint.safetensors";
/// Name of the finished model in a run folder.
pub const MODEL_FILE_NAME: &str = "model.safetensors";

/// State of a run between two steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Logical steps done.
    pub steps_done: u64,
    /// Where the ledger stood.
    pub ledger: Head,
    /// Weights, the optimizer's tensors and its counters.
    pub state: Vec<NamedTensor>,
}

impl Checkpoint {
    /// Replaces the run folder's checkpoint: after a crash it is the old one or this one, whole.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be written; the old one then stays.
    pub fn write(&self, folder: &Path) -> Result<(), RunError> {
        let metadata = HashMap::from([
            ("format".to_owned(), "dp-checkpoint-1".to_owned()),
            ("steps_done".to_owned(), self.steps_done.to_string()),
            ("ledger_lines".to_owned(), self.ledger.lines.to_string()),
            ("ledger_sha256".to_owned(), self.ledger.sha256.clone()),
            ("contents_sha256".to_owned(), contents_digest(self.steps_done, &self.ledger, &self.state)),
        ]);
        durable::write_atomic(
            &folder.join(FILE_NAME),
            &to_safetensors(&self.state, NumberFormat::F32, metadata)?,
        )
    }

    /// Reads the run folder's checkpoint, if it has one.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be read, [`RunError::Verification`] if it is not as it was written.
    pub fn read(folder: &Path) -> Result<Option<Self>, RunError> {
        let path = folder.join(FILE_NAME);
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
        let ledger = Head { lines: number("ledger_lines")?, sha256: field("ledger_sha256")?.clone() };
        let steps_done = number("steps_done")?;
        let state = from_safetensors(&bytes).map_err(altered)?;
        if *field("contents_sha256")? == contents_digest(steps_done, &ledger, &state) {
            Ok(Some(Self { steps_done, ledger, state }))
        } else {
            Err(altered("its digest does not match its contents".to_owned()))
        }
    }
}

/// Number format of the tensors of a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFormat {
    /// 32 bits, as trained.
    F32,
    /// 16 bits with the exponents of 32.
    Bf16,
    /// 16 bits, IEEE.
    F16,
}

impl NumberFormat {
    fn of_safetensors(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::Bf16 => Dtype::BF16,
            Self::F16 => Dtype::F16,
        }
    }

    /// As `transformers` names it.
    #[must_use]
    pub fn of_transformers(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::Bf16 => "bfloat16",
            Self::F16 => "float16",
        }
    }

    fn bytes(self, values: &[f32]) -> Vec<u8> {
        match self {
            Self::F32 => little_endian(values),
            Self::Bf16 => values.iter().flat_map(|&v| half::bf16::from_f32(v).to_le_bytes()).collect(),
            Self::F16 => values.iter().flat_map(|&v| half::f16::from_f32(v).to_le_bytes()).collect(),
        }
    }
}

/// `model.safetensors` as `transformers` reads it; `privacy` says what the weights promise.
///
/// # Errors
/// [`RunError::Failed`] if a shape and its data disagree.
pub fn model_file(weights: &[NamedTensor], format: NumberFormat, privacy: &str) -> Result<Vec<u8>, RunError> {
    let metadata =
        [("format", "pt"), ("privacy", privacy)].map(|(name, text)| (name.to_owned(), text.to_owned()));
    let mut bytes = to_safetensors(weights, format, HashMap::from(metadata))?;
    // The library writes metadata in the order of a hash table; equal weights are to give equal files.
    let quoted = serde_json::Value::from(privacy).to_string();
    let wrong = format!("{{\"privacy\":{quoted},\"format\":\"pt\"}}");
    let at = 8 + "{\"__metadata__\":".len();
    if let Some(place) = bytes.get_mut(at..at + wrong.len())
        && place == wrong.as_bytes()
    {
        place.copy_from_slice(format!("{{\"format\":\"pt\",\"privacy\":{quoted}}}").as_bytes());
    }
    Ok(bytes)
}

/// Reads the tensors of a safetensors file.
///
/// # Errors
/// [`RunError::Refused`] if it is not one, or holds another number format than f32.
pub fn read_tensors(path: &Path) -> Result<Vec<NamedTensor>, RunError> {
    from_safetensors(&durable::read(path)?).map_err(|what| {
        RunError::Refused(format!("{}: {what}; give a safetensors file of f32 tensors", path.display()))
    })
}

fn to_safetensors(
    tensors: &[NamedTensor],
    format: NumberFormat,
    metadata: HashMap<String, String>,
) -> Result<Vec<u8>, RunError> {
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|tensor| format.bytes(&tensor.data)).collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|(tensor, bytes)| {
            Ok((&tensor.name, TensorView::new(format.of_safetensors(), tensor.shape.clone(), bytes)?))
        })
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>();
    views
        .and_then(|views| safetensors::serialize(views, Some(metadata)))
        .map_err(|error| RunError::Failed(format!("cannot lay out the tensors: {error}")))
}

fn from_safetensors(bytes: &[u8]) -> Result<Vec<NamedTensor>, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut tensors = Vec::with_capacity(file.len());
    for (name, view) in file.tensors() {
        if view.dtype() != Dtype::F32 {
            return Err(format!("tensor {name} is not of 32-bit floats"));
        }
        let data = view
            .data()
            .chunks_exact(4)
            .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        tensors.push(NamedTensor { name, shape: view.shape().to_vec(), data });
    }
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tensors)
}

fn little_endian(data: &[f32]) -> Vec<u8> {
    data.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn contents_digest(steps_done: u64, ledger: &Head, state: &[NamedTensor]) -> String {
    let mut order: Vec<&NamedTensor> = state.iter().collect();
    order.sort_by(|a, b| a.name.cmp(&b.name));
    let mut digest = Sha256::new();
    digest.update(format!("{steps_done} {} {}\n", ledger.lines, ledger.sha256));
    for tensor in order {
        digest.update(format!("{:?} {:?}\n", tensor.name, tensor.shape));
        digest.update(little_endian(&tensor.data));
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
            ledger: Head { lines: 20, sha256: "ab".repeat(32) },
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
        let path = folder.path().join(FILE_NAME);
        let bytes = std::fs::read(&path).unwrap();
        for index in 0..bytes.len() {
            for bit in [0, 3, 7] {
                let mut flipped = bytes.clone();
                flipped[index] ^= 1 << bit;
                std::fs::write(&path, &flipped).unwrap();
                let read = Checkpoint::read(folder.path());
                // The file's own name of its format and blanks of its padding say nothing about the run.
                assert!(
                    read.is_err() || read.unwrap() == Some(checkpoint()),
                    "byte {index} bit {bit} changed the state unseen"
                );
            }
        }
    }

    #[test]
    fn the_same_weights_always_give_the_same_file() {
        let tensors = checkpoint().state;
        let file = model_file(&tensors, NumberFormat::F32, "NOT PRIVATE").unwrap();
        for _ in 0..20 {
            assert_eq!(file, model_file(&tensors, NumberFormat::F32, "NOT PRIVATE").unwrap());
        }
        let text = String::from_utf8_lossy(&file);
        assert!(text.contains("\"format\":\"pt\"") && text.contains("\"privacy\":\"NOT PRIVATE\""));
    }
}
