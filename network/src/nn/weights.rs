//! The parameters of a model as one ordered list of flat tensors.

use std::sync::Arc;

use mechanisms::Stream;
use plan::Precision;

use super::kernels::in_parallel;
use super::selection::Role;
use super::{Adapter, Initializer, Kernels, ParamId, ParamSpec, Selection, Stored, piece_length};
use crate::tensor::{Backend, DType, FloatDType, Int, Tensor, from_host};
use crate::tensor_file::NumberFormat;

/// Values of all parameters of a model, flat, in the order of their [`ParamId`].
///
/// Frozen values, and those under an adapter, may be held in 16 bits. A layer that uses them widens
/// them and adds the adapter, so their number format affects memory and time only.
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
    /// All parameters of the model before training.
    base: Vec<Tensor<B, 1>>,
}

impl<B: Backend> Part<B> {
    fn matrix(&self, place: ParamId) -> Tensor<B, 2> {
        matrix(&self.trained, self.selection.specs(), place)
    }

    /// Returns a matrix with its adapter, flat.
    fn merged(&self, adapter: Adapter, frozen: Tensor<B, 1>) -> Tensor<B, 1> {
        let [a, b] = [adapter.a, adapter.b].map(|place| self.matrix(place));
        adapter.merge(frozen, a, b)
    }

    /// Sets the trained values of whole parameters to the model's. Adapters keep theirs.
    fn restart(&mut self) {
        for (&role, base) in self.selection.roles().iter().zip(&self.base) {
            if let Role::Whole(at) = role {
                self.trained[at.0] = base.clone();
            }
        }
    }
}

impl<B: Kernels> Weights<B> {
    /// Draws initial values in the order of the list.
    pub fn initialize(specs: Arc<[ParamSpec]>, stream: &mut Stream, device: &B::Device) -> Self {
        let values = specs.iter().map(|spec| draw(spec, stream, device)).collect();
        Self::new(specs, values)
    }

    /// Returns initial values in the order of the list: those that `given` returns, in their number
    /// format, and drawn ones for all others.
    ///
    /// # Errors
    /// Those of `given`.
    pub fn start<E>(
        specs: Arc<[ParamSpec]>,
        mut given: impl FnMut(&ParamSpec) -> Result<Option<Tensor<B, 1>>, E>,
        stream: &mut Stream,
        device: &B::Device,
    ) -> Result<Self, E> {
        let value = |spec: &ParamSpec| Ok(given(spec)?.unwrap_or_else(|| draw(spec, stream, device)));
        let values = specs.iter().map(value).collect::<Result<_, E>>()?;
        Ok(Self::new(specs, values))
    }

    /// Creates weights from given values of 32 bits, in the order of the list.
    pub fn new(specs: Arc<[ParamSpec]>, values: Vec<Tensor<B, 1>>) -> Self {
        Self { specs, values, dtype: FloatDType::F32, precision: Precision::F32, part: None }
    }

    /// Restricts training to the selected parameters, and draws new adapters.
    #[must_use]
    pub fn restrict(mut self, selection: Selection, stream: &mut Stream, device: &B::Device) -> Self {
        let trained =
            selection.specs().iter().map(|spec| draw(spec, stream, device).cast(self.dtype)).collect();
        for (value, role) in self.values.iter_mut().zip(selection.roles()) {
            if let Role::Whole(_) = role {
                *value = widen(value.clone());
            }
        }
        let mut part = Part { trained, base: self.values.clone(), selection: Arc::new(selection) };
        part.restart();
        Self { part: Some(part), ..self }
    }

    /// Widens all values to 32 bits, which training all of them needs.
    #[must_use]
    pub fn widened(self) -> Self {
        Self { values: self.values.into_iter().map(widen).collect(), ..self }
    }

    /// Converts the values to another float format; tests take gradients in f64.
    #[must_use]
    pub fn cast(self, dtype: FloatDType) -> Self {
        let cast = |values: Vec<Tensor<B, 1>>| values.into_iter().map(|value| value.cast(dtype)).collect();
        let part = self.part.map(|part| Part { trained: cast(part.trained), base: cast(part.base), ..part });
        Self { specs: self.specs, values: cast(self.values), dtype, precision: self.precision, part }
    }

