//! Tests of each fused kernel against its portable definition in double precision.

mod attention;
mod generation;

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};

use super::super::portable;
use super::*;
use crate::tensor::{FlexDevice, TensorData, to_host, to_host_f64};

/// A size that is no multiple of the vector width.
const SEQ: usize = 5;
const D: usize = 19;

struct Source(Stream);

impl Source {
    fn new() -> Self {
        Self(TestRng::from_seed(6).stream(Purpose::Data, 0, 0))
    }

    /// Returns the same normal values in single and in double precision.
    fn pair<const N: usize>(&mut self, shape: [usize; N]) -> (Tensor<Flex, N>, Tensor<Flex, N>) {
        let mut host = vec![0.0_f32; shape.iter().product()];
        self.0.fill_gaussian_f32(&mut host, 1.5);
        let single: Tensor<Flex, N> = Tensor::from_data(TensorData::new(host, shape), &FlexDevice);
        (single.clone(), single.cast(DType::F64))
    }

    fn targets(&mut self, rows: usize, below: u64) -> Tensor<Flex, 1, Int> {
        let host: Vec<i32> = (0..rows).map(|_| self.0.below(below) as i32).collect();
        Tensor::from_data(TensorData::new(host, [rows]), &FlexDevice)
    }
}

#[track_caller]
fn agree<const N: usize>(fused: Tensor<Flex, N>, portable: Tensor<Flex, N>) {
    assert_eq!((fused.dims(), fused.dtype(), portable.dtype()), (portable.dims(), DType::F32, DType::F64));
    let (fused, portable) = (to_host_f64(fused), to_host_f64(portable));
    let largest = portable.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let worst = fused.iter().zip(&portable).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    // A few dozen roundings of 6e-8.
    assert!(worst <= 2e-6 * largest && largest > 0.0, "{worst} of {largest}");
}

#[test]
fn normalization_and_its_gradients() {
    let mut source = Source::new();
    let (input, input64) = source.pair([3, SEQ, D]);
    let (gain, gain64) = source.pair([D]);
    let (bias, bias64) = source.pair([D]);
    let (grad, grad64) = source.pair([3, SEQ, D]);
    let [output, normalized, reciprocal] = Flex::normalize(input, gain.clone(), bias, 1e-5);
    let [output64, normalized64, reciprocal64] = portable::normalize(input64, gain64.clone(), bias64, 1e-5);
    agree(output, output64);
    agree(normalized.clone(), normalized64.clone());
    agree(reciprocal.clone(), reciprocal64.clone());
    let (input_grad, params) = Flex::normalize_backward(grad, normalized, reciprocal, gain);
    let (input_grad64, params64) = portable::normalize_backward(grad64, normalized64, reciprocal64, gain64);
    agree(input_grad, input_grad64);
    for (param, param64) in params.into_iter().zip(params64) {
        agree(param, param64);
    }
}

#[test]
fn root_mean_square_normalization_and_its_gradients() {
    let mut source = Source::new();
    let (input, input64) = source.pair([3, SEQ, D]);
    let (gain, gain64) = source.pair([D]);
    let (grad, grad64) = source.pair([3, SEQ, D]);
    let [output, normalized, reciprocal] = Flex::rms_normalize(input, gain.clone(), 1e-6);
    let [output64, normalized64, reciprocal64] = portable::rms_normalize(input64, gain64.clone(), 1e-6);
    agree(output, output64);
    agree(normalized.clone(), normalized64.clone());
    agree(reciprocal.clone(), reciprocal64.clone());
    let (input_grad, gains) = Flex::rms_normalize_backward(grad, normalized, reciprocal, gain);
    let (input_grad64, gains64) =
        portable::rms_normalize_backward(grad64, normalized64, reciprocal64, gain64);
    agree(input_grad, input_grad64);
    agree(gains, gains64);
}

#[test]
fn both_forms_of_gelu_and_their_gradients() {
    let mut source = Source::new();
    let (input, input64) = source.pair([3, SEQ, D]);
    let (grad, grad64) = source.pair([3, SEQ, D]);
    agree(Flex::gelu_new(input.clone()), portable::gelu_new(input64.clone()));
    agree(Flex::gelu_erf(input.clone()), portable::gelu_erf(input64.clone()));
    agree(
        Flex::gelu_new_backward(input.clone(), grad.clone()),
        portable::gelu_new_backward(input64.clone(), grad64.clone()),
    );
    agree(Flex::gelu_erf_backward(input, grad), portable::gelu_erf_backward(input64, grad64));
}

