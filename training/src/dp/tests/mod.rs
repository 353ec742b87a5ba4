//! Tests of a step's guarantees against the loop over single examples or the definition.

mod attack;
mod audit;
mod banded;
mod exact;
mod independence;
mod modes;
mod ranks;
mod views;

use mechanisms::{GaussianMechanism, Grid, L2Sensitivity, PrivacyRng, Purpose, TestRng};
use plan::{Arithmetic, Clipping};

use super::grid_sum::GridSum;
use super::reference::{
    clipped_sum_by_loop, flatten, lot, moved_weights, norm, ragged_lot, relative_distance, shifted,
    single_gradient,
};
use super::*;
use network::Example;
use network::model::{Backbone, Batch, Network, Sizes, gpt2};
use network::nn::{GradRecord, ParamId, ParamSpec, Weights, materialize_if_cheaper};
use network::tensor::{Flex, FlexDevice, FloatDType, Tensor, TensorData, to_host_f64};

const DEVICE: FlexDevice = FlexDevice;

fn model(config: Sizes, seed: u64) -> (Network, Weights<Flex>) {
    let model = Network::of(Backbone::Gpt2(gpt2(config)));
    let weights = moved_weights(&model, seed, &DEVICE);
    (model, weights)
}

fn small() -> Sizes {
    Sizes { vocab_size: 23, context: 7, d_model: 8, layers: 2, heads: 2, d_ff: 12 }
}

fn fast(clipping: Clipping) -> Summation {
    Summation { clipping, arithmetic: Arithmetic::Fast }
}

fn clipped(
    model: &Network,
    weights: &Weights<Flex>,
    examples: &[Example],
    rows: usize,
    bound: f64,
) -> Vec<f64> {
    flatten(clipped_sum(model, weights, &lot(model, examples, rows), bound, Clipping::Flat))
}

fn median_norm(model: &Network, weights: &Weights<Flex>, examples: &[Example]) -> f64 {
    reference::median_norm(model, weights, examples, &DEVICE)
}

#[test]
fn clipped_sum_equals_the_loop_over_single_examples() {
    // The second shape makes the direct form of the norm cheaper than the Gram form, the third the other way round.
    let shapes = [
        small(),
        Sizes { d_model: 4, heads: 1, d_ff: 4, layers: 1, ..small() },
        Sizes { d_model: 32, heads: 4, d_ff: 64, ..small() },
    ];
    for (seed, shape) in shapes.into_iter().enumerate() {
        let (model, weights) = model(shape, seed as u64);
        let bound = median_norm(&model, &weights, &ragged_lot());
        let want = clipped_sum_by_loop(&model, &weights, &ragged_lot(), bound, &DEVICE);
        let got = clipped(&model, &weights, &ragged_lot(), 4, bound);
        let distance = relative_distance(&got, &want);
        assert!(distance < 1e-4, "{shape:?}: {distance}");
    }
}

/// Examples are long and matrices narrow, so that whole gradients cost less than factors.
#[test]
fn clipped_sum_equals_the_loop_where_gradients_are_held_whole() {
    let shape = Sizes { context: 70, d_model: 4, heads: 1, d_ff: 8, ..small() };
    let (model, weights) = model(shape, 12);
    let window = |length: u32| (0..length).map(|at| at * at % 23).collect::<Vec<u32>>();
    let examples: Vec<Example> = [71, 30, 1, 0, 64, 2].map(|length| Example::causal(&window(length))).into();
    let batch = Batch::new(&examples, 6, model.shape(), FloatDType::F32, &DEVICE);
    let records = materialize_if_cheaper(model.records(&weights, batch));
    assert!(!records.iter().any(|record| matches!(record, GradRecord::Product { .. })));
    let bound = median_norm(&model, &weights, &examples);
    for (weights, bound, tolerance) in
        [(weights.clone(), bound, 1e-4), (weights.clone().cast(FloatDType::F64), 1e6, 1e-12)]
    {
        let want = clipped_sum_by_loop(&model, &weights, &examples, bound, &DEVICE);
        let distance = relative_distance(&clipped(&model, &weights, &examples, 4, bound), &want);
        assert!(distance < tolerance, "{distance}");
    }
}

