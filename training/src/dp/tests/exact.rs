//! Tests of sums in integers: how far one example can move them, and what does not change any of
//! their bits.

use plan::{Adaptive, Automatic};

use super::*;
use crate::dp::exact::{ExactClip, add_examples};
use crate::dp::grid_sum::Integers;
use crate::dp::reference::{self, examples, parts};
use crate::network_tests::testing;
use network::model::Shape;
use network::tensor::{Tensor, from_host};

const CLIPPINGS: [Clipping; 4] = [
    Clipping::Flat,
    Clipping::PerLayer,
    Clipping::Automatic(Automatic { stability: 1e-12 }),
    Clipping::Adaptive(Adaptive { quantile: 0.5, learning_rate: 0.2, count_noise: 0.4 }),
];
const UNIT: f64 = 1.0 / (1_u64 << 28) as f64;

fn exact_sum(
    model: &Network,
    weights: &Weights<Flex>,
    lot: &Lot<'_, Flex>,
    clipping: Clipping,
    bound: f64,
) -> Vec<i64> {
    let summation = Summation { clipping, arithmetic: Arithmetic::Exact };
    let sum = clipped_sum_on_grid(model, weights, lot, summation, bound, UNIT).unwrap();
    sum.parts.into_iter().flatten().collect()
}

fn square_of_difference(a: &[i64], b: &[i64]) -> u128 {
    a.iter().zip(b).map(|(a, b)| u128::from(a.abs_diff(*b)).pow(2)).sum()
}

/// The property holds without tolerance for all families and objectives, all ways of clipping, and
/// micro-batches of 1 and 4.
#[test]
fn one_example_moves_an_exact_sum_by_at_most_the_clip_norm_in_integers() {
    let families = [
        ("gpt2", "causal_lm"),
        ("decoder", "causal_lm"),
        ("llama", "causal_lm"),
        ("feed_forward", "causal_lm"),
        ("t5", "prefix_lm"),
        ("t5_v1_1", "prefix_lm"),
        ("bert", "masked_lm"),
        ("bert", "masked_lm_next_sentence"),
    ];
    for (family, objective) in families {
        let history = if family == "feed_forward" { serde_json::json!(3) } else { serde_json::Value::Null };
        let model =
            testing::network(&serde_json::json!({ "family": family, "history": history }), objective, 23);
        let weights = moved_weights::<Flex>(&model, 51, &DEVICE);
        let all = examples(objective);
        for (clipping, bound) in CLIPPINGS.into_iter().zip([0.3, 0.1, 0.7, 1e-3]) {
            let sum = |examples: &[Example], rows: usize| {
                exact_sum(&model, &weights, &lot(&model, examples, rows), clipping, bound)
            };
            let whole = sum(&all, 1);
            assert_eq!(whole, sum(&all, 4), "{family} {clipping:?}: micro-batches");
            let limit = ((bound / UNIT) as u128).pow(2);
            let mut longest = 0;
            for removed in 0..all.len() {
                let mut rest = all.clone();
                rest.remove(removed);
                let moved = square_of_difference(&whole, &sum(&rest, 4));
                assert!(moved <= limit, "{family} {clipping:?} {removed}");
                longest = longest.max(moved);
            }
            assert!(longest > limit / 4, "{family} {clipping:?}: the test reaches half of the clip norm");
        }
    }
}

#[test]
fn the_order_of_examples_changes_no_bit_of_an_exact_sum() {
    let (model, weights) = model(small(), 31);
    let forward = ragged_lot();
    let backward: Vec<Example> = forward.iter().rev().cloned().collect();
    let sum =
        |examples: &[Example]| exact_sum(&model, &weights, &lot(&model, examples, 2), Clipping::Flat, 0.3);
    assert_eq!(sum(&forward), sum(&backward));
}

