//! Tensors on the host and the safetensors files that hold them.

mod model;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::{Dtype, SafeTensors};
use thiserror::Error;

pub use model::{Formatted, digest_tensor, model_sha256, write_digested, write_model};

use durable::FileError;

use crate::nn::{Kernels, ParamSpec};
use crate::tensor::{Backend, DType, FloatDType, Tensor, TensorData, from_host, to_host};

/// A tensor on the host under its name in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor<Values = Vec<f32>> {
    /// Name in Hugging Face's checkpoints. In a checkpoint of a run, some names begin with
    /// `optimizer.` or `clipping.`.
    pub name: String,
    /// Row-major shape.
    pub shape: Vec<usize>,
    /// Values in row-major order.
    pub data: Values,
}

/// Values that can be copied to the host, in 32 bits.
pub trait Values {
    /// Returns the values in row-major order.
    fn on_host(&self) -> Cow<'_, [f32]>;

    /// Returns the number of values.
    fn count(&self) -> usize;
}

impl Values for Vec<f32> {
    fn on_host(&self) -> Cow<'_, [f32]> {
        Cow::Borrowed(self)
    }

    fn count(&self) -> usize {
        self.len()
    }
}

/// Values on the host, or those of a flat tensor, whose memory is shared until they are copied to the host.
#[derive(Clone, Debug)]
pub enum Held<B: Backend> {
    /// Values on the host.
    Host(Vec<f32>),
    /// A flat tensor.
    Device(Tensor<B, 1>),
}

impl<B: Backend> Values for Held<B> {
    fn on_host(&self) -> Cow<'_, [f32]> {
        match self {
            Self::Host(values) => Cow::Borrowed(values),
            Self::Device(tensor) => Cow::Owned(to_host(tensor.clone())),
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Host(values) => values.len(),
            Self::Device(tensor) => tensor.dims()[0],
        }
    }
}

/// Values in the number format of the file that they were read from. A clone shares them.
#[derive(Clone, Debug)]
pub struct StoredValues {
    format: DType,
    bytes: Arc<Vec<u8>>,
}

impl StoredValues {
    /// Little-endian floats of 16 or 32 bits. Those of 64 bits are rounded to 32.
    pub fn new(format: Dtype, bytes: Vec<u8>) -> Option<Self> {
        let format = match format {
            Dtype::F16 => DType::F16,
            Dtype::BF16 => DType::BF16,
            Dtype::F32 => DType::F32,
            Dtype::F64 => {
                let wide = Self { format: DType::F64, bytes: Arc::new(bytes) };
                return Some(wide.to_f32().into());
            }
            _ => return None,
        };
        Some(Self { format, bytes: Arc::new(bytes) })
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.format.size()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns whether each value has 16 bits.
    #[must_use]
    pub fn has_16_bits(&self) -> bool {
        self.format.size() == 2
    }

    /// Returns the first `count` values.
    pub fn first(&self, count: usize) -> Self {
        let bytes = count * self.format.size();
        match bytes < self.bytes.len() {
            true => Self { format: self.format, bytes: Arc::new(self.bytes[..bytes].to_vec()) },
            false => self.clone(),
        }
    }

    /// Converts the values to 32 bits.
    #[must_use]
    pub fn to_f32(&self) -> Vec<f32> {
        let word = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]);
        let words = |size| self.bytes.chunks_exact(size);
        match self.format {
            DType::F16 => words(2).map(|bytes| half::f16::from_bits(word(bytes)).to_f32()).collect(),
            DType::BF16 => words(2).map(|bytes| half::bf16::from_bits(word(bytes)).to_f32()).collect(),
            DType::F64 => words(8)
                .map(|b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]) as f32)
                .collect(),
            _ => words(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        }
    }

    /// Returns whether no value is infinite or not a number: no exponent has all bits set.
    pub fn is_finite(&self) -> bool {
        let word = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]);
        let (size, exponent) = match self.format {
            DType::F16 => (2, 0x7C00),
            DType::BF16 => (2, 0x7F80),
            _ => (4, 0x7F80),
        };
        // The high half of a word has the exponent.
        self.bytes.chunks_exact(size).all(|bytes| word(&bytes[size - 2..]) & exponent != exponent)
    }

    /// Creates a tensor in the same format, or in 32 bits on a device that does not hold 16.
    pub fn into_tensor<B: Kernels>(self, device: &B::Device) -> Tensor<B, 1> {
        let length = self.len();
        if self.format == DType::F32 || !B::HOLDS_16_BITS {
            return from_host(self.to_f32(), [length], FloatDType::F32, device);
        }
        let bytes = Arc::unwrap_or_clone(self.bytes);
        Tensor::from_data(TensorData::from_bytes_vec(bytes, [length], self.format), (device, self.format))
    }
}

impl From<Vec<f32>> for StoredValues {
    fn from(values: Vec<f32>) -> Self {
        Self { format: DType::F32, bytes: Arc::new(little_endian(&values)) }
    }
}

/// Returns the parameters of a model, which share their memory.
pub fn held_tensors<B: Backend>(specs: &[ParamSpec], values: &[Tensor<B, 1>]) -> Vec<NamedTensor<Held<B>>> {
    let held = |(spec, value): (&ParamSpec, &Tensor<B, 1>)| NamedTensor {
        name: spec.name.clone(),
        shape: spec.shape.clone(),
        data: Held::Device(value.clone()),
    };
    specs.iter().zip(values).map(held).collect()
}