#[test]
fn clipped_sum_equals_the_loop_in_double_precision() {
    let (model, weights) = model(small(), 3);
    let weights = weights.cast(FloatDType::F64);
    let bound = median_norm(&model, &weights, &ragged_lot());
    let want = clipped_sum_by_loop(&model, &weights, &ragged_lot(), bound, &DEVICE);
    // Factors are f32 and norms are rounded up by 1e-5. A bound above all norms removes both
    // effects.
    let got = clipped(&model, &weights, &ragged_lot(), 4, 1e6);
    let all = clipped_sum_by_loop(&model, &weights, &ragged_lot(), 1e6, &DEVICE);
    assert!(relative_distance(&got, &all) < 1e-12);
    let got = clipped(&model, &weights, &ragged_lot(), 4, bound);
    assert!(relative_distance(&got, &want) < 2e-5);
}

#[test]
fn norms_equal_those_of_whole_gradients() {
    let (model, weights) = model(small(), 4);
    let weights = weights.cast(FloatDType::F64);
    let windows = ragged_lot();
    let batch = Batch::new(&windows, windows.len(), model.shape(), FloatDType::F64, &DEVICE);
    let norms = per_example_norms(&model.records(&weights, batch));
    for (window, got) in windows.iter().zip(norms) {
        let want = norm(&single_gradient(&model, &weights, window, &DEVICE));
        assert!(got >= want && got <= want * (1.0 + 2e-5), "{window:?}: {got} {want}");
    }
}

#[test]
fn gradient_equals_finite_differences_of_the_loss() {
    let (model, weights) = model(small(), 5);
    let weights = weights.cast(FloatDType::F64);
    let window = Example::causal(&[3, 4, 4, 9, 0, 22, 3]);
    let gradient = single_gradient(&model, &weights, &window, &DEVICE);
    let loss = |weights: &Weights<Flex>| {
        let examples = std::slice::from_ref(&window);
        let batch: Batch<Flex> = Batch::new(examples, 1, model.shape(), FloatDType::F64, &DEVICE);
        let (targets, target_weights) = (batch.targets.clone(), batch.target_weights.clone());
        let logits = model.logits(weights, batch);
        let nll = <Flex as network::nn::Kernels>::token_nll(logits, targets.reshape([7]));
        to_host_f64((nll * target_weights.reshape([7])).sum())[0]
    };
    let (h, mut offset, mut worst) = (1e-5, 0, 0.0_f64);
    for (index, spec) in weights.specs().to_vec().iter().enumerate() {
        for element in (0..spec.len()).step_by(spec.len().div_ceil(9)) {
            let at = |shift| loss(&shifted(&weights, index, element, shift));
            let slope = (at(h) - at(-h)) / (2.0 * h);
            worst = worst.max((slope - gradient[offset + element]).abs());
        }
        offset += spec.len();
    }
    // The central difference errs by h²·(third derivative) + 1e-16/h ≈ 1e-10; gradients here are of order 0.1.
    assert!(worst < 1e-8, "{worst}");
    assert!(norm(&gradient) > 0.1);
}

#[test]
fn sum_moves_at_most_the_clip_norm_when_one_example_is_removed() {
    let (model, weights) = model(small(), 6);
    let windows = ragged_lot();
    for bound in [1e-3, 0.1, 1.0] {
        let whole = clipped(&model, &weights, &windows, 4, bound);
        for removed in 0..windows.len() {
            let mut rest = windows.clone();
            rest.remove(removed);
            let part = clipped(&model, &weights, &rest, 4, bound);
            let moved = norm(&whole.iter().zip(&part).map(|(a, b)| a - b).collect::<Vec<_>>());
            // Sums of 8 others are rounded to f32 in another grouping: 1e-6 of their length.
            assert!(moved <= bound * (1.0 + 1e-5), "{removed}: {moved} > {bound}");
        }
    }
}

