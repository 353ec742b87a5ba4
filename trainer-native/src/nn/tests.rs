//! Each layer's backward pass against central differences in double precision, and its records against a loop over
//! single examples.

use std::sync::Arc;

use mechanisms::{PrivacyRng, Purpose, TestRng};

use super::*;
use crate::dp::reference::{flatten, norm, relative_distance};
use crate::dp::{clip, per_example_norms};
use crate::tensor::{DType, Flex, FlexDevice, FloatDType, Tensor, TensorData, to_host_f64};

const BATCH: usize = 3;

/// A layer as two functions of weights and input, and the names and shapes of its parameters.
struct Case<F, G> {
    params: Vec<Vec<usize>>,
    /// Of one example.
    input: [usize; 2],
    forward: F,
    /// (weights, input, output gradient, records) → input gradient
    backward: G,
}

impl<F, G> Case<F, G>
where
    F: Fn(&Weights<Flex>, Tensor<Flex, 3>) -> Tensor<Flex, 3>,
    G: Fn(&Weights<Flex>, Tensor<Flex, 3>, Tensor<Flex, 3>, &mut Vec<GradRecord<Flex>>) -> Tensor<Flex, 3>,
{
    fn check(&self) {
        let mut stream = TestRng::from_seed(31).stream(Purpose::Data, 0, 0);
        let specs: Arc<[ParamSpec]> = self
            .params
            .iter()
            .enumerate()
            .map(|(at, shape)| ParamSpec {
                name: format!("parameter {at}"),
                shape: shape.clone(),
                initial: Initial::Normal { std: 0.5 },
            })
            .collect();
        let weights = Weights::<Flex>::initialize(specs, &mut stream, &FlexDevice).cast(FloatDType::F64);
        let mut normal = |shape: [usize; 3]| {
            let mut host = vec![0.0_f32; shape.iter().product()];
            stream.fill_gaussian_f32(&mut host, 1.0);
            double(host.into_iter().map(f64::from).collect(), shape)
        };
        let input = normal([BATCH, self.input[0], self.input[1]]);
        let probe = normal((self.forward)(&weights, input.clone()).dims());
        self.gradients_equal_central_differences(&weights, &input, &probe);
        self.records_equal_the_loop(&weights, &input, &probe);
    }

    fn loss(&self, weights: &Weights<Flex>, input: &Tensor<Flex, 3>, probe: &Tensor<Flex, 3>) -> f64 {
        to_host_f64(((self.forward)(weights, input.clone()) * probe.clone()).sum())[0]
    }

    fn summed(
        &self,
        weights: &Weights<Flex>,
        input: &Tensor<Flex, 3>,
        probe: &Tensor<Flex, 3>,
        bound: f64,
    ) -> (Tensor<Flex, 3>, Vec<f64>) {
        let mut records = Vec::new();
        let input_grad = (self.backward)(weights, input.clone(), probe.clone(), &mut records);
        let norms = per_example_norms(&records);
        let sum = flatten(clip(records, norms, input.dims()[0], bound, weights.specs()));
        (input_grad, sum)
    }

    fn gradients_equal_central_differences(
        &self,
        weights: &Weights<Flex>,
        input: &Tensor<Flex, 3>,
        probe: &Tensor<Flex, 3>,
    ) {
        const STEP: f64 = 1e-5;
        let (input_grad, sum) = self.summed(weights, input, probe, 1e9);
        let host = to_host_f64(input.clone());
        let slope = |at: usize| {
            let moved = |shift: f64| {
                let mut host = host.clone();
                host[at] += shift;
                self.loss(weights, &double(host, input.dims()), probe)
            };
            (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
        };
        let slopes: Vec<f64> = (0..host.len()).map(slope).collect();
        // The central difference errs by h²·(third derivative) + 1e-15/h ≈ 1e-9 of values of order 1.
        let distance = relative_distance(&to_host_f64(input_grad), &slopes);
        assert!(distance < 1e-7, "input: {distance}");
        let mut offset = 0;
        for (index, spec) in weights.specs().iter().enumerate() {
            let slope = |element: usize| {
                let moved = |shift: f64| {
                    let mut moved = weights.clone();
                    let mut values = moved.take();
                    let mut host = to_host_f64(values[index].clone());
                    host[element] += shift;
                    values[index] = double(host, [spec.len()]);
                    moved.replace(values);
                    self.loss(&moved, input, probe)
                };
                (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
            };
            let slopes: Vec<f64> = (0..spec.len()).map(slope).collect();
            let distance = relative_distance(&sum[offset..offset + spec.len()], &slopes);
            assert!(distance < 1e-7, "{}: {distance}", spec.name);
            offset += spec.len();
        }
        assert_eq!(offset, sum.len());
    }

    fn records_equal_the_loop(
        &self,
        weights: &Weights<Flex>,
        input: &Tensor<Flex, 3>,
        probe: &Tensor<Flex, 3>,
    ) {
        if self.params.is_empty() {
            return;
        }
        let single = |at: usize| {
            self.summed(weights, &input.clone().narrow(0, at, 1), &probe.clone().narrow(0, at, 1), 1e9).1
        };
        let singles: Vec<Vec<f64>> = (0..BATCH).map(single).collect();
        let mut norms: Vec<f64> = singles.iter().map(|single| norm(single)).collect();
        norms.sort_by(f64::total_cmp);
        let bound = norms[BATCH / 2];
        let mut want = vec![0.0; singles[0].len()];
        for single in &singles {
            let factor = (bound / norm(single)).min(1.0);
            want.iter_mut().zip(single).for_each(|(sum, value)| *sum += factor * value);
        }
        let (_, got) = self.summed(weights, input, probe, bound);
        // Norms are rounded up by 1e-5 and factors are f32.
        let distance = relative_distance(&got, &want);
        assert!(distance < 2e-5, "{distance}");
    }
}

fn double<const D: usize>(host: Vec<f64>, shape: [usize; D]) -> Tensor<Flex, D> {
    Tensor::from_data(TensorData::new(host, shape), (&FlexDevice, DType::F64))
}

#[test]
fn root_mean_square_norm() {
    for unit_offset in [false, true] {
        let layer = RmsNorm { gain: ParamId(0), epsilon: 1e-2, unit_offset };
        Case {
            params: vec![vec![6]],
            input: [4, 6],
            forward: |weights: &_, input| layer.forward(weights, input).0,
            backward: |weights: &_, input, grad, records: &mut _| {
                let saved = layer.forward(weights, input).1;
                layer.backward(weights, saved, grad, records)
            },
        }
        .check();
    }
}

/// Oracle: arithmetic by hand, for [1, −2, 3, 0.5] with gain [1, 0.5, −1, 2] and epsilon 1e-6:
/// mean square 3.5625, root 1.887459.
#[test]
fn root_mean_square_norm_of_a_row_worked_by_hand() {
    let specs: Arc<[ParamSpec]> =
        [ParamSpec { name: "gain".into(), shape: vec![4], initial: Initial::Constant(1.0) }].into();
    let mut stream = TestRng::from_seed(0).stream(Purpose::Data, 0, 0);
    let mut weights = Weights::<Flex>::initialize(specs, &mut stream, &FlexDevice);
    weights.replace(vec![Tensor::from_floats([1.0, 0.5, -1.0, 2.0], &FlexDevice)]);
    let row = Tensor::<Flex, 1>::from_floats([1.0, -2.0, 3.0, 0.5], &FlexDevice).reshape([1, 1, 4]);
    let values = |unit_offset| {
        let layer = RmsNorm { gain: ParamId(0), epsilon: 1e-6, unit_offset };
        to_host_f64(layer.forward(&weights, row.clone()).0)
    };
    let root = 3.562_501_f64.sqrt();
    let want = [1.0 / root, -1.0 / root, -3.0 / root, 1.0 / root];
    assert!(relative_distance(&values(false), &want) < 1e-6);
    let want = [2.0 / root, -3.0 / root, 0.0, 1.5 / root];
    assert!(relative_distance(&values(true), &want) < 1e-6);
}

#[test]
fn dense() {
    // Widths that make either form of the norm the cheaper one.
    for (seq, d_in, d_out) in [(4, 3, 2), (2, 7, 5)] {
        for (stored, shape) in [(Stored::OutIn, vec![d_out, d_in]), (Stored::InOut, vec![d_in, d_out])] {
            for bias in [None, Some(ParamId(1))] {
                let layer = Linear { weight: ParamId(0), bias, stored };
                let mut params = vec![shape.clone()];
                params.extend(bias.map(|_| vec![d_out]));
                Case {
                    params,
                    input: [seq, d_in],
                    forward: |weights: &_, input| layer.forward(weights, input),
                    backward: |weights: &_, input, grad, records: &mut _| {
                        layer.backward(weights, input, grad, records)
                    },
                }
                .check();
            }
        }
    }
}

fn projection(weight: usize) -> Linear {
    Linear { weight: ParamId(weight), bias: None, stored: Stored::OutIn }
}

#[test]
fn grouped_attention() {
    // As many key heads as query heads, fewer, and one for all; heads wider than d/heads.
    for (heads, kv_heads, d_head) in [(2, 2, 2), (4, 2, 2), (3, 1, 4)] {
        let d = 5;
        let layer = GroupedAttention {
            query: projection(0),
            key: projection(1),
            value: projection(2),
            output: projection(3),
            heads,
            kv_heads,
            rotary: Rotary { base: 100.0, d_head },
        };
        Case {
            params: vec![
                vec![heads * d_head, d],
                vec![kv_heads * d_head, d],
                vec![kv_heads * d_head, d],
                vec![d, heads * d_head],
            ],
            input: [4, d],
            forward: |weights: &_, input| layer.forward(weights, input).0,
            backward: |weights: &_, input, grad, records: &mut _| {
                let saved = layer.forward(weights, input).1;
                layer.backward(weights, saved, grad, records)
            },
        }
        .check();
    }
}

#[test]
fn gated_feed_forward() {
    let layer = GatedFeedForward { gate: projection(0), up: projection(1), down: projection(2) };
    Case {
        params: vec![vec![6, 4], vec![6, 4], vec![4, 6]],
        input: [3, 4],
        forward: |weights: &_, input| layer.forward(weights, input).0,
        backward: |weights: &_, input, grad, records: &mut _| {
            let saved = layer.forward(weights, input).1;
            layer.backward(weights, saved, grad, records)
        },
    }
    .check();
}

#[test]
fn history_of_tokens() {
    for length in [1, 3, 9] {
        let layer = ContextConcat { length };
        Case {
            params: Vec::new(),
            input: [5, 2],
            forward: |_: &_, input| layer.forward(input),
            backward: |_: &_, _, grad, _: &mut _| layer.backward(grad),
        }
        .check();
    }
}

/// The product of a turned query and a turned key depends on their distance alone, and a turn keeps lengths.
#[test]
fn rotary_products_depend_on_the_distance_alone() {
    let rotary = Rotary { base: 50.0, d_head: 6 };
    let row = |values: [f64; 6]| double([values; 9].concat(), [1, 1, 9, 6]);
    let query = row([1.0, -2.0, 0.5, 3.0, 0.1, -0.7]);
    let key = row([0.3, 1.1, -1.0, 0.2, 2.0, 0.9]);
    let angles = rotary.angles(9, &query);
    let products = angles.turn(query.clone()).matmul(angles.turn(key).transpose());
    let products = to_host_f64(products);
    let at = |s: usize, t: usize| products[s * 9 + t];
    for shift in 1..6 {
        // Angles are rounded to f32.
        assert!((at(3, 1) - at(3 + shift, 1 + shift)).abs() < 1e-5);
    }
    assert!((at(3, 1) - at(3, 2)).abs() > 0.1);
    let back = angles.turn_back(angles.turn(query.clone()));
    assert!(relative_distance(&to_host_f64(back), &to_host_f64(query)) < 1e-6);
}
