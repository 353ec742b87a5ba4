//! The oracle: each example's whole gradient is held in memory, clipped, and summed in double
//! precision.

use mechanisms::{L2Sensitivity, PrivacyRng, Purpose, TestRng};
use plan::{Arithmetic, Clipping};

use super::gradients::plain_sum;
use super::grid_sum::GridSum;
use super::norms::{norms, squared_norms};
use super::sum::ClippedPart;
use super::{
    Carried, ClippedSum, Lot, NoisyAverage, PerExampleGrads, PrivateGradient, StepError, Summation, summing,
};
use network::Example;
use network::model::{Batch, Network};
use network::nn::{GradRecord, Kernels, ParamSpec, Weights};
use network::tensor::{DType, Flex, FlexDevice, FloatDType, Tensor, TensorData, from_host, to_host_f64};

/// Windows of all lengths, with repeated tokens, a full one, one without a target and an empty one.
pub(crate) fn ragged_lot() -> Vec<Example> {
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

/// Ragged, with repeated tokens, a full example and an empty one.
pub fn examples(objective: &str) -> Vec<Example> {
    let windows: [&[u32]; 6] = [
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
        &[4, 4, 4, 4, 4],
        &[22, 5],
        &[9, 3, 9, 3, 9, 3, 9],
        &[],
        &[11, 12, 13, 14, 13, 12, 11, 0, 1, 11],
    ];
    let of = |(at, window): (usize, &[u32])| {
        let whole = |input: &[u32]| Example { input: input.to_vec(), ..Example::default() };
        match objective {
            "causal_lm" => Example::causal(window),
            "prefix_lm" => {
                let (input, targets) = window.split_at(window.len() / 2);
                let decoder_input = targets.iter().map(|token| (token + 1) % 23).collect();
                Example { targets: targets.to_vec(), decoder_input, ..whole(input) }
            }
            _ => Example {
                positions: (0..window.len().min(2) as u32).collect(),
                targets: window.iter().take(2).copied().collect(),
                segments: (0..window.len()).map(|place| u32::from(2 * place > window.len())).collect(),
                sentence: (objective == "masked_lm_next_sentence" && window.len() > 2)
                    .then_some(at as u32 % 2),
                ..whole(window)
            },
        }
    };
    windows.into_iter().enumerate().map(of).collect()
}

/// The examples in micro-batches of `physical_batch` rows, on the CPU.
pub fn lot<'a>(model: &Network, examples: &'a [Example], physical_batch: usize) -> Lot<'a, Flex> {
    Lot {
        examples,
        physical_batch,
        shape: model.shape(),
        recompute: false,
        group_by_length: false,
        device: &FlexDevice,
        shards: None,
    }
}

/// The gradient of one example's loss, all parameters in one vector, from a batch of that example alone.
pub(crate) fn single_gradient<B: Kernels>(
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
pub(crate) fn clipped_sum_by_loop<B: Kernels>(
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
pub(crate) fn per_example_norms<B: Kernels>(records: &[GradRecord<B>]) -> Vec<f64> {
    norms(&squared_norms(records)).0
}

/// The clipped sum of the first `examples` rows, from the records of a backward pass.
pub fn clip<B: Kernels>(
    records: Vec<GradRecord<B>>,
    examples: usize,
    l2_clip_norm: f64,
    specs: &[ParamSpec],
) -> Vec<ClippedPart<B>> {
    parts(PerExampleGrads::of_records(records, examples, specs), Clipping::Flat, l2_clip_norm)
}

/// The clipped sum, in the order of the parameters.
pub fn parts<B: Kernels>(
    gradients: PerExampleGrads<'_, B>,
    clipping: Clipping,
    l2_clip_norm: f64,
) -> Vec<ClippedPart<B>> {
    let mut parts = Vec::new();
    gradients.clip_and_sum(clipping, l2_clip_norm, |part| parts.push(part));
    parts.sort_by_key(|part| part.param);
    parts
}

/// Returns weights with the same values on every device. They are far enough from the model's
/// initial weights that no gradient is small by accident.
pub(crate) fn moved_weights<B: Kernels>(model: &Network, seed: u64, device: &B::Device) -> Weights<B> {
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
pub(crate) fn median_norm<B: Kernels>(
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

/// The clipped sum of a lot on a grid far finer than single precision.
pub(crate) fn clipped_sum<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    l2_clip_norm: f64,
    clipping: Clipping,
) -> ClippedSum {
    let summation = Summation { clipping, arithmetic: Arithmetic::Fast };
    clipped_sum_on_grid(model, weights, lot, summation, l2_clip_norm, 2.0_f64.powi(-47)).unwrap()
}

/// A sum of gradients, whichever its numbers.
pub trait Values {
    /// Returns all parts in one vector.
    fn values(self) -> Vec<f64>;
}

impl Values for ClippedSum {
    fn values(self) -> Vec<f64> {
        self.parts.into_iter().flatten().map(|integer| integer as f64 * self.grid_step).collect()
    }
}

impl<B: Kernels> Values for Vec<ClippedPart<B>> {
    fn values(self) -> Vec<f64> {
        self.into_iter().flat_map(|part| to_host_f64(part.sum)).collect()
    }
}

/// Returns all parts in one vector.
pub fn flatten(sum: impl Values) -> Vec<f64> {
    sum.values()
}

/// The sum of a lot's gradients, each clipped to a norm of at most `l2_clip_norm`, in multiples of `grid_step`.
pub(crate) fn clipped_sum_on_grid<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    summation: Summation,
    l2_clip_norm: f64,
    grid_step: f64,
) -> Result<ClippedSum, StepError> {
    let summing = summing::Summing::new(model, summation, l2_clip_norm, grid_step)?;
    summing::clipped_sum(&summing, weights, lot, GridSum::zero(weights.specs(), l2_clip_norm, grid_step))
}

/// The release of a sum over no example.
pub(crate) fn noise_alone<B: Kernels>(
    specs: &[ParamSpec],
    l2_clip_norm: f64,
    release: &NoisyAverage,
    rng: &TestRng,
    device: &B::Device,
) -> PrivateGradient<B> {
    let grid_step = release.noise.grid(L2Sensitivity::new(l2_clip_norm).unwrap()).unwrap().unit();
    let sum = GridSum::zero(specs, l2_clip_norm, grid_step).finish().unwrap();
    release.of(&mut Carried::default(), sum.bounded().unwrap(), rng, device).unwrap()
}

/// L2 norm.
pub fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// ‖a − b‖ / ‖b‖
pub(crate) fn relative_distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>()) / norm(b)
}