#[test]
fn threads_change_no_bit_of_a_fast_sum() {
    let (model, weights) = model(small(), 32);
    let lot_of = ragged_lot();
    let lot = lot(&model, &lot_of, 2);
    let on = |threads: usize| {
        let sum = GridSum::zero(weights.specs(), 0.3, UNIT);
        let micro_batches: Vec<&[Example]> = lot.examples.chunks(2).collect();
        Reduce::on_threads(threads).for_each(&micro_batches, &weights, |weights, examples| {
            std::thread::sleep(std::time::Duration::from_micros(50 * examples[0].input.len() as u64));
            let batch = Batch::new(examples, 2, model.shape(), FloatDType::F32, &DEVICE);
            let gradients = PerExampleGrads::compute(&model, weights, batch, false);
            gradients.clip_and_sum(Clipping::Flat, 0.3, |part| Integers::add(&mut &sum, part));
        });
        sum.finish().unwrap().parts
    };
    let one = on(1);
    for threads in [2, 5] {
        assert_eq!(one, on(threads));
    }
    let of_lot = clipped_sum_on_grid(&model, &weights, &lot, fast(Clipping::Flat), 0.3, UNIT).unwrap();
    assert_eq!(one, of_lot.parts);
}

/// Oracle: the loop over single examples in double precision. One example moves the sum by at most the clip norm in integers.
#[test]
fn exact_sums_of_long_examples_are_the_clipped_sums() {
    let (model, weights) = model(Sizes { context: 512, d_model: 16, d_ff: 32, ..small() }, 38);
    let mut source = TestRng::from_seed(39).stream(Purpose::Data, 0, 0);
    let mut window =
        |length: usize| Example::causal(&(0..=length).map(|_| source.below(23) as u32).collect::<Vec<_>>());
    let all: Vec<Example> = [512, 3, 512, 200].map(&mut window).into();
    let bound = median_norm(&model, &weights, &all);
    for clipping in CLIPPINGS {
        let sum = |examples: &[Example], rows: usize| {
            let exact = Summation { clipping, arithmetic: Arithmetic::Exact };
            let lot = lot(&model, examples, rows);
            let sum = clipped_sum_on_grid(&model, &weights, &lot, exact, bound, UNIT * bound).unwrap();
            sum.parts.concat()
        };
        let whole = sum(&all, 4);
        assert_eq!(whole, sum(&all, 2), "{clipping:?}");
        for removed in 0..all.len() {
            let mut rest = all.clone();
            rest.remove(removed);
            assert!(square_of_difference(&whole, &sum(&rest, 4)) <= 1 << 56, "{clipping:?} {removed}");
        }
        if clipping == Clipping::Flat {
            let want = reference::clipped_sum_by_loop(&model, &weights, &all, bound, &DEVICE);
            let got: Vec<f64> = whole.iter().map(|&integer| integer as f64 * UNIT * bound).collect();
            assert!(relative_distance(&got, &want) < 1e-4);
        }
    }
}

/// Rows of a table that are looked up and also make logits lie in several blocks, at their edges, and twice.
#[test]
fn blocks_of_a_matrix_hold_every_row_of_its_gradient_once() {
    let (vocabulary, d, seq) = (5000, 64, 6);
    let spec = ParamSpec {
        name: "table".into(),
        shape: vec![vocabulary, d],
        initial: network::nn::Initializer::Constant(0.0),
    };
    let mut source = TestRng::from_seed(42).stream(Purpose::Data, 0, 0);
    let mut draw = |shape: [usize; 3]| -> Tensor<Flex, 3> {
        let values = (0..shape.iter().product()).map(|_| source.uniform() as f32 - 0.5).collect();
        from_host(values, shape, FloatDType::F32, &DEVICE)
    };
    let tokens: Tensor<Flex, 2, network::tensor::Int> =
        Tensor::from_ints([[0, 2047, 2048, 2047, 4095, 4999]], &DEVICE);
    let (grad, hidden) = (draw([1, seq, d]), draw([1, seq, d]));
    let (logits_grad, input) = (draw([1, seq, vocabulary]), draw([1, seq, vocabulary]));
    let param = ParamId(0);
    let records = [
        GradRecord::Lookup { param, tokens: tokens.clone(), grad: grad.clone() },
        GradRecord::Product { param, input, grad: grad.clone() },
        GradRecord::TiedEmbedding { param, tokens, grad, hidden, logits_grad },
    ];
    for record in records {
        let clip = ExactClip::new(Clipping::Flat, 1e9, 2.0_f64.powi(-20)).unwrap();
        let specs = std::slice::from_ref(&spec);
        let integers = |example| {
            let sum = GridSum::zero(specs, 1e9, 2.0_f64.powi(-20));
            add_examples(vec![example], specs, &mut &sum);
            sum.finish().unwrap().parts.remove(0)
        };
        let whole = crate::dp::sum::weighted_sum(record.clone(), None, plan::Precision::F32, &spec);
        let want = integers(clip.of_whole(vec![whole], specs));
        let got = integers(clip.of_records(vec![record], specs));
        // Both round the same numbers, but for the order of a few additions.
        assert!(want.iter().zip(&got).all(|(want, got)| want.abs_diff(*got) <= 2));
        assert!(got.iter().filter(|integer| **integer != 0).count() >= 5 * d);
    }
}

