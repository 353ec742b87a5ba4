//! Tests of each layer's backward pass against central differences in double precision, and of its
//! records against a loop over single examples.

use std::cell::RefCell;
use std::sync::Arc;

use mechanisms::{PrivacyRng, Purpose, TestRng};

use crate::dp::clip;
use crate::dp::reference::{flatten, norm, relative_distance, shifted};
use network::nn::*;
use network::tensor::{DType, Flex, FlexDevice, FloatDType, Int, Tensor, TensorData, to_host_f64};

const BATCH: usize = 3;

/// An operator, or several, as a function of a pass and an input, and the shapes of its parameters.
struct Case<F> {
    params: Vec<Vec<usize>>,
    /// Shape of one example's input.
    input: [usize; 2],
    forward: F,
}

impl<F> Case<F>
where
    F: Fn(&mut ForwardPass<'_, Flex>, Var<Flex>) -> Var<Flex>,
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
                initial: Initializer::Normal { std: 0.5 },
            })
            .collect();
        let weights = Weights::<Flex>::initialize(specs, &mut stream, &FlexDevice).cast(FloatDType::F64);
        let mut normal = |shape: [usize; 3]| {
            let mut host = vec![0.0_f32; shape.iter().product()];
            stream.fill_gaussian_f32(&mut host, 1.0);
            double(host.into_iter().map(f64::from).collect(), shape)
        };
        let input = normal([BATCH, self.input[0], self.input[1]]);
        let probe = normal(self.value(&weights, input.clone()).dims());
        self.gradients_equal_central_differences(&weights, &input, &probe);
        self.records_equal_the_loop(&weights, &input, &probe);
    }

    fn value(&self, weights: &Weights<Flex>, input: Tensor<Flex, 3>) -> Tensor<Flex, 3> {
        (self.forward)(&mut ForwardPass::measuring(weights), Var::constant(input)).into_value()
    }

    fn loss(&self, weights: &Weights<Flex>, input: &Tensor<Flex, 3>, probe: &Tensor<Flex, 3>) -> f64 {
        to_host_f64((self.value(weights, input.clone()) * probe.clone()).sum())[0]
    }

    /// Returns the gradient of the input, and the clipped sum.
    fn summed(
        &self,
        weights: &Weights<Flex>,
        input: &Tensor<Flex, 3>,
        probe: &Tensor<Flex, 3>,
        bound: f64,
    ) -> (Tensor<Flex, 3>, Vec<f64>) {
        let input_grad = RefCell::new(None);
        let mut records = Vec::new();
        let mut pass = ForwardPass::training(weights, false);
        let from = pass.note(input.clone(), true, |grad, _| *input_grad.borrow_mut() = Some(grad));
        let output = (self.forward)(&mut pass, from);
        pass.seed(output, |_| probe.clone());
        pass.backward(&mut |part| records.extend(part));
        let sum = flatten(clip(records, input.dims()[0], bound, weights.specs()));
        (input_grad.into_inner().unwrap(), sum)
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
                let moved = |shift| self.loss(&shifted(weights, index, element, shift), input, probe);
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
            forward: |pass: &mut ForwardPass<'_, _>, input| layer.forward(pass, input),
        }
        .check();
    }
}

#[test]
fn layer_norm() {
    let layer = LayerNorm { gain: ParamId(0), bias: Some(ParamId(1)), epsilon: 1e-2 };
    let forward = |pass: &mut ForwardPass<'_, _>, input| layer.forward(pass, input);
    Case { params: vec![vec![6], vec![6]], input: [4, 6], forward }.check();
}