#[test]
fn gated_gelu_and_its_gradients() {
    let mut source = Source::new();
    let (gate, gate64) = source.pair([3, SEQ, D]);
    let (up, up64) = source.pair([3, SEQ, D]);
    let (grad, grad64) = source.pair([3, SEQ, D]);
    agree(Flex::gelu_gate(gate.clone(), up.clone()), portable::gelu_gate(gate64.clone(), up64.clone()));
    let fused = Flex::gelu_gate_backward(gate, up, grad);
    for (fused, portable) in fused.into_iter().zip(portable::gelu_gate_backward(gate64, up64, grad64)) {
        agree(fused, portable);
    }
}

#[test]
fn gated_silu_and_its_gradients() {
    let mut source = Source::new();
    let (gate, gate64) = source.pair([3, SEQ, D]);
    let (up, up64) = source.pair([3, SEQ, D]);
    let (grad, grad64) = source.pair([3, SEQ, D]);
    agree(Flex::silu_gate(gate.clone(), up.clone()), portable::silu_gate(gate64.clone(), up64.clone()));
    let fused = Flex::silu_gate_backward(gate, up, grad);
    for (fused, portable) in fused.into_iter().zip(portable::silu_gate_backward(gate64, up64, grad64)) {
        agree(fused, portable);
    }
}

#[test]
fn threads_change_no_bit_of_gates_and_losses() {
    let mut source = Source::new();
    // Several pieces, the last of which is shorter.
    let [gate, up, grad] = [(); 3].map(|()| source.pair([3, 50, 999]).0);
    let (logits, weights) = (source.pair([301, 700]).0, source.pair([301]).0);
    let targets = source.targets(301, 700);
    let on = |threads: usize| {
        Flex::on_threads(threads, || {
            let [to_gate, to_up] = Flex::silu_gate_backward(gate.clone(), up.clone(), grad.clone());
            let losses = Flex::token_nll(logits.clone(), targets.clone());
            let to_logits = Flex::cross_entropy_backward(logits.clone(), targets.clone(), weights.clone());
            let gates =
                [Flex::silu_gate(gate.clone(), up.clone()), Flex::gelu_new(gate.clone()), to_gate, to_up];
            (gates.map(to_host), to_host(losses), to_host(to_logits))
        })
    };
    let one = on(1);
    assert!([2, 3, 8].into_iter().all(|threads| on(threads) == one));
}

#[test]
fn turns_by_angles() {
    let mut source = Source::new();
    let (values, values64) = source.pair([2, SEQ, 3, 14]);
    let (cos, cos64) = source.pair([SEQ, 7]);
    let (sin, sin64) = source.pair([SEQ, 7]);
    // A view, as heads split off a projection are.
    let (values, values64) = (values.swap_dims(1, 2), values64.swap_dims(1, 2));
    agree(Flex::rotate(values, cos, sin), portable::rotate(values64, cos64, sin64));
}

#[test]
fn contexts_and_their_gradients() {
    let mut source = Source::new();
    // Shorter than, as long as and longer than the sequence; and the position alone.
    for length in [1, 3, SEQ, SEQ + 4] {
        let (values, values64) = source.pair([2, SEQ, 3]);
        let (grad, grad64) = source.pair([2, SEQ, 3 * length]);
        agree(Flex::context_concat(values, length), portable::context_concat(values64, length));
        agree(Flex::context_concat_backward(grad, length), portable::context_concat_backward(grad64, length));
    }
}

#[test]
fn causal_softmax_and_its_gradient() {
    let mut source = Source::new();
    for queries in [D, 4, 1] {
        let (scores, scores64) = source.pair([2, 3, queries, D]);
        let (grad, grad64) = source.pair([2, 3, queries, D]);
        let probabilities = Flex::causal_softmax(scores, 0.7);
        let probabilities64 = portable::causal_softmax(scores64, 0.7);
        agree(probabilities.clone(), probabilities64.clone());
        let fused = Flex::softmax_backward(probabilities, grad, 0.7);
        agree(fused, portable::softmax_backward(probabilities64, grad64, 0.7));
    }
}