#[test]
fn a_clipped_gradient_alone_is_never_longer_than_the_bound() {
    for seed in 10..20 {
        let (model, weights) = model(small(), seed);
        for window in ragged_lot() {
            let length = norm(&clipped(&model, &weights, &[window], 2, 0.01));
            assert!(length <= 0.01, "{length}");
        }
    }
}

#[test]
fn the_physical_batch_does_not_change_the_sum() {
    let (model, weights) = model(small(), 7);
    let want = clipped(&model, &weights, &ragged_lot(), 1, 0.3);
    for rows in [2, 3, 4, 9, 16] {
        let got = clipped(&model, &weights, &ragged_lot(), rows, 0.3);
        assert!(relative_distance(&got, &want) < 1e-6, "{rows}");
    }
}

#[test]
fn padding_contributes_nothing_even_where_its_rows_hold_gradients() {
    let (model, weights) = model(small(), 8);
    let windows = ragged_lot();
    let batch = || Batch::new(&windows, windows.len(), model.shape(), FloatDType::F32, &DEVICE);
    let sum = |examples| {
        let records = model.records(&weights, batch());
        flatten(clip(records, examples, 0.3, weights.specs()))
    };
    let three = clipped(&model, &weights, &windows[..3], 3, 0.3);
    assert!(relative_distance(&sum(3), &three) < 1e-6, "rows beyond the third are declared padding");
    assert!(norm(&sum(0)) == 0.0);
}

#[test]
fn a_poisoned_example_contributes_nothing() {
    let (model, weights) = model(small(), 9);
    let windows: [&[u32]; 3] = [&[1, 2, 3], &[4, 5, 6, 7], &[8, 9]];
    let windows = windows.map(Example::causal);
    let healthy = [windows[0].clone(), Example::default(), windows[2].clone()];
    let want = clipped(&model, &weights, &healthy, 3, 0.3);
    for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        let batch = Batch::new(&windows, 3, model.shape(), FloatDType::F32, &DEVICE);
        let bad = Tensor::<Flex, 1>::from_floats([0.0, poison, 0.0], &DEVICE).reshape([3, 1, 1]);
        let spoil = |record| match record {
            GradRecord::Explicit { param, grads } => {
                GradRecord::Explicit { param, grads: grads + bad.clone().reshape([3, 1]) }
            }
            GradRecord::Product { param, input, grad } => {
                GradRecord::Product { param, input: input + bad.clone(), grad: grad + bad.clone() }
            }
            GradRecord::Lookup { param, tokens, grad } => {
                GradRecord::Lookup { param, tokens, grad: grad + bad.clone() }
            }
            GradRecord::TiedEmbedding { param, tokens, grad, hidden, logits_grad } => {
                GradRecord::TiedEmbedding {
                    param,
                    tokens,
                    grad: grad + bad.clone(),
                    hidden: hidden + bad.clone(),
                    logits_grad,
                }
            }
        };
        let records: Vec<_> = model.records(&weights, batch).into_iter().map(spoil).collect();
        let got = flatten(clip(records, 3, 0.3, weights.specs()));
        assert!(relative_distance(&got, &want) < 1e-6, "{poison}");
    }
}

fn noised(parts: &[usize], bound: f64, sigma: f64, divisor: f64, step: u64) -> Vec<f64> {
    let specs: Vec<_> = parts
        .iter()
        .map(|&len| network::nn::ParamSpec {
            name: String::new(),
            shape: vec![len],
            initial: network::nn::Initializer::Constant(0.0),
        })
        .collect();
    let release = NoisyAverage { noise: GaussianMechanism::new(sigma).unwrap(), step, divisor };
    let gradient: PrivateGradient<Flex> =
        noise_alone(&specs, bound, &release, &TestRng::from_seed(1), &DEVICE);
    gradient.into_parts().into_iter().flat_map(to_host_f64).collect()
}

