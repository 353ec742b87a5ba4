//! Tests of models for tasks: labels of texts and of words, and texts to be written.

use mechanisms::{PrivacyRng, Purpose, TestRng};
use plan::{Adaptive, Automatic, Clipping, Objective};
use serde_json::json;

use super::testing;
use crate::dp::reference::{
    clipped_sum_by_loop, flatten, lot, median_norm, moved_weights, norm, relative_distance, single_gradient,
};
use crate::dp::{clip, clipped_sum};
use network::Example;
use network::model::*;
use network::nn::{Selection, Weights};
use network::tensor::{Flex, FlexDevice, FloatDType, Tensor, TensorData, to_host, to_host_f64};

const DEVICE: FlexDevice = FlexDevice;
const VOCABULARY: usize = 23;

/// Returns the loss of an example by its definition, from its logits.
pub(super) fn loss(objective: Objective, logits: &[Vec<f64>], targets: &[u32]) -> f64 {
    let of_target = |(index, &target): (usize, &u32)| match objective {
        Objective::MultiLabelClassification => {
            let probability = 1.0 / (1.0 + (-logits[0][index]).exp());
            -(if target == 1 { probability } else { 1.0 - probability }).ln()
        }
        _ => logits[index].iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[index][target as usize],
    };
    targets.iter().enumerate().map(of_target).sum::<f64>() / targets.len() as f64
}

pub(super) fn logits(network: &Network, weights: &Weights<Flex>, example: &Example) -> Vec<Vec<f64>> {
    let batch = Batch::new(std::slice::from_ref(example), 1, network.shape(), FloatDType::F64, &DEVICE);
    let all = to_host_f64(network.logits(weights, batch));
    all.chunks_exact(network.outputs()).map(<[f64]>::to_vec).collect()
}

/// Returns examples of every task for a model of 12 tokens, with repeated tokens and of all lengths.
fn examples(task: &str, encoder_decoder: bool) -> Vec<Example> {
    let inputs: [&[u32]; 5] =
        [&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], &[4, 4, 4], &[9], &[7, 3, 7, 0], &[22, 1, 22, 1, 5]];
    let example = |(index, input): (usize, &&[u32])| {
        let input = input.to_vec();
        let class = (index % 3) as u32;
        let places: Vec<u32> = (0..input.len() as u32).step_by(2).collect();
        // A classifier's decoder reads the input, shifted by one.
        let shifted = [&[0], &input[..input.len() - 1]].concat();
        let decoder_input = if encoder_decoder { shifted } else { Vec::new() };
        let tags: Vec<u32> = places.iter().map(|place| (place + class) % 3).collect();
        match task {
            "sequence_classification" => {
                Example { input, decoder_input, targets: vec![class], ..Example::default() }
            }
            "multi_label_classification" => {
                let targets = vec![u32::from(class == 0), class % 2, 0];
                Example { input, decoder_input, targets, ..Example::default() }
            }
            _ if encoder_decoder => {
                Example { decoder_input: places, targets: tags, input, ..Example::default() }
            }
            _ => Example { input, positions: places, targets: tags, ..Example::default() },
        }
    };
    inputs.iter().enumerate().map(example).collect()
}

const CLIPPINGS: [Clipping; 4] = [
    Clipping::Flat,
    Clipping::PerLayer,
    Clipping::Automatic(Automatic { stability: 0.05 }),
    Clipping::Adaptive(Adaptive { quantile: 0.5, learning_rate: 0.2, count_noise: 0.4 }),
];

