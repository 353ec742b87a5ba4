//! No example changes a bit of another one's part of an exact sum, although several share a pass.

use plan::{Family, Precision, Trainable};
use serde_json::json;

use super::*;
use crate::dp::reference;
use crate::network_tests::testing;
use network::model::Predictions;
use network::nn::Selection;

const VOCABULARY: usize = 97;
/// More than a tile has rows, and not a multiple.
const CONTEXT: usize = 21;

/// Returns the smallest model of a family in which products have several tiles, with dropout.
fn network(family: Family, objective: plan::Objective) -> Network {
    let model = json!({ "family": family.name(), "d_model": 64, "heads": 4, "d_ff": 136, "layers": 2,
                        "context": CONTEXT,
                        "history": (family == Family::FeedForward).then_some(3),
                        "config": if family == Family::GptJ { json!({ "rotary_dim": 8 }) } else { json!({}) } });
    let objective = serde_json::to_value(objective).unwrap();
    let training = plan::Training { dropout: 0.1, ..testing::training(objective.as_str().unwrap()) };
    Network::new(&serde_json::from_value(model).unwrap(), &training, VOCABULARY).unwrap()
}

/// Returns examples of all lengths that the network takes.
fn examples(network: &Network) -> Vec<Example> {
    let shape = network.shape();
    let tokens =
        |seed: usize, length: usize| (0..length).map(move |at| ((seed * 31 + at * 7) % VOCABULARY) as u32);
    let one = |(seed, length): (usize, usize)| {
        let input: Vec<u32> = tokens(seed, length).collect();
        let mut example = Example { dropout_seed: seed as u64, ..Example::default() };
        let count = match shape.predictions {
            Predictions::OfText(count) => count,
            Predictions::AtPlaces(most) => most.min(length),
            Predictions::EachPosition => length.min(shape.targets()),
        };
        if let Predictions::AtPlaces(_) = shape.predictions {
            example.positions = (0..count as u32).collect();
        }
        if shape.decoder.is_some() {
            example.decoder_input = tokens(seed + 1, count).collect();
        }
        // Classes are two at least.
        example.targets = tokens(seed + 2, count).map(|token| token % 2).collect();
        Example { input, ..example }
    };
    [CONTEXT, 5, 1, CONTEXT, 13, 0, 8].into_iter().enumerate().map(|(at, length)| one((at, length))).collect()
}

/// Asserts that a lot has the same exact sum, to the bit, whatever the examples are that share a pass.
fn assert_independent(network: &Network, weights: &Weights<Flex>, all: Vec<Example>, what: &str) {
    let summation = Summation { clipping: Clipping::Flat, arithmetic: Arithmetic::Exact };
    let sum = |examples: &[Example], rows: usize| {
        let lot = reference::lot(network, examples, rows);
        let sum = reference::clipped_sum_on_grid(network, weights, &lot, summation, 0.5, 2.0_f64.powi(-28))
            .unwrap();
        sum.parts.concat()
    };
    let alone = sum(&all, 1);
    assert!(alone.iter().any(|&integer| integer != 0), "{what}");
    assert_eq!(alone, sum(&all, all.len()), "{what}");
    let others: Vec<Example> = all.iter().rev().cloned().collect();
    assert_eq!(alone, sum(&others, all.len()), "{what}: other neighbors");
    let one: Vec<i64> = all.iter().fold(vec![0; alone.len()], |mut total, example| {
        let own = sum(std::slice::from_ref(example), 1);
        total.iter_mut().zip(own).for_each(|(total, own)| *total += own);
        total
    });
    assert_eq!(alone, one, "{what}: a lot of one example");
}

/// PITFALLS 55. Oracle: each example in a lot of its own.
#[test]
fn examples_that_share_a_pass_change_no_bit_of_each_other() {
    for family in Family::all() {
        for &objective in family.objectives() {
            let network = network(family, objective);
            let weights = reference::moved_weights::<Flex>(&network, 61, &DEVICE);
            for precision in [Precision::F32, Precision::Bf16] {
                let weights = weights.clone().precision(precision);
                let what = format!("{family:?} {objective:?} {precision:?}");
                assert_independent(&network, &weights, examples(&network), &what);
            }
        }
    }
}

#[test]
fn examples_with_several_views_and_means_of_positions_share_a_pass_in_the_same_way() {
    let model = json!({ "family": "bert", "d_model": 64, "heads": 4, "d_ff": 136, "layers": 2,
                        "context": CONTEXT, "pooling": "mean" });
    let network = testing::network(&model, "sequence_classification", VOCABULARY);
    let weights = reference::moved_weights::<Flex>(&network, 64, &DEVICE);
    assert_independent(&network, &weights, examples(&network), "means");
    let mut of_views = examples(&network);
    for at in [0, 2, 3] {
        of_views[at].further = vec![of_views[4].clone(), of_views[1].clone()];
    }
    of_views[5].further = vec![of_views[6].clone()];
    assert_independent(&network, &weights, of_views, "views");
}

#[test]
fn examples_that_share_a_pass_of_a_trained_part_change_no_bit_of_each_other() {
    let lora = plan::Lora { rank: 3, alpha: 5.0, targets: vec!["q_proj".into(), "down_proj".into()] };
    for trainable in [Trainable::Lora(lora), Trainable::Norms, Trainable::LastLayers(1)] {
        let network = network(Family::Llama, plan::Objective::CausalLm);
        let selection = Selection::new(&trainable, network.layout(), 2).unwrap().unwrap();
        let mut stream = TestRng::from_seed(62).stream(Purpose::Initialization, 0, 0);
        let weights = reference::moved_weights::<Flex>(&network, 63, &DEVICE);
        let mut weights = weights.restrict(selection, &mut stream, &DEVICE);
        // B of an adapter is 0 at first, and A has no gradient.
        let moved = weights.take().into_iter().map(|value| {
            let mut noise = vec![0.0; value.dims()[0]];
            stream.fill_gaussian_f32(&mut noise, 0.3);
            value + Tensor::from_data(noise.as_slice(), &DEVICE)
        });
        let moved = moved.collect();
        weights.replace(moved);
        assert_independent(&network, &weights, examples(&network), &format!("{trainable:?}"));
    }
}