    /// Returns the names and shapes of the trained parameters: those that have gradients, noise and
    /// optimizer state.
    #[must_use]
    pub fn specs(&self) -> &[ParamSpec] {
        self.part.as_ref().map_or(&self.specs, |part| part.selection.specs())
    }

    /// Returns the names and shapes of all parameters of the model.
    #[must_use]
    pub fn model_specs(&self) -> &[ParamSpec] {
        &self.specs
    }

    /// Returns a parameter of the model, flat and in at least 32 bits, with its adapter.
    #[must_use]
    pub fn model_value(&self, param: ParamId) -> Tensor<B, 1> {
        let value = &self.values[param.0];
        match (&self.part, self.role(param)) {
            (Some(part), Role::Adapted(adapter)) if has_16_bits(value) => {
                part.merged(adapter, widen(value.clone()))
            }
            _ => widen(value.clone()),
        }
    }

    /// Replaces the values of the whole model. Adapters keep theirs.
    ///
    /// # Panics
    /// If the number of tensors differs.
    pub fn replace_model(&mut self, values: Vec<Tensor<B, 1>>) {
        assert_eq!(values.len(), self.specs.len(), "one tensor a parameter");
        self.values = values;
        if let Some(part) = &mut self.part {
            part.base.clone_from(&self.values);
            part.restart();
        }
        self.merge();
    }

    /// Returns whether this parameter of the model, or an adapter of it, is trained.
    pub(super) fn trains(&self, param: ParamId) -> bool {
        !matches!(self.role(param), Role::Frozen)
    }

    /// Returns the place of this parameter of the model among the trained ones, if it is trained
    /// itself.
    pub fn trained(&self, param: ParamId) -> Option<ParamId> {
        match self.role(param) {
            Role::Whole(place) => Some(place),
            Role::Frozen | Role::Adapted(_) => None,
        }
    }

    /// Returns the names of the modules that have adapters, and the storage of their matrices.
    pub fn adapted(&self) -> Vec<(&str, Stored)> {
        let stored = (0..self.specs.len()).map(|at| Some(self.adapter(ParamId(at))?.stored));
        self.specs.iter().zip(stored).filter_map(|(spec, stored)| Some((spec.module(), stored?))).collect()
    }

    /// Returns the adapter through which this parameter of the model is trained.
    pub(super) fn adapter(&self, param: ParamId) -> Option<Adapter> {
        match self.role(param) {
            Role::Adapted(adapter) => Some(adapter),
            Role::Frozen | Role::Whole(_) => None,
        }
    }

    fn role(&self, param: ParamId) -> Role {
        self.part.as_ref().map_or(Role::Whole(param), |part| part.selection.role(param))
    }

    /// Computes the model's parameters from the trained ones.
    fn merge(&mut self) {
        let Some(part) = &self.part else { return };
        for (place, &role) in part.selection.roles().iter().enumerate() {
            match role {
                Role::Frozen => {}
                Role::Whole(at) => self.values[place] = part.trained[at.0].clone(),
                // A matrix of 16 bits is merged where it is used.
                Role::Adapted(_) if has_16_bits(&part.base[place]) => {}
                Role::Adapted(adapter) => self.values[place] = part.merged(adapter, part.base[place].clone()),
            }
        }
    }

    /// Sets the number format in which layers multiply.
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// Returns the number format in which layers multiply.
    #[must_use]
    pub fn product_precision(&self) -> Precision {
        self.precision
    }

    /// Returns the float format of the values.
    #[must_use]
    pub fn dtype(&self) -> FloatDType {
        self.dtype
    }

    /// Returns the trained values, flat.
    #[must_use]
    pub fn values(&self) -> &[Tensor<B, 1>] {
        self.part.as_ref().map_or(&self.values, |part| &part.trained)
    }

    /// Replaces the values of the trained parameters.
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

    /// Moves the trained values out, so that an update may reuse their memory.
    pub fn take(&mut self) -> Vec<Tensor<B, 1>> {
        match &mut self.part {
            Some(part) => std::mem::take(&mut part.trained),
            None => std::mem::take(&mut self.values),
        }
    }

    /// Returns a trained parameter as a matrix.
    pub(super) fn trained_matrix(&self, place: ParamId) -> Tensor<B, 2> {
        self.part.as_ref().map_or_else(|| self.matrix(place), |part| part.matrix(place))
    }