#[test]
fn clipped_sums_of_every_family_task_and_clipping_equal_the_loop_over_single_examples() {
    let families = [
        json!({ "family": "gpt2" }),
        json!({ "family": "llama", "kv_heads": 1, "untied": true }),
        json!({ "family": "decoder", "d_head": 6 }),
        json!({ "family": "phi3", "kv_heads": 1, "config": { "sliding_window": 4 } }),
        json!({ "family": "olmo2", "kv_heads": 1 }),
        json!({ "family": "granite", "kv_heads": 1 }),
        json!({ "family": "smollm3", "config": { "no_rope_layers": [0, 1] } }),
        json!({ "family": "bert" }),
        json!({ "family": "bert", "pooling": "mean" }),
        json!({ "family": "roberta" }),
        json!({ "family": "distilbert" }),
        json!({ "family": "electra", "config": { "embedding_size": 6 } }),
        json!({ "family": "modernbert" }),
        json!({ "family": "bart" }),
        json!({ "family": "mbart" }),
        json!({ "family": "marian" }),
        json!({ "family": "gpt_neox", "d_model": 16, "untied": true }),
        json!({ "family": "phi", "d_model": 20 }),
        json!({ "family": "stablelm", "d_model": 16, "kv_heads": 1 }),
        json!({ "family": "gptj", "config": { "rotary_dim": 2 } }),
        json!({ "family": "opt" }),
        json!({ "family": "gpt_neo" }),
        json!({ "family": "t5", "d_head": 3 }),
        json!({ "family": "t5_v1_1" }),
    ];
    for fields in families {
        let family = plan::Family::named(fields["family"].as_str().unwrap()).unwrap();
        for objective in family.objectives().iter().filter(|objective| objective.reads_fields()) {
            let task = serde_json::to_value(objective).unwrap().as_str().unwrap().to_owned();
            let network = testing::network(&fields, &task, VOCABULARY);
            let examples = examples(&task, network.shape().decoder.is_some());
            let weights = moved_weights::<Flex>(&network, 50, &DEVICE);
            let double = weights.clone().cast(FloatDType::F64);
            let bound = median_norm(&network, &double, &examples, &DEVICE);
            let want = clipped_sum_by_loop(&network, &double, &examples, bound, &DEVICE);
            let sum = |examples: &[Example], rows, recompute, clipping| {
                let lot = crate::dp::Lot { recompute, ..lot(&network, examples, rows) };
                flatten(clipped_sum(&network, &weights, &lot, bound, clipping))
            };
            for recompute in [false, true] {
                let distance = relative_distance(&sum(&examples, 3, recompute, Clipping::Flat), &want);
                assert!(distance < 1e-4, "{fields} {task} {recompute}: {distance}");
            }
            let grouped = crate::dp::Lot { group_by_length: true, ..lot(&network, &examples, 3) };
            let grouped = flatten(clipped_sum(&network, &weights, &grouped, bound, Clipping::Flat));
            let distance = relative_distance(&grouped, &want);
            assert!(distance < 1e-4, "{fields} {task} grouped by length: {distance}");
            for clipping in CLIPPINGS {
                let mut each = vec![0.0; want.len()];
                for example in &examples {
                    let own = sum(std::slice::from_ref(example), 1, false, clipping);
                    assert!(norm(&own) <= bound, "{fields} {task} {clipping:?}");
                    each.iter_mut().zip(own).for_each(|(sum, value)| *sum += value);
                }
                let distance = relative_distance(&sum(&examples, 4, false, clipping), &each);
                assert!(distance < 1e-4, "{fields} {task} {clipping:?}: {distance}");
            }
        }
    }
}

