//! Units with several views in a step: the mean of the views' gradients is clipped, not each of them.

use plan::{Adaptive, Automatic};
use serde_json::{Value, json};

use super::*;
use crate::dp::reference::examples;
use crate::network_tests::testing;
use network::nn::Selection;

const CLIPPINGS: [Clipping; 4] = [
    Clipping::Flat,
    Clipping::PerLayer,
    Clipping::Automatic(Automatic { stability: 0.05 }),
    Clipping::Adaptive(Adaptive { quantile: 0.5, learning_rate: 0.2, count_noise: 0.4 }),
];
const UNIT: f64 = 1.0 / (1_u64 << 40) as f64;

/// A network of each family, with its objective.
fn families() -> Vec<(Network, &'static str)> {
    let families = [
        ("gpt2", "causal_lm"),
        ("gpt_neo", "causal_lm"),
        ("gpt_neox", "causal_lm"),
        ("opt", "causal_lm"),
        ("stablelm", "causal_lm"),
        ("olmo2", "causal_lm"),
        ("granite", "causal_lm"),
        ("smollm3", "causal_lm"),
        ("phi", "causal_lm"),
        ("decoder", "causal_lm"),
        ("gemma2", "causal_lm"),
        ("gemma3", "causal_lm"),
        ("llama", "causal_lm"),
        ("mistral", "causal_lm"),
        ("phi3", "causal_lm"),
        ("qwen2", "causal_lm"),
        ("qwen3", "causal_lm"),
        ("feed_forward", "causal_lm"),
        ("t5", "prefix_lm"),
        ("t5_v1_1", "prefix_lm"),
        ("bart", "prefix_lm"),
        ("mbart", "prefix_lm"),
        ("marian", "prefix_lm"),
        ("bert", "masked_lm"),
        ("bert", "masked_lm_next_sentence"),
        ("roberta", "masked_lm"),
        ("distilbert", "masked_lm"),
        ("electra", "masked_lm"),
        ("modernbert", "masked_lm"),
    ];
    let network = |(family, objective)| {
        let history = if family == "feed_forward" { json!(3) } else { Value::Null };
        // Some families turn a part of each head's coordinates, which must be an even number.
        let d_model = if family == "phi" { 20 } else { 16 };
        let sizes = json!({ "family": family, "history": history, "d_model": d_model });
        (testing::network(&sizes, objective, 23), objective)
    };
    families.map(network).into()
}

/// Units with one to three views. A view of the second has no target, and the last unit has no view with one.
fn units(objective: &str) -> Vec<Vec<Example>> {
    let all = examples(objective);
    let empty = all[4].clone();
    let unit = |places: &[usize]| places.iter().map(|&place| all[place].clone()).collect();
    vec![unit(&[0]), unit(&[1, 4, 5]), unit(&[2, 3]), unit(&[3]), vec![empty.clone(), empty]]
}

fn lot_of(units: &[Vec<Example>]) -> Vec<Example> {
    units.iter().cloned().map(Example::of_views).collect()
}

/// The clipped sum by the definition: the gradient of each view by itself, their mean over the views with targets, and its clip.
fn by_loop(network: &Network, weights: &Weights<Flex>, units: &[Vec<Example>], bound: f64) -> Vec<f64> {
    let mut sum = vec![0.0; weights.specs().iter().map(ParamSpec::len).sum()];
    for unit in units {
        let learnt: Vec<&Example> =
            unit.iter().filter(|view| !view.targets.is_empty() || view.sentence.is_some()).collect();
        let mut mean = vec![0.0; sum.len()];
        for view in &learnt {
            let gradient = single_gradient(network, weights, view, &DEVICE);
            mean.iter_mut().zip(gradient).for_each(|(mean, value)| *mean += value / learnt.len() as f64);
        }
        let factor = (bound / norm(&mean)).min(1.0);
        sum.iter_mut().zip(mean).for_each(|(sum, value)| *sum += factor * value);
    }
    sum
}

/// A bound that clips about half of the units.
fn half_clipped(network: &Network, weights: &Weights<Flex>, units: &[Vec<Example>]) -> f64 {
    let norms =
        units.iter().map(|unit| norm(&by_loop(network, weights, std::slice::from_ref(unit), f64::MAX)));
    let mut norms: Vec<f64> = norms.collect();
    norms.sort_by(f64::total_cmp);
    norms[2]
}

