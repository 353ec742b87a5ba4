//! The parameters of a model as one ordered list of flat tensors.

use std::sync::Arc;

use mechanisms::Stream;
use plan::Precision;

use super::{Kernels, Selection};
use crate::nn::GradRecord;
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
    precision: Precision,
    part: Option<Part<B>>,
}

/// The trained part of a model's parameters.
#[derive(Clone, Debug)]
struct Part<B: Backend> {
    selection: Arc<Selection>,
    trained: Vec<Tensor<B, 1>>,
    /// All of the model's parameters as they were before training.
    base: Vec<Tensor<B, 1>>,
}

impl<B: Backend> Weights<B> {
    /// Draws first values in the order of the list.
    pub fn initialize(specs: Arc<[ParamSpec]>, stream: &mut Stream, device: &B::Device) -> Self {
        let values = draw(&specs, stream, device);
        Self { specs, values, dtype: FloatDType::F32, precision: Precision::F32, part: None }
    }

    /// From now on only the chosen parameters are trained; new adapters are drawn.
    #[must_use]
    pub fn restrict(self, selection: Selection, stream: &mut Stream, device: &B::Device) -> Self {
        let fresh = draw(selection.specs(), stream, device);
        let fresh = fresh.into_iter().map(|value| value.cast(self.dtype)).collect();
        let part = Part {
            trained: selection.start(fresh, &self.values),
            base: self.values.clone(),
            selection: Arc::new(selection),
        };
        Self { part: Some(part), ..self }
    }

    /// The same values in another float format; tests take gradients in f64.
    #[must_use]
    pub fn cast(self, dtype: FloatDType) -> Self {
        let cast = |values: Vec<Tensor<B, 1>>| values.into_iter().map(|value| value.cast(dtype)).collect();
        let part = self.part.map(|part| Part { trained: cast(part.trained), base: cast(part.base), ..part });
        Self { specs: self.specs, values: cast(self.values), dtype, precision: self.precision, part }
    }

    /// Names and shapes of the trained parameters: those that have gradients, noise and optimizer state.
    #[must_use]
    pub fn specs(&self) -> &[ParamSpec] {
        self.part.as_ref().map_or(&self.specs, |part| part.selection.specs())
    }

    /// Names and shapes of all parameters of the model.
    #[must_use]
    pub fn model_specs(&self) -> &[ParamSpec] {
        &self.specs
    }

    /// All values of the model, flat, adapters merged.
    #[must_use]
    pub fn model_values(&self) -> &[Tensor<B, 1>] {
        &self.values
    }

    /// Puts new values of the whole model in place of the old; adapters keep theirs.
    ///
    /// # Panics
    /// If the number of tensors differs.
    pub fn replace_model(&mut self, values: Vec<Tensor<B, 1>>) {
        assert_eq!(values.len(), self.specs.len(), "one tensor a parameter");
        self.values = values;
        if let Some(part) = &mut self.part {
            part.base.clone_from(&self.values);
            part.trained = part.selection.start(std::mem::take(&mut part.trained), &part.base);
        }
        self.merge();
    }

    /// What a backward pass left for the trained parameters, out of that for all of the model's.
    #[must_use]
    pub fn trained_records(&self, records: Vec<GradRecord<B>>) -> Vec<GradRecord<B>> {
        match &self.part {
            Some(part) => part.selection.records(&part.trained, records),
            None => records,
        }
    }

    /// Whether neither this parameter nor one before it in the list is trained. Models list theirs from the input on, so a
    /// backward pass need not go below such a one.
    #[must_use]
    pub fn frozen_up_to(&self, last: ParamId) -> bool {
        self.part.as_ref().is_some_and(|part| part.selection.is_frozen_up_to(last))
    }

    fn merge(&mut self) {
        let Some(part) = &self.part else { return };
        for (place, value) in part.selection.effective(&part.trained, &part.base) {
            self.values[place] = value;
        }
    }

    /// The format in which layers multiply.
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// The float format of the values.
    #[must_use]
    pub fn dtype(&self) -> FloatDType {
        self.dtype
    }

    /// The trained values, flat.
    #[must_use]
    pub fn values(&self) -> &[Tensor<B, 1>] {
        self.part.as_ref().map_or(&self.values, |part| &part.trained)
    }

    /// Puts new values of the trained parameters in place of the old.
    ///
    /// # Panics
    /// If the number of tensors differs: the optimizer and the loader keep the list as it is.
    pub fn replace(&mut self, values: Vec<Tensor<B, 1>>) {
        assert_eq!(values.len(), self.specs().len(), "one tensor a parameter");
        match &mut self.part {
            Some(part) => part.trained = values,
            None => self.values = values,
        }
        self.merge();
    }

    /// Gives the trained values away, so that an update may reuse their memory.
    pub fn take(&mut self) -> Vec<Tensor<B, 1>> {
        match &mut self.part {
            Some(part) => std::mem::take(&mut part.trained),
            None => std::mem::take(&mut self.values),
        }
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

impl<B: Kernels> Weights<B> {
    /// A layer's product on its way forward or backward, in the chosen precision.
    ///
    /// Rounding here makes another function of the weights, and other gradients, of each example. What a gradient may move
    /// is bounded all the same: norms and clipped sums are made of the same recorded factors, by
    /// [`Kernels::product`], which never rounds more than 32 bits do.
    ///
    /// # Shapes
    /// - a: `[…, m, k]`, b: `[…, k, n]`
    /// - output: `[…, m, n]`
    pub(super) fn product<const D: usize>(&self, a: Tensor<B, D>, b: Tensor<B, D>) -> Tensor<B, D> {
        match self.precision {
            Precision::F32 => a.matmul(b),
            Precision::Bf16 => B::product_bf16(a, b),
        }
    }

    /// [`Self::product`] and a bias.
    ///
    /// # Shapes
    /// - input: `[rows, d_in]`, weight: `[d_in, d_out]`, bias: `[d_out]`
    /// - output: `[rows, d_out]`
    pub(super) fn affine(
        &self,
        input: Tensor<B, 2>,
        weight: Tensor<B, 2>,
        bias: Tensor<B, 1>,
    ) -> Tensor<B, 2> {
        match self.precision {
            Precision::F32 => B::affine(input, weight, bias),
            Precision::Bf16 => B::product_bf16(input, weight) + bias.unsqueeze(),
        }
    }
}

fn draw<B: Backend>(specs: &[ParamSpec], stream: &mut Stream, device: &B::Device) -> Vec<Tensor<B, 1>> {
    let first = |spec: &ParamSpec| {
        let mut host = vec![0.0; spec.len()];
        match spec.initial {
            Initial::Constant(value) => host.fill(value),
            Initial::Normal { std } => stream.fill_gaussian_f32(&mut host, std),
        }
        from_host(host, [spec.len()], FloatDType::F32, device)
    };
    specs.iter().map(first).collect()
}