#[test]
fn total_noise_has_variance_sigma_squared_c_squared_and_a_wrong_sigma_is_rejected() {
    let (bound, sigma, divisor) = (0.25, 3.0, 64.0);
    let noise = noised(&[150_000, 1, 49_999], bound, sigma, divisor, 5);
    let n = noise.len() as f64;
    let ratio = noise.iter().map(|z| (z * divisor).powi(2)).sum::<f64>() / n / (sigma * bound).powi(2);
    // χ²/n has standard deviation √(2/n); 4.9 of them are α = 1e-6.
    let tolerance = 4.9 * (2.0 / n).sqrt();
    assert!((ratio - 1.0).abs() < tolerance, "{ratio}");
    for wrong in [1.02, 1.0 / 1.02] {
        assert!((ratio / (wrong * wrong) - 1.0).abs() > tolerance, "σ wrong by 2 % must be rejected");
    }
}

#[test]
fn an_empty_lot_gets_the_same_noise_as_a_full_one() {
    let (model, weights) = model(small(), 12);
    let step = DpStep {
        noise: GaussianMechanism::new(2.0).unwrap(),
        l2_clip_norm: 0.5,
        expected_batch_size: 8.0,
        learning_rate: 0.0,
        step: 3,
    };
    let rng = TestRng::from_seed(2);
    let gradient = |windows: &[Example]| -> Vec<f64> {
        let lot = lot(&model, windows, 4);
        let (gradient, next) = private_gradient(
            &model,
            &weights,
            &lot,
            &step,
            fast(Clipping::Flat),
            &mut Carried::default(),
            &rng,
        )
        .unwrap();
        assert_eq!(next, None);
        gradient.into_parts().into_iter().flat_map(to_host_f64).collect()
    };
    let (empty, full) = (gradient(&[]), gradient(&ragged_lot()));
    let n = empty.len() as f64;
    let ratio = empty.iter().map(|z| (z * 8.0).powi(2)).sum::<f64>() / n / (2.0_f64 * 0.5).powi(2);
    assert!((ratio - 1.0).abs() < 4.9 * (2.0 / n).sqrt(), "{ratio}");
    // Without the noise, the result is the clipped sum divided by the plan's constant, not by the
    // nine drawn examples.
    let signal: Vec<f64> = full.iter().zip(&empty).map(|(a, b)| (a - b) * 8.0).collect();
    let want = clipped(&model, &weights, &ragged_lot(), 4, 0.5);
    assert!(relative_distance(&signal, &want) < 1e-4);
}

/// Oracle: one fill of the parameter's stream. A parameter of several threads and blocks, odd in length.
#[test]
fn noise_of_a_parameter_is_one_fill_of_its_stream_whichever_thread_draws_it() {
    let parts = [3, 3 * (1 << 16) + 19];
    let got = noised(&parts, 0.5, 2.0, 4.0, 9);
    let mut want = Vec::new();
    let grid = Grid::new(1.0, 0.5).unwrap();
    for (index, length) in parts.into_iter().enumerate() {
        let mut noise = vec![0; length];
        let rng = TestRng::from_seed(1);
        grid.noise().add_to(&mut rng.stream(Purpose::GradientNoise, 9, index as u32), 0, &mut noise);
        want.extend(noise.into_iter().map(|noise| f64::from((noise as f64 * grid.unit() / 4.0) as f32)));
    }
    assert_eq!(got, want);
}