/// Returns the parameters of a model on the host.
pub fn named_tensors<B: Kernels>(specs: &[ParamSpec], values: &[Tensor<B, 1>]) -> Vec<NamedTensor> {
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
pub struct TensorMap(BTreeMap<String, NamedTensor>);

impl TensorMap {
    /// Collects the tensors of `list` by name.
    ///
    /// # Errors
    /// [`TensorError`] for a name that occurs twice.
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

    /// Takes the values of a tensor, in row-major order.
    ///
    /// # Errors
    /// [`TensorError`] if it is missing or has another shape.
    pub fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, TensorError> {
        let error = |problem| TensorError { name: name.to_owned(), problem };
        let tensor = self.0.remove(name).ok_or_else(|| error("is missing"))?;
        if tensor.shape == shape && tensor.data.len() == shape.iter().product::<usize>() {
            Ok(tensor.data)
        } else {
            Err(error("has another shape than the model's"))
        }
    }

    /// Takes the values of all parameters, flat and on the device.
    ///
    /// # Errors
    /// As [`Self::take`], for the first parameter that is not there in its shape.
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
    ///
    /// # Errors
    /// [`TensorError`] for the first of them.
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
    /// Returns the format's name in the `safetensors` library.
    #[must_use]
    pub fn of_safetensors(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::Bf16 => Dtype::BF16,
            Self::F16 => Dtype::F16,
        }
    }

    /// Returns the name of the format in `transformers`.
    #[must_use]
    pub fn of_transformers(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::Bf16 => "bfloat16",
            Self::F16 => "float16",
        }
    }

    /// Names the format in a model's `config.json`.
    pub fn name_in(self, config: &mut serde_json::Value) {
        config["dtype"] = self.of_transformers().into();
    }

    /// Returns whether a value is finite in this format.
    pub fn holds(self, value: f32) -> bool {
        match self {
            Self::F32 => value.is_finite(),
            Self::Bf16 => half::bf16::from_f32(value).is_finite(),
            Self::F16 => half::f16::from_f32(value).is_finite(),
        }
    }

    /// Returns the values as little-endian bytes in this format, rounded to nearest.
    #[must_use]
    pub fn bytes(self, values: &[f32]) -> Vec<u8> {
        match self {
            Self::F32 => little_endian(values),
            Self::Bf16 => values.iter().flat_map(|&v| half::bf16::from_f32(v).to_le_bytes()).collect(),
            Self::F16 => values.iter().flat_map(|&v| half::f16::from_f32(v).to_le_bytes()).collect(),
        }
    }
}

/// Key of the privacy statement in the metadata of a file.
const PRIVACY: &str = "privacy";
/// Key of the run's unique name in the metadata of a file.
const PRIVACY_ID: &str = "privacy_id";

/// The statement of a model file about its privacy, by which it is known without its folder.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivacyMark {
    /// The statement, as text.
    pub promise: String,
    /// The unique name of the run that wrote the file.
    pub id: Option<String>,
}

impl PrivacyMark {
    /// Reads the mark of a safetensors file, if it has one.
    pub fn read(path: &Path) -> Option<Self> {
        let mut file = durable::open(path).ok()?;
        let mut length = [0; 8];
        file.read_exact(&mut length).ok()?;
        // The longest header that the format allows.
        let length = u64::from_le_bytes(length).min(100_000_000);
        let mut header = Vec::new();
        file.take(length).read_to_end(&mut header).ok()?;
        let header: serde_json::Value = serde_json::from_slice(&header).ok()?;
        Self::of_json(&header["__metadata__"])
    }

    /// Reads the mark of a `config.json`, if it has one.
    pub fn of_json(value: &serde_json::Value) -> Option<Self> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        Some(Self { promise: text(PRIVACY)?, id: text(PRIVACY_ID) })
    }

    /// Writes the mark to a `config.json`.
    pub fn write_to(&self, config: &mut serde_json::Value) {
        config[PRIVACY] = self.promise.as_str().into();
        if let Some(id) = &self.id {
            config[PRIVACY_ID] = id.as_str().into();
        }
    }
}

/// Reads the tensors of a safetensors file of floats, also of 16 bits.
///
/// # Errors
/// [`FileError::Refused`] if it is not one.
pub fn read_tensors(path: &Path) -> Result<Vec<NamedTensor>, FileError> {
    from_safetensors(&durable::read(path)?).map_err(|what| {
        FileError::Refused(format!(
            "{}: {what}; give a safetensors file of floats of 16, 32 or 64 bits",
            path.display()
        ))
    })
}

/// Reads the tensors of a safetensors file in memory, by name, in 32 bits.
///
/// # Errors
/// A description of what is wrong with the file, such as a tensor that holds no floats.
pub fn from_safetensors(bytes: &[u8]) -> Result<Vec<NamedTensor>, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut tensors = Vec::with_capacity(file.len());
    for (name, view) in file.tensors() {
        let values = StoredValues::new(view.dtype(), view.data().to_vec());
        let data = values.ok_or_else(|| format!("tensor {name} holds no floats"))?.to_f32();
        tensors.push(NamedTensor { name, shape: view.shape().to_vec(), data });
    }
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tensors)
}

/// Returns the values as little-endian bytes, four for each value.
#[must_use]
pub fn little_endian(data: &[f32]) -> Vec<u8> {
    data.iter().flat_map(|value| value.to_le_bytes()).collect()
}