/// Oracle: arithmetic by hand, for [1, −2, 3, 0.5] with gain [1, 0.5, −1, 2] and epsilon 1e-6:
/// mean square 3.5625, root 1.887459.
#[test]
fn root_mean_square_norm_of_a_row_worked_by_hand() {
    let specs: Arc<[ParamSpec]> =
        [ParamSpec { name: "gain".into(), shape: vec![4], initial: Initializer::Constant(1.0) }].into();
    let mut stream = TestRng::from_seed(0).stream(Purpose::Data, 0, 0);
    let mut weights = Weights::<Flex>::initialize(specs, &mut stream, &FlexDevice);
    weights.replace(vec![Tensor::from_floats([1.0, 0.5, -1.0, 2.0], &FlexDevice)]);
    let row = Tensor::<Flex, 1>::from_floats([1.0, -2.0, 3.0, 0.5], &FlexDevice).reshape([1, 1, 4]);
    let values = |unit_offset| {
        let layer = RmsNorm { gain: ParamId(0), epsilon: 1e-6, unit_offset };
        let output = layer.forward(&mut ForwardPass::measuring(&weights), Var::constant(row.clone()));
        to_host_f64(output.into_value())
    };
    let root = 3.562_501_f64.sqrt();
    let want = [1.0 / root, -1.0 / root, -3.0 / root, 1.0 / root];
    assert!(relative_distance(&values(false), &want) < 1e-6);
    let want = [2.0 / root, -3.0 / root, 0.0, 1.5 / root];
    assert!(relative_distance(&values(true), &want) < 1e-6);
}

#[test]
fn linear() {
    // With the first widths one form of the norm is cheaper, with the second the other.
    for (seq, d_in, d_out) in [(4, 3, 2), (2, 7, 5)] {
        for (stored, shape) in [(Stored::OutIn, vec![d_out, d_in]), (Stored::InOut, vec![d_in, d_out])] {
            for bias in [None, Some(ParamId(1))] {
                let layer = Linear { weight: ParamId(0), bias, stored };
                let mut params = vec![shape.clone()];
                params.extend(bias.map(|_| vec![d_out]));
                let forward = |pass: &mut ForwardPass<'_, _>, input| layer.forward(pass, input);
                Case { params, input: [seq, d_in], forward }.check();
            }
        }
    }
}

fn projection(weight: usize) -> Linear {
    Linear { weight: ParamId(weight), bias: None, stored: Stored::OutIn }
}

fn attention(heads: DotProductAttention) -> MultiHeadAttention {
    let [query, key, value, output] = [0, 1, 2, 3].map(projection);
    MultiHeadAttention { query, key, value, output, heads }
}

#[test]
fn grouped_attention() {
    // The cases have as many key heads as query heads, fewer, and one for all, and heads wider than d/heads.
    for (heads, kv_heads, d_head) in [(2, 2, 2), (4, 2, 2), (3, 1, 4)] {
        let d = 5;
        let rotary = Some(Rotary {
            base: 100.0,
            d_head,
            scaling: RotaryScaling::Linear(2.0),
            pairs: RotaryPairs::Halves,
        });
        let layer =
            attention(DotProductAttention { kv_heads, rotary, ..DotProductAttention::new(heads, d_head) });
        let shapes =
            [[heads * d_head, d], [kv_heads * d_head, d], [kv_heads * d_head, d], [d, heads * d_head]];
        Case {
            params: shapes.map(Vec::from).to_vec(),
            input: [4, d],
            forward: |pass: &mut ForwardPass<'_, _>, input: Var<_>| {
                layer.forward(pass, input.clone(), input, &AttentionMask::causal(), None)
            },
        }
        .check();
    }
}

/// PITFALLS 15: the layers' gradients of a shared bias are summed before they are squared.
#[test]
fn attention_with_a_relative_bias_that_two_layers_share() {
    let heads = DotProductAttention { scale: 1.0, ..DotProductAttention::new(2, 3) };
    let first = attention(heads);
    let [query, key, value, output] = [4, 5, 6, 7].map(projection);
    let second = MultiHeadAttention { query, key, value, output, heads };
    let bias = RelativeBias { table: ParamId(8), buckets: 8, max_distance: 9, bidirectional: true };
    let of_layer = [[6, 5], [6, 5], [6, 5], [5, 6]];
    let mut params: Vec<Vec<usize>> = [of_layer, of_layer].concat().into_iter().map(Vec::from).collect();
    params.push(vec![8, 2]);
    Case {
        params,
        input: [4, 5],
        forward: |pass: &mut ForwardPass<'_, _>, input: Var<_>| {
            let bias = bias.forward(pass, 4, 4);
            let mask = AttentionMask { lengths: None, causal: false };
            let middle = first.forward(pass, input.clone(), input, &mask, Some(bias.clone()));
            second.forward(pass, middle.clone(), middle, &mask, Some(bias))
        },
    }
    .check();
}