/// Queries at the end of a sequence get the probabilities that they get in the whole sequence.
#[test]
fn causal_softmax_of_the_last_queries_is_that_of_the_sequence() {
    let mut source = Source::new();
    let (scores, _) = source.pair([2, 3, D, D]);
    let of_sequence = Flex::causal_softmax(scores.clone(), 0.7).narrow(2, D - 4, 4);
    assert_eq!(to_host_f64(Flex::causal_softmax(scores.narrow(2, D - 4, 4), 0.7)), to_host_f64(of_sequence));
}

#[test]
fn heads_are_merged() {
    let mut source = Source::new();
    let parts: Vec<_> = (0..3).map(|_| source.pair([2, 3, SEQ, 4])).collect();
    let (single, double) = parts.into_iter().unzip();
    agree(Flex::merge_heads(single), portable::merge_heads(double));
}

#[test]
fn likelihood_and_its_gradient() {
    let mut source = Source::new();
    let (logits, logits64) = source.pair([SEQ, 37]);
    let (weights, weights64) = source.pair([SEQ]);
    let targets = source.targets(SEQ, 37);
    agree(
        Flex::token_nll(logits.clone(), targets.clone()),
        portable::token_nll(logits64.clone(), targets.clone()),
    );
    let fused = Flex::cross_entropy_backward(logits, targets.clone(), weights);
    agree(fused, portable::cross_entropy_backward(logits64, targets, weights64));
}

#[test]
fn sums_scalings_and_dots() {
    let mut source = Source::new();
    let (values, values64) = source.pair([3, SEQ, D]);
    let (factors, factors64) = source.pair([3]);
    agree(Flex::sum_positions(values.clone()), portable::sum_positions(values64.clone()));
    let shared = values.clone();
    agree(
        Flex::scale_examples(values.clone(), factors),
        portable::scale_examples(values64.clone(), factors64),
    );
    assert_eq!(to_host_f64(shared), to_host_f64(values.clone()), "what another holds must not change");
    let (long, long64) = source.pair([2, 1_300]);
    let (other, other64) = source.pair([2, 1_300]);
    agree(Flex::dots(long, other), portable::dots(long64, other64));
    // A view: its storage is neither its own nor in row order.
    let view = values.swap_dims(1, 2).narrow(1, 3, 7);
    agree(Flex::sum_positions(view), portable::sum_positions(values64.swap_dims(1, 2).narrow(1, 3, 7)));
}

#[test]
fn a_row_that_is_no_number_spoils_no_other() {
    let mut source = Source::new();
    let (logits, _) = source.pair([2, 37]);
    let poison = Tensor::<Flex, 2>::from_floats([[f32::NAN], [0.0]], &FlexDevice);
    let grad = Flex::cross_entropy_backward(
        logits + poison,
        source.targets(2, 37),
        Tensor::from_floats([1.0, 1.0], &FlexDevice),
    );
    let grad = to_host_f64(grad);
    assert!(grad[..37].iter().all(|x| x.is_nan()) && grad[37..].iter().all(|x| x.is_finite()));
}

#[test]
fn squared_norms_of_products_and_tables() {
    let mut source = Source::new();
    // Sequence lengths around the block of 4 rows, widths around the vector width, both forms of the norm.
    for (seq, d_in, d_out) in [(1, 40, 33), (3, 33, 16), (4, 16, 48), (5, 64, 19), (9, 20, 70), (30, 3, 4)] {
        let (input, input64) = source.pair([3, seq, d_in]);
        let (grad, grad64) = source.pair([3, seq, d_out]);
        agree(Flex::product_squares(input, grad), portable::product_squares(input64, grad64));
    }
    let (grad, grad64) = source.pair([2, SEQ, D]);
    let (hidden, hidden64) = source.pair([2, SEQ, D]);
    let (logits_grad, logits_grad64) = source.pair([2, SEQ, 4]);
    // Four tokens at five positions: some repeat.
    let tokens: Tensor<Flex, 2, Int> = source.targets(2 * SEQ, 4).reshape([2, SEQ]);
    let fused = Flex::lookup_squares(tokens.clone(), grad.clone());
    agree(fused, portable::lookup_squares(tokens.clone(), grad64.clone()));
    let fused = Flex::lookup_head_dots(tokens.clone(), grad, hidden, logits_grad);
    agree(fused, portable::lookup_head_dots(tokens, grad64, hidden64, logits_grad64));
}