/// Gradients of matrices that are held as factors get their norms from Gram matrices, others from their elements.
#[test]
fn the_form_of_a_gradient_does_not_change_its_clipped_sum() {
    let sizes = Sizes { context: 160, d_model: 48, d_ff: 192, heads: 4, ..small() };
    let mut source = TestRng::from_seed(40).stream(Purpose::Data, 0, 0);
    let (model, weights) = model(sizes, 41);
    for length in [8, 160] {
        let mut window =
            |_| Example::causal(&(0..=length).map(|_| source.below(23) as u32).collect::<Vec<_>>());
        let all: Vec<Example> = (0..5).map(&mut window).collect();
        let bound = median_norm(&model, &weights, &all);
        let shape = Shape { input: length, ..model.shape() };
        let exact = Summation { clipping: Clipping::Flat, arithmetic: Arithmetic::Exact };
        let sum = |recompute| {
            let lot = Lot { shape, recompute, ..lot(&model, &all, 4) };
            let sum = clipped_sum_on_grid(&model, &weights, &lot, exact, bound, UNIT * bound).unwrap();
            sum.parts.iter().flatten().map(|&integer| integer as f64 * UNIT * bound).collect::<Vec<f64>>()
        };
        // With recomputation, all gradients are held whole.
        let (held, whole) = (sum(false), sum(true));
        let want = reference::clipped_sum_by_loop(&model, &weights, &all, bound, &DEVICE);
        assert!(
            relative_distance(&held, &want) < 1e-4 && relative_distance(&whole, &want) < 1e-4,
            "{length}"
        );
        assert_eq!(held == whole, length == 160, "short examples are held as factors");
    }
}

/// Returns the largest share of the clip norm by which removing one of `units` examples moves a
/// fast sum beyond it. Only rounding contributes: the norms of clipped gradients are 1e-5 below the
/// clip norm, and this margin is subtracted.
fn excess(units: usize, rows: usize) -> f64 {
    let (model, weights) = model(Sizes { context: 12, d_model: 16, d_ff: 32, ..small() }, 36);
    let mut source = TestRng::from_seed(37).stream(Purpose::Data, 0, 0);
    let mut window = |_| Example::causal(&(0..13).map(|_| source.below(23) as u32).collect::<Vec<_>>());
    let all: Vec<Example> = (0..units).map(&mut window).collect();
    let bound = 1e-2;
    let sum = |examples: &[Example]| {
        let lot = lot(&model, examples, rows);
        clipped_sum_on_grid(&model, &weights, &lot, fast(Clipping::Flat), bound, UNIT * bound).unwrap()
    };
    let difference = |a: &ClippedSum, b: &ClippedSum| -> Vec<f64> {
        let pairs = a.parts.iter().flatten().zip(b.parts.iter().flatten());
        pairs.map(|(a, b)| (a - b) as f64 * UNIT * bound).collect()
    };
    let whole = sum(&all);
    let of_removed = |removed: usize| {
        let mut rest = all.clone();
        let one = rest.remove(removed);
        let moved = difference(&whole, &sum(&rest));
        let alone = flatten(sum(&[one]));
        norm(&moved.iter().zip(alone).map(|(moved, alone)| moved - alone).collect::<Vec<_>>()) / bound
    };
    [0, units / 2, units - 1].map(of_removed).into_iter().fold(0.0, f64::max)
}

/// The certificate of fast sums states 2e-5 for 1,024 units in micro-batches of 32, and growth with the square root.
#[test]
fn regrouping_moves_a_fast_sum_by_less_than_the_certificate_says() {
    for (units, stated) in [(256, 1e-5), (1024, 2e-5)] {
        let excess = excess(units, 32);
        println!("{units} units in micro-batches of 32: {excess:e} of the clip norm");
        assert!(excess > 0.0 && excess < stated, "{units}: {excess:e}");
    }
}