fn sum(
    network: &Network,
    weights: &Weights<Flex>,
    lot: &Lot<'_, Flex>,
    arithmetic: Arithmetic,
    bound: f64,
) -> Vec<f64> {
    let summation = Summation { clipping: Clipping::Flat, arithmetic };
    flatten(clipped_sum_on_grid(network, weights, lot, summation, bound, UNIT).unwrap())
}

#[test]
fn the_mean_gradient_of_a_units_views_is_clipped_in_every_family_as_in_the_loop() {
    for (network, objective) in families() {
        let weights = moved_weights::<Flex>(&network, 51, &DEVICE);
        let (units, what) = (units(objective), network.hf_config()["model_type"].to_string());
        let examples = lot_of(&units);
        let bound = half_clipped(&network, &weights, &units);
        let want = by_loop(&network, &weights, &units, bound);
        for rows in [1, 2, 4] {
            let lot =
                Lot { recompute: rows == 2, group_by_length: rows == 4, ..lot(&network, &examples, rows) };
            for arithmetic in [Arithmetic::Fast, Arithmetic::Exact] {
                let distance = relative_distance(&sum(&network, &weights, &lot, arithmetic, bound), &want);
                assert!(distance < 1e-4, "{what} {rows} {arithmetic:?}: {distance}");
            }
        }
        // The tolerance is far below what a trainer would do that clips each view by itself.
        let views: Vec<Vec<Example>> = units.concat().into_iter().map(|view| vec![view]).collect();
        assert!(relative_distance(&by_loop(&network, &weights, &views, bound), &want) > 0.05, "{what}");
    }
}

#[test]
fn views_are_averaged_where_a_part_is_trained_and_without_clipping() {
    let model = json!({ "family": "gpt2", "d_model": 8, "layers": 2, "heads": 2, "d_ff": 12, "context": 15 });
    let network = testing::network(&model, "causal_lm", 23);
    let targets = vec!["c_attn".to_owned(), "mlp.c_proj".to_owned()];
    let lora = plan::Trainable::Lora(plan::Lora { rank: 2, alpha: 3.0, targets });
    let (units, mut stream) =
        (units("causal_lm"), TestRng::from_seed(4).stream(Purpose::Initialization, 0, 0));
    for trainable in [lora, plan::Trainable::LastLayers(1)] {
        let selection = Selection::new(&trainable, network.layout(), 2).unwrap().unwrap();
        let weights = moved_weights(&network, 51, &DEVICE).restrict(selection, &mut stream, &DEVICE);
        let examples = lot_of(&units);
        let lot = lot(&network, &examples, 3);
        for bound in [half_clipped(&network, &weights, &units), 1e6] {
            let want = by_loop(&network, &weights, &units, bound);
            let distance = relative_distance(&sum(&network, &weights, &lot, Arithmetic::Fast, bound), &want);
            assert!(distance < 1e-4, "{trainable:?}: {distance}");
        }
        let plain = plain_gradient(&network, &weights, &lot, 1.0).into_parts();
        let plain: Vec<f64> = plain.into_iter().flat_map(to_host_f64).collect();
        assert!(relative_distance(&plain, &by_loop(&network, &weights, &units, f64::MAX)) < 1e-4);
    }
}

/// Oracle: the definition, with one data set less one unit. In exact arithmetic there is no tolerance.
#[test]
fn a_unit_with_several_views_moves_the_sum_by_at_most_the_clip_norm() {
    let (model, weights) = model(Sizes { context: 15, ..small() }, 6);
    let units = units("causal_lm");
    for (clipping, bound) in CLIPPINGS.into_iter().zip([0.3, 0.1, 0.7, 1e-3]) {
        for arithmetic in [Arithmetic::Fast, Arithmetic::Exact] {
            let sum = |units: &[Vec<Example>]| {
                let (examples, summation) = (lot_of(units), Summation { clipping, arithmetic });
                let lot = lot(&model, &examples, 2);
                clipped_sum_on_grid(&model, &weights, &lot, summation, bound, UNIT).unwrap().parts.concat()
            };
            let whole = sum(&units);
            for removed in 0..units.len() {
                let mut rest = units.clone();
                rest.remove(removed);
                let moved: f64 =
                    whole.iter().zip(sum(&rest)).map(|(a, b)| (a - b) as f64 * UNIT).map(|d| d * d).sum();
                // Fast sums of others are rounded to f32 in another grouping: 1e-6 of their length.
                let allowance = if arithmetic == Arithmetic::Exact { 0.0 } else { 1e-5 };
                assert!(moved.sqrt() <= bound * (1.0 + allowance), "{clipping:?} {arithmetic:?} {removed}");
            }
        }
    }
}
