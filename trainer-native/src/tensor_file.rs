//! Tensors on the host and the safetensors files that hold them.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use thiserror::Error;

use crate::nn::{Kernels, ParamSpec};
use crate::tensor::{FloatDType, Tensor, from_host, to_host};
use crate::{RunError, durable};

/// A tensor on the host under its name in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor {
    /// Hugging Face name, or in a checkpoint one that begins with `optimizer.` or `clipping.`.
    pub name: String,
    /// Row-major shape.
    pub shape: Vec<usize>,
    /// Values in row-major order.
    pub data: Vec<f32>,
}

/// The parameters of a model on the host.
pub(crate) fn named_tensors<B: Kernels>(specs: &[ParamSpec], values: &[Tensor<B, 1>]) -> Vec<NamedTensor> {
    let named = |(spec, value): (&ParamSpec, &Tensor<B, 1>)| NamedTensor {
        name: spec.name.clone(),
        shape: spec.shape.clone(),
        data: to_host(value.clone()),
    };
    specs.iter().zip(values).map(named).collect()
}

/// A tensor that does not fit the model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("tensor \"{name}\" {problem}")]
pub struct TensorError {
    /// Name of the tensor.
    pub name: String,
    /// The problem.
    pub problem: &'static str,
}

/// Tensors of a file by name. Each is taken once, and all must be taken.
pub(crate) struct TensorMap(BTreeMap<String, NamedTensor>);

impl TensorMap {
    pub fn new(list: Vec<NamedTensor>) -> Result<Self, TensorError> {
        let mut tensors = BTreeMap::new();
        for tensor in list {
            let name = tensor.name.clone();
            if tensors.insert(name.clone(), tensor).is_some() {
                return Err(TensorError { name, problem: "occurs twice" });
            }
        }
        Ok(Self(tensors))
    }

    pub fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, TensorError> {
        let error = |problem| TensorError { name: name.to_owned(), problem };
        let tensor = self.0.remove(name).ok_or_else(|| error("is missing"))?;
        if tensor.shape == shape && tensor.data.len() == shape.iter().product::<usize>() {
            Ok(tensor.data)
        } else {
            Err(error("has another shape than the model's"))
        }
    }

    /// The values of all parameters, flat and on the device.
    pub fn take_all<B: Kernels>(
        &mut self,
        specs: &[ParamSpec],
        device: &B::Device,
    ) -> Result<Vec<Tensor<B, 1>>, TensorError> {
        let take = |spec: &ParamSpec| {
            let data = self.take(&spec.name, &spec.shape)?;
            Ok(from_host(data, [spec.len()], FloatDType::F32, device))
        };
        specs.iter().map(take).collect()
    }

    /// Refuses tensors that were not taken.
    pub fn finish(self) -> Result<(), TensorError> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(TensorError { name, problem: "is not one of the model's" }),
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

/// What a model file of this program says of its privacy, if it is one.
pub(crate) fn privacy_mark(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    // The longest header that the format allows.
    let length = u64::from_le_bytes(length).min(100_000_000);
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header).ok()?;
    let header: serde_json::Value = serde_json::from_slice(&header).ok()?;
    header["__metadata__"]["privacy"].as_str().map(str::to_owned)
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

pub(crate) fn to_safetensors(
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

pub(crate) fn from_safetensors(bytes: &[u8]) -> Result<Vec<NamedTensor>, String> {
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

pub(crate) fn little_endian(data: &[f32]) -> Vec<u8> {
    data.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_weights_always_give_the_same_file() {
        let tensors = [NamedTensor {
            name: "a".into(),
            shape: vec![2, 2],
            data: vec![1.0, -2.5, f32::MIN_POSITIVE, 3e30],
        }];
        let file = model_file(&tensors, NumberFormat::F32, "NOT PRIVATE").unwrap();
        for _ in 0..20 {
            assert_eq!(file, model_file(&tensors, NumberFormat::F32, "NOT PRIVATE").unwrap());
        }
        let text = String::from_utf8_lossy(&file);
        assert!(text.contains("\"format\":\"pt\"") && text.contains("\"privacy\":\"NOT PRIVATE\""));
    }
}