/// The gradients are ones that single precision measures badly, and some that are not numbers.
#[test]
fn no_gradient_is_longer_than_the_clip_norm_in_integers() {
    let specs = [ParamSpec {
        name: "layer.w".into(),
        shape: vec![3001],
        initial: network::nn::Initializer::Constant(0.0),
    }];
    let mut source = TestRng::from_seed(33).stream(Purpose::Data, 0, 0);
    for scale in [1e-40, 1e-18, 1e-3, 1.0, 1e15, 3e38] {
        for clipping in CLIPPINGS {
            let clip = ExactClip::new(clipping, 0.7, UNIT).unwrap();
            let mut values: Vec<f32> = (0..3001).map(|_| ((source.uniform() - 0.5) * scale) as f32).collect();
            for spoiled in [0.5_f32, f32::NAN, f32::INFINITY] {
                values[17] *= spoiled;
                let gradient: Tensor<Flex, 1> = from_host(values.clone(), [3001], FloatDType::F32, &DEVICE);
                let sum = GridSum::zero(&specs, 0.7, UNIT);
                add_examples(vec![clip.of_whole(vec![gradient], &specs)], &specs, &mut &sum);
                let integers = sum.finish().unwrap().parts.remove(0);
                let square = square_of_difference(&integers, &vec![0; 3001]);
                assert!(square <= ((0.7 / UNIT) as u128).pow(2), "{scale} {clipping:?}");
                assert!(square == 0 || spoiled == 0.5, "what is not finite contributes nothing");
            }
        }
    }
    assert!(ExactClip::new(Clipping::Flat, 1.0, 2.0_f64.powi(-51)).is_err());
}

/// Oracle: the loop over single examples in double precision; the grid is finer than single precision.
#[test]
fn exact_sums_are_the_clipped_sums() {
    let (model, weights) = model(small(), 34);
    let bound = median_norm(&model, &weights, &ragged_lot());
    let want = reference::clipped_sum_by_loop(&model, &weights, &ragged_lot(), bound, &DEVICE);
    let got = exact_sum(&model, &weights, &lot(&model, &ragged_lot(), 4), Clipping::Flat, bound);
    let got: Vec<f64> = got.into_iter().map(|integer| integer as f64 * UNIT).collect();
    assert!(relative_distance(&got, &want) < 2e-5);
}

/// Positions cancel, and rounding leaves a residue that automatic clipping would scale up without
/// limit.
#[test]
fn a_gradient_that_cancels_is_not_scaled_beyond_the_clip_norm() {
    let specs = [ParamSpec {
        name: "layer.w".into(),
        shape: vec![8, 8],
        initial: network::nn::Initializer::Constant(0.0),
    }];
    let mut source = TestRng::from_seed(35).stream(Purpose::Data, 0, 0);
    for _ in 0..200 {
        let mut draw =
            |length: usize| -> Vec<f32> { (0..length).map(|_| (source.uniform() - 0.5) as f32).collect() };
        let (row, column, weights) = (draw(8), draw(8), draw(10));
        // Five positions of the same direction, whose weights sum to 0 but for rounding.
        let last: f32 = -(0..4).map(|at| weights[at] * weights[5 + at]).sum::<f32>();
        let factor = |at: usize| if at < 4 { [weights[at], weights[5 + at]] } else { [last, 1.0] };
        let [input, grad] = [(0, &row), (1, &column)].map(|(side, values)| {
            let rows: Vec<f32> =
                (0..5).flat_map(|at| values.iter().map(move |value| value * factor(at)[side])).collect();
            from_host::<Flex, 3>(rows, [1, 5, 8], FloatDType::F32, &DEVICE)
        });
        let records = vec![GradRecord::Product { param: ParamId(0), input, grad }];
        let automatic = Clipping::Automatic(Automatic { stability: 1e-12 });
        let sum = parts(PerExampleGrads::of_records(records, 1, &specs), automatic, 1.0);
        assert!(norm(&flatten(sum)) <= 1.0);
    }
}