/// Records of the head from features, which were computed before, are those of the whole forward pass: for labels of texts, to the bit.
#[test]
fn a_head_trained_alone_has_the_same_records_from_features() {
    let of_texts = ["sequence_classification", "multi_label_classification"];
    let heads = [
        (json!({ "family": "bert", "pooling": "mean" }), 2, &of_texts[..]),
        (json!({ "family": "bert" }), 4, &of_texts),
        (json!({ "family": "modernbert" }), 2, &of_texts),
        (json!({ "family": "gpt2" }), 1, &of_texts),
        (json!({ "family": "roberta" }), 2, &["token_classification"]),
        (json!({ "family": "distilbert" }), 2, &["token_classification"]),
    ];
    for (fields, count, tasks) in heads {
        for &task in tasks {
            let network = testing::network(&fields, task, VOCABULARY);
            let selection = Selection::new(&plan::Trainable::Head, network.layout(), 2).unwrap().unwrap();
            assert_eq!(selection.specs().len(), count, "{fields}: {:?}", selection.specs());
            let mut stream = TestRng::from_seed(5).stream(Purpose::Initialization, 0, 0);
            let weights =
                moved_weights::<Flex>(&network, 50, &DEVICE).restrict(selection, &mut stream, &DEVICE);
            let mut examples = examples(task, false);
            let batch = |examples: &[Example]| {
                Batch::new(examples, examples.len() + 1, network.shape(), FloatDType::F32, &DEVICE)
            };
            let clipped = |examples: &[Example]| {
                let records = network.records(&weights, batch(examples));
                flatten(clip(records, examples.len(), 0.7, weights.specs()))
            };
            let whole = clipped(&examples);
            let features = to_host(network.features(&weights, batch(&examples)).unwrap());
            let width = features.len() / (examples.len() + 1);
            for (example, features) in examples.iter_mut().zip(features.chunks_exact(width)) {
                example.features = Some(features[..network.features_read(example).unwrap()].into());
                // The layers below the head do not run any more.
                example.input.fill(0);
            }
            network.check(&examples).unwrap();
            // The bound on a norm's rounding counts hidden states at padding, which features do not have.
            let allowed = if task == "token_classification" { 1e-4 } else { 0.0 };
            let distance = relative_distance(&clipped(&examples), &whole);
            assert!(norm(&whole) > 0.1 && distance <= allowed, "{fields} {task}: {distance}");
            let longer = network.features_read(&examples[1]).unwrap() + 1;
            examples[1].features = Some(vec![0.0; longer].into());
            assert!(network.check(&examples).is_err(), "features of another width");
            examples[1].features = None;
            assert!(network.check(&examples).is_err(), "features of some examples alone");
        }
    }
}

