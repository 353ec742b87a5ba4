//! The oracle: one example at a time, its whole gradient in memory, clipped and summed in double precision.

use mechanisms::{PrivacyRng, Purpose, TestRng};
use plan::Clipping;

use super::gradients::plain_sum;
use super::norms::{norms, squared_norms};
use super::{ClippedSum, Lot, PerExampleGrads};
use crate::data::Example;
use crate::model::{Batch, Network};
use crate::nn::{GradRecord, Kernels, ParamSpec, Weights};
use crate::tensor::{DType, Flex, FlexDevice, FloatDType, Tensor, TensorData, from_host, to_host_f64};

/// Windows of all lengths, with repeated tokens, a full one, one without a target and an empty one.
pub fn ragged_lot() -> Vec<Example> {
    let windows: [&[u32]; 9] = [
        &[1, 2, 3, 4, 5, 6, 7, 8],
        &[4, 4, 4, 4, 4],
        &[22, 0],
        &[9, 3, 9, 3, 9, 3, 9],
        &[5],
        &[],
        &[0, 1, 0],
        &[11, 12, 13, 14, 13, 12, 11],
        &[20, 20, 21],
    ];
    windows.into_iter().map(Example::causal).collect()
}

/// The examples in micro-batches of `physical_batch` rows, on the CPU.
pub fn lot<'a>(model: &Network, examples: &'a [Example], physical_batch: usize) -> Lot<'a, Flex> {
    Lot { examples, physical_batch, shape: model.shape(), recompute: false, device: &FlexDevice }
}

/// The gradient of one example's loss, all parameters in one vector, from a batch of that example alone.
pub fn single_gradient<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    example: &Example,
    device: &B::Device,
) -> Vec<f64> {
    let examples = std::slice::from_ref(example);
    let batch = Batch::new(examples, 1, model.shape(), weights.dtype(), device);
    plain_sum(model, weights, batch, false).0.into_iter().flat_map(to_host_f64).collect()
}

/// Clipped sum over a lot by the definition.
pub fn clipped_sum_by_loop<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &[Example],
    l2_clip_norm: f64,
    device: &B::Device,
) -> Vec<f64> {
    let mut sum = Vec::new();
    for example in lot {
        let gradient = single_gradient(model, weights, example, device);
        let factor = (l2_clip_norm / norm(&gradient)).min(1.0);
        sum.resize(gradient.len(), 0.0);
        sum.iter_mut().zip(gradient).for_each(|(sum, value)| *sum += factor * value);
    }
    sum
}

/// The norms of each example, from the records of a backward pass.
pub fn per_example_norms<B: Kernels>(records: &[GradRecord<B>]) -> Vec<f64> {
    norms(&squared_norms(records)).0
}

/// The clipped sum of the first `examples` rows, from the records of a backward pass.
pub fn clip<B: Kernels>(
    records: Vec<GradRecord<B>>,
    examples: usize,
    l2_clip_norm: f64,
    specs: &[ParamSpec],
) -> ClippedSum<B> {
    PerExampleGrads::of_records(records, examples, specs).clip_and_sum(Clipping::Flat, l2_clip_norm)
}

/// The same values on every device, far enough from the model's start that no gradient is small by accident.
pub fn moved_weights<B: Kernels>(model: &Network, seed: u64, device: &B::Device) -> Weights<B> {
    let mut stream = TestRng::from_seed(seed).stream(Purpose::Initialization, 0, 0);
    let mut weights = Weights::<B>::initialize(model.specs(), &mut stream, device);
    let moved = weights.take().into_iter().map(|value| {
        let length = value.dims()[0];
        let mut noise = vec![0.0; length];
        stream.fill_gaussian_f32(&mut noise, 0.2);
        value + from_host(noise, [length], FloatDType::F32, device)
    });
    weights.replace(moved.collect());
    weights
}

/// The weights with one element of a parameter shifted, in double precision.
pub fn shifted<B: Kernels>(weights: &Weights<B>, index: usize, element: usize, shift: f64) -> Weights<B> {
    let mut shifted = weights.clone();
    let mut values = shifted.take();
    let mut host = to_host_f64(values[index].clone());
    host[element] += shift;
    let data = TensorData::new(host, values[index].dims());
    values[index] = Tensor::from_data(data, (&values[index].device(), DType::F64));
    shifted.replace(values);
    shifted
}

/// A bound that clips about half of the lot, so that both branches of the clip are used.
pub fn median_norm<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &[Example],
    device: &B::Device,
) -> f64 {
    let of = |example| norm(&single_gradient(model, weights, example, device));
    let mut norms: Vec<f64> = lot.iter().map(of).collect();
    norms.sort_by(f64::total_cmp);
    assert!(norms[norms.len() / 2] > 0.01);
    norms[norms.len() / 2]
}

/// All parts in one vector.
pub fn flatten<B: Kernels>(sum: ClippedSum<B>) -> Vec<f64> {
    sum.sum.0.into_iter().flat_map(to_host_f64).collect()
}

/// L2 norm.
pub fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// ‖a − b‖ / ‖b‖
pub fn relative_distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>()) / norm(b)
}