    /// Returns a parameter as a vector.
    ///
    /// # Shapes
    /// - output: `[n]`
    #[must_use]
    pub fn vector(&self, id: ParamId) -> Tensor<B, 1> {
        self.model_value(id)
    }

    /// Returns a parameter as a matrix.
    ///
    /// # Shapes
    /// - output: `[rows, columns]` as in its specification
    #[must_use]
    pub fn matrix(&self, id: ParamId) -> Tensor<B, 2> {
        let shape = &self.specs[id.0].shape;
        self.model_value(id).reshape([shape[0], shape[1]])
    }

    /// Returns a parameter as a matrix in the number format in which it is held, without an adapter that [`Self::apart`]
    /// returns.
    ///
    /// # Shapes
    /// - output: `[rows, columns]` as in its specification
    pub(super) fn held_matrix(&self, id: ParamId) -> Tensor<B, 2> {
        matrix(&self.values, &self.specs, id)
    }

    /// Returns the adapter of a matrix that is held without it, with its two factors. A matrix of 32 bits is held with its
    /// adapter.
    pub(super) fn apart(&self, id: ParamId) -> Option<(Adapter, [Tensor<B, 2>; 2])> {
        let adapter = self.adapter(id).filter(|_| has_16_bits(&self.values[id.0]))?;
        Some((adapter, [adapter.a, adapter.b].map(|place| self.trained_matrix(place))))
    }

    /// Returns the bytes of a parameter of the model that is held in 16 bits and is not trained, and their format.
    pub fn frozen_bytes(&self, id: ParamId) -> Option<(NumberFormat, Vec<u8>)> {
        let format = self.frozen_format(id)?;
        let bytes = self.values[id.0].clone().into_data().bytes;
        Some((format, bytes.try_into_vec().unwrap_or_else(|bytes| bytes.to_vec())))
    }

    /// Returns the format of a parameter of the model that is held in 16 bits and is not trained.
    pub fn frozen_format(&self, id: ParamId) -> Option<NumberFormat> {
        match (self.role(id), self.values[id.0].dtype()) {
            (Role::Frozen, DType::F16) => Some(NumberFormat::F16),
            (Role::Frozen, DType::BF16) => Some(NumberFormat::Bf16),
            _ => None,
        }
    }

    /// Returns the given rows of a table.
    ///
    /// # Shapes
    /// - rows: `[n]`
    /// - output: `[n, columns]`
    pub(super) fn rows(&self, table: ParamId, rows: Tensor<B, 1, Int>) -> Tensor<B, 2> {
        widen(matrix(&self.values, &self.specs, table).select(0, rows))
    }

    /// See [`Kernels::rows_are_independent`].
    #[must_use]
    pub fn rows_are_independent(&self) -> bool {
        self.dtype() == FloatDType::F32 && B::rows_are_independent(self.precision)
    }

    /// Returns a layer's product, forward or backward, in the chosen precision.
    ///
    /// Rounding changes the function that the weights compute, and with it each example's gradient.
    /// The sensitivity stays bounded: norms and clipped sums are computed from the same recorded
    /// factors by [`Kernels::product`], which never rounds more than 32 bits do.
    ///
    /// # Shapes
    /// - a: `[…, m, k]`, b: `[…, k, n]`
    /// - output: `[…, m, n]`
    pub(super) fn product<const D: usize>(&self, a: Tensor<B, D>, b: Tensor<B, D>) -> Tensor<B, D> {
        match self.precision {
            Precision::F32 => B::attention_product(a, b),
            Precision::Bf16 => B::product_bf16(a, b),
        }
    }

    /// Returns [`Self::product`] of rows and a weight, which may be held in 16 bits.
    ///
    /// # Shapes
    /// - input: `[rows, d_in]`, weight: `[d_in, d_out]`
    /// - output: `[rows, d_out]`
    pub(super) fn layer_product(&self, input: Tensor<B, 2>, weight: Tensor<B, 2>) -> Tensor<B, 2> {
        match self.precision {
            Precision::F32 => B::layer_product(input, weight),
            Precision::Bf16 => B::product_bf16(input, weight),
        }
    }