/// A model without a head in its checkpoint draws one and trains it beside adapters; other parameters stay frozen.
#[test]
fn adapters_leave_a_head_for_labels_trained() {
    let network = testing::network(&json!({ "family": "bert" }), "sequence_classification", VOCABULARY);
    let lora = plan::Lora { rank: 2, alpha: 3.0, targets: vec!["query".to_owned()] };
    let trainable = plan::Trainable::Lora(lora);
    let model: plan::Model =
        serde_json::from_value(json!({ "family": "bert", "d_model": 8, "layers": 2, "heads": 2,
        "d_ff": 12, "context": 12, "trainable": trainable }))
        .unwrap();
    let selection = network.selection(&model).unwrap().unwrap();
    let names: Vec<&str> = selection.specs().iter().map(|spec| spec.name.as_str()).collect();
    for name in ["classifier.weight", "classifier.bias", "bert.pooler.dense.weight"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(names.len(), 4 + 4, "adapters of two layers, and the head: {names:?}");
}

/// Oracle: central differences of −Σ tᵢ ln pᵢ with t = 1 − s + s/K at the target and s/K elsewhere, as torch's
/// `label_smoothing`.
#[test]
fn label_smoothing_gives_the_gradient_of_its_loss() {
    const SMOOTHING: f64 = 0.3;
    const STEP: f64 = 1e-5;
    let logits = [0.3, -1.2, 2.0, 0.1, 0.0, -0.5];
    let (targets, weights) = ([2_usize, 0], [0.5, 0.25]);
    let loss = |logits: &[f64]| -> f64 {
        let of_row = |(row, (target, weight)): (usize, (&usize, &f64))| {
            let row = &logits[row * 3..][..3];
            let total = row.iter().map(|logit| logit.exp()).sum::<f64>().ln();
            let share = |class: usize| SMOOTHING / 3.0 + if class == *target { 1.0 - SMOOTHING } else { 0.0 };
            weight * row.iter().enumerate().map(|(class, logit)| share(class) * (total - logit)).sum::<f64>()
        };
        targets.iter().zip(&weights).enumerate().map(of_row).sum()
    };
    let tensor = |values: &[f64]| {
        Tensor::<Flex, 1>::from_data(
            TensorData::new(values.to_vec(), [values.len()]),
            (&DEVICE, network::tensor::DType::F64),
        )
    };
    let given =
        Tensor::<Flex, 1, network::tensor::Int>::from_data(TensorData::new(vec![2_i32, 0], [2]), &DEVICE);
    let smoothed = network::head::Loss::CrossEntropy { smoothing: SMOOTHING };
    let got = to_host_f64(smoothed.gradient(tensor(&logits).reshape([2, 1, 3]), given, tensor(&weights)));
    for (place, got) in got.into_iter().enumerate() {
        let at = |shift: f64| {
            let mut moved = logits;
            moved[place] += shift;
            loss(&moved)
        };
        let want = (at(STEP) - at(-STEP)) / (2.0 * STEP);
        assert!((got - want).abs() < 1e-9, "{place}: {got} {want}");
    }
}

/// Returns a network with dropout, and examples of different seeds.
fn with_dropout(family: &str) -> (Network, Vec<Example>, Objective) {
    let (objective, task) = match family {
        "t5" | "t5_v1_1" | "bart" | "mbart" | "marian" => (Objective::TextToText, "text_to_text"),
        "bert" | "roberta" | "distilbert" | "electra" | "modernbert" => {
            (Objective::SequenceClassification, "sequence_classification")
        }
        _ => (Objective::TokenClassification, "token_classification"),
    };
    let d_model = match family {
        "gpt_neox" | "stablelm" => 16,
        "phi" => 20,
        _ => 8,
    };
    let mut network = testing::network(&json!({ "family": family, "d_model": d_model }), task, VOCABULARY);
    network.set_dropout(0.3);
    let mut examples = examples(task, network.shape().decoder.is_some());
    (5..).zip(&mut examples).for_each(|(seed, example)| example.dropout_seed = seed);
    (network, examples, objective)
}

const WITH_DROPOUT: [&str; 20] = [
    "gpt2",
    "llama",
    "decoder",
    "gemma2",
    "phi3",
    "bert",
    "t5",
    "t5_v1_1",
    "roberta",
    "distilbert",
    "electra",
    "gpt_neox",
    "stablelm",
    "phi",
    "opt",
    "gpt_neo",
    "modernbert",
    "bart",
    "mbart",
    "marian",
];

/// The norm pass and the pass for the sum drop the same values as a loop over single examples, however the examples are
/// batched and whether or not blocks are computed again.
#[test]
fn clipped_sums_with_dropout_equal_the_loop_over_single_examples() {
    for family in WITH_DROPOUT {
        let (network, mut examples, _) = with_dropout(family);
        let weights = moved_weights::<Flex>(&network, 50, &DEVICE);
        let double = weights.clone().cast(FloatDType::F64);
        let bound = median_norm(&network, &double, &examples, &DEVICE);
        let want = clipped_sum_by_loop(&network, &double, &examples, bound, &DEVICE);
        for (rows, recompute) in [(1, false), (3, false), (3, true)] {
            let lot = crate::dp::Lot { recompute, ..lot(&network, &examples, rows) };
            let got = flatten(clipped_sum(&network, &weights, &lot, bound, Clipping::Flat));
            let distance = relative_distance(&got, &want);
            assert!(distance < 1e-4, "{family} {rows} {recompute}: {distance}");
        }
        examples.iter_mut().for_each(|example| example.dropout_seed += 100);
        let other = clipped_sum_by_loop(&network, &double, &examples, bound, &DEVICE);
        assert!(relative_distance(&other, &want) > 0.05, "{family}: another seed drops other values");
    }
}

/// Oracle: central differences of the loss with the same values dropped, along the gradient and along another direction.
#[test]
fn gradients_with_dropout_are_those_of_the_loss_with_the_same_values_dropped() {
    const STEP: f64 = 1e-5;
    for family in WITH_DROPOUT {
        let (network, examples, objective) = with_dropout(family);
        let weights = moved_weights::<Flex>(&network, 51, &DEVICE).cast(FloatDType::F64);
        let example = &examples[0];
        let gradient = single_gradient(&network, &weights, example, &DEVICE);
        let loss_at = |shift: f64, direction: &[f64]| {
            let (mut moved, mut rest) = (weights.clone(), direction);
            let values = moved.take().into_iter().map(|value| {
                let (own, left) = rest.split_at(value.dims()[0]);
                rest = left;
                let own: Vec<f64> = own.iter().map(|component| shift * component).collect();
                let length = own.len();
                let own = TensorData::new(own, [length]);
                value + Tensor::from_data(own, (&DEVICE, network::tensor::DType::F64))
            });
            let values = values.collect();
            moved.replace(values);
            let batch =
                Batch::new(std::slice::from_ref(example), 1, network.shape(), FloatDType::F64, &DEVICE);
            let all = to_host_f64(network.training_logits(&moved, &batch));
            let all: Vec<Vec<f64>> = all.chunks_exact(network.outputs()).map(<[f64]>::to_vec).collect();
            loss(objective, &all, &example.targets)
        };
        let along: Vec<f64> = gradient.iter().map(|value| value / norm(&gradient)).collect();
        let across: Vec<f64> = (0..gradient.len()).map(|place| (place as f64 * 1.7).sin() * 0.05).collect();
        for direction in [along, across] {
            let want = (loss_at(STEP, &direction) - loss_at(-STEP, &direction)) / (2.0 * STEP);
            let got: f64 = gradient.iter().zip(&direction).map(|(a, b)| a * b).sum();
            assert!((got - want).abs() < 1e-5 * norm(&gradient), "{family}: {got} {want}");
        }
        assert_eq!(network.hf_config().to_string().matches("0.3").count(), dropout_names(family), "{family}");
    }
}

/// Returns the number of dropout rates that `transformers` has for a family.
fn dropout_names(family: &str) -> usize {
    match family {
        "gpt2" | "phi" | "gpt_neo" | "modernbert" => 3,
        "bert" | "roberta" | "distilbert" | "electra" | "gpt_neox" | "stablelm" | "opt" | "bart"
        | "mbart" | "marian" => 2,
        _ => 1,
    }
}

#[test]
fn tokens_of_a_conversation_that_are_not_learnt_give_no_gradient_and_each_conversation_is_clipped_alone() {
    let llama = json!({ "family": "llama", "kv_heads": 1 });
    let network = testing::network(&llama, "chat", VOCABULARY);
    let weights = moved_weights(&network, 41, &DEVICE);
    let double = weights.clone().cast(FloatDType::F64);
    let gradient = |example: &Example| single_gradient(&network, &double, example, &DEVICE);
    let input = vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    let learnt = Example { input, positions: vec![3, 4], targets: vec![5, 6], ..Example::default() };
    // Tokens after the last answer change nothing, and tokens before it do.
    let after = Example { input: vec![1, 2, 3, 4, 5, 20, 21], ..learnt.clone() };
    let before = Example { input: vec![1, 9, 3, 4, 5, 6, 7, 8, 9, 10], ..learnt.clone() };
    assert!(relative_distance(&gradient(&after), &gradient(&learnt)) < 1e-12);
    assert!(relative_distance(&gradient(&before), &gradient(&learnt)) > 1e-3);
    let unlearnt = Example { positions: Vec::new(), targets: Vec::new(), ..learnt.clone() };
    assert_eq!(norm(&gradient(&unlearnt)), 0.0);
    let examples = [learnt, after, before, unlearnt, Example::default()];
    let bound = median_norm(&network, &double, &examples, &DEVICE);
    let want = clipped_sum_by_loop(&network, &double, &examples, bound, &DEVICE);
    for rows in [1, 3, 5] {
        let lot = lot(&network, &examples, rows);
        let got = flatten(clipped_sum(&network, &weights, &lot, bound, Clipping::Flat));
        assert!(relative_distance(&got, &want) < 1e-4 && norm(&got) <= 5.0 * bound, "{rows}");
    }
}
