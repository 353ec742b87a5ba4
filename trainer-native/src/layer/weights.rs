//! The parameters of a model as one ordered list of flat tensors.

use std::sync::Arc;

use mechanisms::Stream;

use crate::tensor::{Backend, FloatDType, Tensor, from_host};

/// A parameter's place in the model's list; also the index of its noise stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParamId(pub usize);

/// What a parameter starts from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// Every element the same.
    Constant(f32),
    /// Independent normal values of mean 0.
    Normal {
        /// Their standard deviation.
        std: f64,
    },
}

/// A parameter's name in the checkpoint, its shape and its start.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamSpec {
    /// Hugging Face name.
    pub name: String,
    /// Row-major shape.
    pub shape: Vec<usize>,
    /// First value.
    pub initial: Initial,
}

impl ParamSpec {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Values of all parameters of a model, flat, in the order of their [`ParamId`].
#[derive(Clone, Debug)]
pub struct Weights<B: Backend> {
    specs: Arc<[ParamSpec]>,
    values: Vec<Tensor<B, 1>>,
    dtype: FloatDType,
}

impl<B: Backend> Weights<B> {
    /// Draws first values in the order of the list.
    pub fn initialize(specs: Arc<[ParamSpec]>, stream: &mut Stream, device: &B::Device) -> Self {
        let values = specs
            .iter()
            .map(|spec| {
                let mut host = vec![0.0; spec.len()];
                match spec.initial {
                    Initial::Constant(value) => host.fill(value),
                    Initial::Normal { std } => stream.fill_gaussian_f32(&mut host, std),
                }
                from_host(host, [spec.len()], FloatDType::F32, device)
            })
            .collect();
        Self { specs, values, dtype: FloatDType::F32 }
    }

    /// The same values in another float format; tests take gradients in f64.
    #[must_use]
    pub fn cast(self, dtype: FloatDType) -> Self {
        let values = self.values.into_iter().map(|value| value.cast(dtype)).collect();
        Self { specs: self.specs, values, dtype }
    }

    /// Names and shapes.
    #[must_use]
    pub fn specs(&self) -> &[ParamSpec] {
        &self.specs
    }

    /// The float format of the values.
    #[must_use]
    pub fn dtype(&self) -> FloatDType {
        self.dtype
    }

    /// All values, flat.
    #[must_use]
    pub fn values(&self) -> &[Tensor<B, 1>] {
        &self.values
    }

    /// Puts new values in place of the old.
    ///
    /// # Panics
    /// If the number of tensors differs: the optimizer and the loader keep the model's own list.
    pub fn replace(&mut self, values: Vec<Tensor<B, 1>>) {
        assert_eq!(values.len(), self.specs.len(), "one tensor a parameter");
        self.values = values;
    }

    /// Gives the values away, so that an update may reuse their memory.
    pub fn take(&mut self) -> Vec<Tensor<B, 1>> {
        std::mem::take(&mut self.values)
    }

    /// A parameter as a vector.
    ///
    /// # Shapes
    /// - output: `[n]`
    #[must_use]
    pub fn vector(&self, id: ParamId) -> Tensor<B, 1> {
        self.values[id.0].clone()
    }

    /// A parameter as a matrix.
    ///
    /// # Shapes
    /// - output: `[rows, columns]` as in its specification
    #[must_use]
    pub fn matrix(&self, id: ParamId) -> Tensor<B, 2> {
        let shape = &self.specs[id.0].shape;
        self.values[id.0].clone().reshape([shape[0], shape[1]])
    }
}