#[test]
fn norms_of_gradients_that_nearly_cancel_are_not_too_low() {
    let mut source = Source::new();
    for cancel in [1e-1_f32, 1e-2, 1e-3] {
        // Two positions with almost the same input and opposite gradients, eight times over.
        let (input, _) = source.pair([4, 1, 200]);
        let (grad, _) = source.pair([4, 1, 300]);
        let (noise, _) = source.pair([4, 16, 200]);
        let signs: Vec<f32> = (0..16).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let signs: Tensor<Flex, 3> = Tensor::from_data(TensorData::new(signs, [1, 16, 1]), &FlexDevice);
        let (input, grad) = (input + noise * cancel, grad * signs);
        let exact = input.clone().cast(DType::F64).transpose().matmul(grad.clone().cast(DType::F64));
        let exact = to_host_f64(exact.square().sum_dim(1).sum_dim(2));
        let got = to_host_f64(Flex::product_squares(input, grad));
        for (got, exact) in got.into_iter().zip(exact) {
            assert!(got >= exact, "{cancel}: {got} < {exact}");
        }
    }
}

/// Masks by length, future and bias in all combinations. Masked keys have probability 0; the last query belongs to the last key.
#[test]
fn masked_softmax_attends_to_unmasked_keys_only() {
    let mut source = Source::new();
    let lengths: Tensor<Flex, 1, Int> = Tensor::from_data(TensorData::from([1_i32, 17, 19]), &FlexDevice);
    for (with_lengths, with_bias, causal, window) in [
        (false, false, true, None),
        (true, false, false, None),
        (true, true, false, None),
        (false, true, true, None),
        (true, true, true, None),
        (false, false, true, Some(1)),
        (false, true, true, Some(4)),
        (false, true, false, Some(3)),
    ] {
        let (scores, scores64) = source.pair([3, 2, SEQ, D]);
        let (bias, bias64) = source.pair([2, SEQ, D]);
        let (bias, bias64) = (with_bias.then_some(bias), with_bias.then_some(bias64));
        let lengths = with_lengths.then(|| lengths.clone());
        let fused =
            Flex::masked_softmax(scores, Mask { bias, lengths: lengths.clone(), causal, window }, 0.6);
        let portable =
            portable::masked_softmax(scores64, Mask { bias: bias64, lengths, causal, window }, 0.6);
        agree(fused.clone(), portable);
        let probabilities = to_host_f64(fused);
        for (row, probabilities) in probabilities.chunks_exact(D).enumerate() {
            let length = if with_lengths { [1, 17, 19][row / SEQ / 2] } else { D };
            let own = D - SEQ + row % SEQ;
            let seen = if causal { length.min(own + 1) } else { length };
            let sees = |key: usize| key < seen && window.is_none_or(|window| key.abs_diff(own) < window);
            let mut each = probabilities.iter().enumerate();
            assert!(each.all(|(key, &probability)| (probability > 0.0) == sees(key)));
            assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn sums_along_diagonals_are_by_distance() {
    let mut source = Source::new();
    for keys in [D, 3] {
        let (values, values64) = source.pair([2, 3, SEQ, keys]);
        let portable = portable::diagonal_sums(values64.clone());
        agree(Flex::diagonal_sums(values), portable.clone());
        let (values, sums) = (to_host_f64(values64), to_host_f64(portable));
        let distances = SEQ + keys - 1;
        // By the definition, for the last example and head.
        let (values, sums) = (&values[values.len() - SEQ * keys..], &sums[sums.len() - distances..]);
        for (at, sum) in sums.iter().enumerate() {
            let pairs = (0..SEQ).filter_map(|query| Some((query, (at + query).checked_sub(SEQ - 1)?)));
            let on = pairs.filter(|&(_, key)| key < keys).map(|(query, key)| values[query * keys + key]);
            assert!((on.sum::<f64>() - sum).abs() < 1e-9, "{at}");
        }
    }
}

/// There are more look-ups in the encoder and decoder than places with logits, or fewer.
#[test]
fn cross_terms_of_a_tied_table_take_any_number_of_look_ups() {
    let mut source = Source::new();
    for (looked_up, targets) in [(9, 4), (3, 8)] {
        let tokens = source.targets(2 * looked_up, 7).reshape([2, looked_up]);
        let (grad, grad64) = source.pair([2, looked_up, D]);
        let (hidden, hidden64) = source.pair([2, targets, D]);
        let (logits, logits64) = source.pair([2, targets, 7]);
        let fused = Flex::lookup_head_dots(tokens.clone(), grad, hidden, logits);
        agree(fused, portable::lookup_head_dots(tokens, grad64, hidden64, logits64));
    }
}

#[test]
fn sums_of_weighted_rows() {
    let mut source = Source::new();
    // More than one stretch, the last one not whole.
    let (values, values64) = source.pair([5, 9001]);
    let (weights, weights64) = source.pair([5]);
    agree(Flex::weighted_sum(values, weights), portable::weighted_sum(values64, weights64));
}

/// Number of parameters that is enough for several threads and not a multiple of their pieces.
const PARAMETERS: usize = 3 * (1 << 16) + 19;

/// Oracle: rounding to the nearest integer by the standard library, ties to even.
#[test]
fn values_are_rounded_to_the_grid_and_added_as_integers() {
    let mut source = Source::new();
    let (values, values64) = source.pair([PARAMETERS]);
    let unit = 2.0_f64.powi(-20);
    let integers: Vec<i64> = crate::tensor::to_host_f64(values64.clone())
        .into_iter()
        .map(|value| 5 + (f64::from(value as f32) / unit).round_ties_even() as i64)
        .collect();
    for add in [Flex::add_on_grid, portable::add_on_grid] {
        let mut sums = vec![5; PARAMETERS];
        assert!(add(values.clone(), unit, &mut sums));
        assert!(sums == integers);
    }
}

#[test]
fn what_does_not_fit_the_integers_is_refused() {
    let bad = [f32::NAN, f32::INFINITY, -f32::INFINITY, 2.0_f32.powi(51), -2.0_f32.powi(60)];
    for (value, start) in bad.map(|value| (value, 0)).into_iter().chain([(1.0, 1 << 62), (-1.0, -(1 << 62))])
    {
        for add in [Flex::add_on_grid, portable::add_on_grid] {
            let mut sums = vec![start; 100];
            sums[..99].fill(0);
            let mut values = vec![1.0; 100];
            values[99] = value;
            let values = Tensor::<Flex, 1>::from_floats(values.as_slice(), &FlexDevice);
            assert!(!add(values, 1.0, &mut sums), "{value} {start}");
        }
    }
    assert!(!Flex::add_on_grid(Tensor::zeros([3], &FlexDevice), 1.0, &mut [0; 2]), "another length");
}

/// Oracle: conversion to integers by the standard library, which rounds toward zero. Some integers have squares that do not fit
/// 64 bits together.
#[test]
fn values_are_rounded_toward_zero_and_their_squares_are_taken_from_the_room() {
    let mut source = Source::new();
    let (values, values64) = source.pair([PARAMETERS]);
    let host = crate::tensor::to_host_f64(values64);
    let row = values.clone().unsqueeze::<2>();
    for factor in [1e3, -7.5e5, 2.0_f64.powi(33) / 3.0] {
        let integers: Vec<i64> =
            host.iter().map(|&value| (f64::from(value as f32) * factor) as i64).collect();
        let square: u128 = integers.iter().map(|integer| u128::from(integer.unsigned_abs()).pow(2)).sum();
        for add in [Flex::add_truncated, portable::add_truncated] {
            let mut sums = vec![5; PARAMETERS];
            assert_eq!(add(row.clone(), factor, square, &mut sums, PARAMETERS), 0);
            assert!(sums.iter().zip(&integers).all(|(sum, integer)| *sum == 5 + integer), "{factor}");
            // One less, and some integers stay out.
            let mut sums = vec![0; PARAMETERS];
            let left = add(row.clone(), factor, square - 1, &mut sums, PARAMETERS);
            let added: u128 = sums.iter().map(|integer| u128::from(integer.unsigned_abs()).pow(2)).sum();
            assert!(added == square - 1 - left && sums != integers, "{factor}");
        }
    }
    let direct: f64 = host.iter().map(|value| value * value).sum();
    // Sums of n terms that are not negative differ by at most 2n roundings of 1.1e-16.
    assert!((Flex::square_sum(values) / direct - 1.0).abs() < 4.4e-11);
}

/// What is not finite, and what is 2⁵¹ or more, is left out together with its stretch.
#[test]
fn values_that_have_no_integer_are_left_out() {
    for bad in [f32::NAN, f32::INFINITY, -f32::INFINITY, 2.0_f32.powi(51), -2.0_f32.powi(90)] {
        for add in [Flex::add_truncated, portable::add_truncated] {
            let mut values = vec![1.0; 3000];
            values[1500] = bad;
            let values = Tensor::<Flex, 1>::from_floats(values.as_slice(), &FlexDevice).unsqueeze::<2>();
            let mut sums = vec![0; 3000];
            assert_eq!(add(values, 1.0, u128::MAX, &mut sums, 3000), u128::MAX - (3000 - 1024), "{bad}");
            let stretch = 1024..2048;
            assert!((0..3000).all(|at| sums[at] == i64::from(!stretch.contains(&at))), "{bad}");
        }
    }
}

/// A tile of a matrix: its rows have a stretch of the matrix's columns.
#[test]
fn rows_of_a_tile_are_added_to_their_place_in_the_matrix() {
    for (rows, columns, pitch) in [(3, 5, 5), (4, 7, 12), (2, 1100, 2500), (1, 1, 1)] {
        let values: Vec<f32> = (0..rows * columns).map(|at| at as f32 + 1.0).collect();
        for add in [Flex::add_truncated, portable::add_truncated] {
            let tile =
                Tensor::<Flex, 1>::from_floats(values.as_slice(), &FlexDevice).reshape([rows, columns]);
            let mut sums = vec![7; (rows - 1) * pitch + columns];
            let left = add(tile, 2.0, u128::MAX, &mut sums, pitch);
            let squares: u128 = (1..=(rows * columns) as u128).map(|value| 4 * value * value).sum();
            assert_eq!(left, u128::MAX - squares);
            for (place, sum) in sums.into_iter().enumerate() {
                let (row, column) = (place / pitch, place % pitch);
                let added = if column < columns { 2 * (row * columns + column + 1) } else { 0 };
                assert_eq!(sum, 7 + added as i64, "{row} {column} of {columns} in {pitch}");
            }
        }
    }
}

#[test]
fn a_step_of_adam_moves_every_weight_and_both_averages() {
    let mut source = Source::new();
    let plain =
        AdamStep { betas: [0.9, 0.99], second_bias: 0.7, epsilon: 1e-3, noise: None, kept: 0.98, rate: 0.1 };
    for step in [plain, AdamStep { noise: Some([0.3, 0.1]), ..plain }] {
        let pairs = [(); 4].map(|()| source.pair([PARAMETERS]));
        let [value, grad, first, second] = pairs;
        // Averages of squares are not negative.
        let second = (second.0.square(), second.1.square());
        let tensors = AdamTensors { value: value.0, first: first.0, second: second.0 };
        let fused = Flex::adam(tensors, grad.0, &step);
        let tensors = AdamTensors { value: value.1, first: first.1, second: second.1 };
        let portable = portable::adam(tensors, grad.1, &step);
        agree(fused.value, portable.value);
        agree(fused.first, portable.first);
        agree(fused.second, portable.second);
    }
}

/// Few rows and a large transposed weight are multiplied in the other order, many rows are not.
#[test]
fn the_product_with_a_transposed_weight_is_the_product() {
    let mut source = Source::new();
    for (rows, d_in, d_out) in [(5, 517, 521), (256, 512, 530), (257, 512, 530), (5, 40, 30)] {
        let (input, input64) = source.pair([rows, d_in]);
        let (weight, weight64) = source.pair([d_out, d_in]);
        let product = Flex::wide_product(input, weight.transpose());
        assert_eq!(product.dims(), [rows, d_out]);
        agree(product, input64.matmul(weight64.transpose()));
    }
}

#[test]
fn a_product_gets_its_bias_in_every_row() {
    let mut source = Source::new();
    let (input, input64) = source.pair([SEQ, D]);
    let (weight, weight64) = source.pair([D, 7]);
    let (bias, bias64) = source.pair([7]);
    agree(Flex::affine(input, weight, bias), portable::affine(input64, weight64, bias64));
}