    /// Returns [`Self::product`] plus a bias.
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

fn matrix<B: Backend>(values: &[Tensor<B, 1>], specs: &[ParamSpec], at: ParamId) -> Tensor<B, 2> {
    let shape = &specs[at.0].shape;
    values[at.0].clone().reshape([shape[0], shape[1]])
}

fn draw<B: Backend>(spec: &ParamSpec, stream: &mut Stream, device: &B::Device) -> Tensor<B, 1> {
    let mut host = vec![0.0; spec.len()];
    match spec.initial {
        Initializer::Constant(value) => host.fill(value),
        Initializer::Normal { std } => fill_gaussian(&mut host, std, stream),
    }
    from_host(host, [spec.len()], FloatDType::F32, device)
}

/// Fills as [`Stream::fill_gaussian_f32`] does, on all cores.
fn fill_gaussian(values: &mut [f32], std: f64, stream: &mut Stream) {
    let pieces = values.chunks_mut(piece_length(values.len()));
    // Two words an element, of which an odd number leaves two.
    let pieces = pieces.map(|piece| (stream.split(2 * piece.len().next_multiple_of(2) as u64), piece));
    in_parallel(usize::MAX, pieces.collect(), |_, (mut stream, piece)| stream.fill_gaussian_f32(piece, std));
}

fn has_16_bits<B: Backend>(value: &Tensor<B, 1>) -> bool {
    matches!(value.dtype(), DType::F16 | DType::BF16)
}

fn widen<B: Kernels, const D: usize>(values: Tensor<B, D>) -> Tensor<B, D> {
    match values.dtype() {
        DType::F16 | DType::BF16 => B::widen(values),
        _ => values,
    }
}

#[cfg(test)]
mod tests {
    use mechanisms::{PrivacyRng, Purpose, TestRng};

    use super::*;
    use crate::nn::{LinearSpec, ParamList};
    use crate::tensor::{Flex, FlexDevice, TensorData, to_host};

    /// One of two frozen matrices in 16 bits has an adapter. A trained vector is in 32 bits.
    #[test]
    fn frozen_weights_stay_in_16_bits_and_read_as_32() {
        let mut list = ParamList::default();
        let map = LinearSpec::normal(3, 2, 1.0);
        list.linear("adapted", map);
        list.linear("frozen", map);
        let layout = list.finish();
        let ones = TensorData::from_bytes_vec([0x80, 0x3F].repeat(6), [6], DType::BF16);
        let lora = plan::Trainable::Lora(plan::Lora { rank: 1, alpha: 2.0, targets: vec!["adapted".into()] });
        let selection = Selection::new(&lora, &layout, 0).unwrap().unwrap();
        let mut stream = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
        let given =
            |_: &ParamSpec| Ok::<_, ()>(Some(Tensor::from_data(ones.clone(), (&FlexDevice, DType::BF16))));
        let weights =
            Weights::<Flex>::start(layout.specs().clone(), given, &mut stream, &FlexDevice).unwrap();
        let mut weights = weights.restrict(selection, &mut stream, &FlexDevice);
        let [a, b] =
            [[1.0, 2.0, 3.0].as_slice(), &[0.5, -1.0]].map(|values| Tensor::from_floats(values, &FlexDevice));
        weights.replace(vec![a, b]);
        assert!(weights.values.iter().all(|value| value.dtype() == DType::BF16));
        let value = |at: usize| to_host(weights.vector(ParamId(at)));
        assert_eq!(value(0), [2.0, 3.0, 4.0, -1.0, -3.0, -5.0]);
        assert_eq!(value(1), [1.0; 6]);
    }

    /// An odd number of elements, enough for several threads, and elements after them.
    #[test]
    fn weights_that_several_threads_draw_are_those_of_one() {
        let mut list = ParamList::default();
        let lengths = [200_001, 4];
        for (name, length) in ["odd", "after"].into_iter().zip(lengths) {
            list.add(name, &[length], Initializer::Normal { std: 2.0 });
        }
        let stream = || TestRng::from_seed(3).stream(Purpose::Initialization, 0, 0);
        let specs = list.finish().specs().clone();
        let weights = Weights::<Flex>::initialize(specs, &mut stream(), &FlexDevice);
        let mut whole = stream();
        for (at, length) in lengths.into_iter().enumerate() {
            let mut expected = vec![0.0; length];
            whole.fill_gaussian_f32(&mut expected, 2.0);
            assert_eq!(to_host(weights.vector(ParamId(at))), expected);
        }
    }
}