/// Later steps use the memory of earlier sums, of a lot or of noise alone.
#[test]
fn a_step_after_others_releases_what_it_releases_alone() {
    let (model, weights) = model(small(), 12);
    let lots = [ragged_lot(), Vec::new(), ragged_lot().split_off(4)];
    let rng = TestRng::from_seed(2);
    let mut carried = Carried::default();
    for (number, examples) in (0..).zip(&lots) {
        let lot = lot(&model, examples, 4);
        let step = DpStep {
            noise: GaussianMechanism::new(2.0).unwrap(),
            l2_clip_norm: 0.5,
            expected_batch_size: 8.0,
            learning_rate: 0.0,
            step: number,
        };
        let release = |carried: &mut Carried| -> Vec<f64> {
            let (gradient, _) =
                private_gradient(&model, &weights, &lot, &step, fast(Clipping::Flat), carried, &rng).unwrap();
            gradient.into_parts().into_iter().flat_map(to_host_f64).collect()
        };
        assert_eq!(release(&mut carried), release(&mut Carried::default()), "step {number}");
        assert!(carried.zeros.iter().flatten().all(|integer| *integer == 0));
        assert_eq!(carried.zeros.len(), weights.specs().len());
    }
}

#[test]
fn noise_of_another_grid_releases_nothing() {
    let specs =
        [ParamSpec { name: String::new(), shape: vec![9], initial: network::nn::Initializer::Constant(0.0) }];
    let sum = GridSum::zero(&specs, 1.0, 2.0_f64.powi(-20)).finish().unwrap().bounded().unwrap();
    let release = NoisyAverage { noise: GaussianMechanism::new(1.0).unwrap(), step: 0, divisor: 1.0 };
    let gradient: PrivateGradient<Flex> =
        release.of(&mut Carried::default(), sum, &TestRng::from_seed(1), &DEVICE).unwrap();
    assert!(to_host_f64(gradient.into_parts().remove(0)).iter().all(|value| value.is_nan()));
}

#[test]
fn noise_differs_between_steps_and_between_tensors() {
    let one = noised(&[100, 100], 1.0, 1.0, 1.0, 0);
    let other = noised(&[100, 100], 1.0, 1.0, 1.0, 1);
    assert!(one.iter().zip(&other).all(|(a, b)| a != b));
    assert_ne!(one[..100], one[100..]);
    assert_eq!(one, noised(&[100, 100], 1.0, 1.0, 1.0, 0), "the same address gives the same noise");
}

/// The records of two examples, changed, and clipped.
fn clip_changed(change: impl FnOnce(&mut Vec<GradRecord<Flex>>)) {
    let (model, weights) = model(small(), 13);
    let batch = Batch::new(&ragged_lot()[..2], 2, model.shape(), FloatDType::F32, &DEVICE);
    let mut records = model.records(&weights, batch);
    change(&mut records);
    drop(clip(records, 2, 1.0, weights.specs()));
}

#[test]
#[should_panic(expected = "has 2 records")]
fn a_parameter_with_two_records_is_refused() {
    clip_changed(|records| records.push(records[0].clone()));
}

#[test]
#[should_panic(expected = "has 0 records")]
fn a_parameter_without_a_record_is_refused() {
    clip_changed(|records| assert_eq!(records.pop().unwrap().param(), ParamId(0)));
}

#[test]
fn norms_equal_those_of_autodiff_in_torch() {
    let folder = crate::network_tests::testing::path("gpt2_tiny");
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let config = Sizes { vocab_size: 61, context: 12, d_model: 16, layers: 2, heads: 4, d_ff: 40 };
    let (model, mut weights) = model(config, 0);
    let specs = model.specs();
    let values = specs.iter().map(|spec| {
        let data = file.tensor(&spec.name).unwrap().data().to_vec();
        let data = TensorData::from_bytes_vec(data, vec![spec.len()], network::tensor::DType::F32);
        Tensor::from_data(data, &DEVICE)
    });
    weights.replace(values.collect());
    let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
    for example in expected["examples"].as_array().unwrap() {
        let window: Vec<u32> = serde_json::from_value(example["tokens"].clone()).unwrap();
        let batch = Batch::new(&[Example::causal(&window)], 2, model.shape(), FloatDType::F32, &DEVICE);
        let got = per_example_norms(&model.records(&weights, batch))[0];
        let want = example["gradient_norm"].as_f64().unwrap();
        assert!((got / want - 1.0).abs() < 3e-5, "{got} {want}");
    }
}