#[test]
fn gated_feed_forward() {
    for activation in [Gate::GeluTanh, Gate::Silu] {
        let [gate, up, down] = [0, 1, 2].map(projection);
        let layer = GatedFeedForward { gate, up, down, activation, drops_activations: false };
        Case {
            params: vec![vec![6, 4], vec![6, 4], vec![4, 6]],
            input: [3, 4],
            forward: |pass: &mut ForwardPass<'_, _>, input| layer.forward(pass, input),
        }
        .check();
    }
}

#[test]
fn activations() {
    for activation in [Activation::Gelu, Activation::GeluTanh, Activation::Tanh, Activation::Relu] {
        let forward = |pass: &mut ForwardPass<'_, _>, input| activation.forward(pass, input);
        Case { params: Vec::new(), input: [3, 4], forward }.check();
    }
}

#[test]
fn context_of_tokens() {
    for length in [1, 3, 9] {
        let layer = ContextConcat { length };
        let forward = |pass: &mut ForwardPass<'_, _>, input| layer.forward(pass, input);
        Case { params: Vec::new(), input: [5, 2], forward }.check();
    }
}

#[test]
fn chosen_positions() {
    let rows = |pass: &mut ForwardPass<'_, _>, input| row(pass, input, 2);
    Case { params: Vec::new(), input: [5, 2], forward: rows }.check();
    let forward = |pass: &mut ForwardPass<'_, Flex>, input: Var<Flex>| {
        let batch = input.dims()[0];
        let places = Tensor::<Flex, 1, Int>::from_ints([4, 0, 4], &FlexDevice).reshape([1, 3]);
        gather(pass, input, places.expand([batch, 3]))
    };
    Case { params: Vec::new(), input: [5, 2], forward }.check();
}

#[test]
fn mean_of_positions() {
    let forward = |pass: &mut ForwardPass<'_, Flex>, input: Var<Flex>| {
        let lengths = Tensor::<Flex, 1, Int>::from_ints([3], &FlexDevice).expand([input.dims()[0]]);
        mean(pass, input, lengths)
    };
    Case { params: Vec::new(), input: [5, 2], forward }.check();
}

/// Oracle: by hand. Padding does not count.
#[test]
fn a_mean_of_positions_is_over_the_length_of_each_row() {
    let weights = Weights::<Flex>::new(Vec::new().into(), Vec::new());
    let input = double(vec![1.0, 10.0, 3.0, 20.0, 8.0, 30.0, 5.0, 50.0, 7.0, 0.0, 9.0, 0.0], [2, 3, 2]);
    let lengths = Tensor::<Flex, 1, Int>::from_ints([3, 1], &FlexDevice);
    let means = mean(&mut ForwardPass::measuring(&weights), Var::constant(input), lengths).into_value();
    assert_eq!(means.dims(), [2, 1, 2]);
    assert_eq!(to_host_f64(means), [4.0, 20.0, 5.0, 50.0]);
}

/// A value used three times, once in a block: its gradient is the sum of three.
#[test]
fn a_value_that_is_used_several_times_gets_the_sum_of_its_gradients() {
    let layer = projection(0);
    Case {
        params: vec![vec![4, 4]],
        input: [3, 4],
        forward: |pass: &mut ForwardPass<'_, Flex>, input: Var<Flex>| {
            let inner = pass.block([input.clone()], move |pass, [input]| {
                let output = Activation::GeluTanh.forward(pass, input.clone());
                add(pass, output, input)
            });
            let mapped = layer.forward(pass, input);
            let sum = add(pass, mapped, inner);
            scale(pass, sum, 1.5)
        },
    }
    .check();
}
