//! Compares the clipped sum of each family with the loop over single examples, and its norms with
//! torch.

use mechanisms::{PrivacyRng, Purpose, TestRng};
use serde_json::json;

use super::reference::{
    clipped_sum_by_loop, flatten, lot, median_norm, moved_weights, norm, ragged_lot, relative_distance,
    single_gradient,
};
use super::{clipped_sum, per_example_norms};
use crate::network_tests::testing;
use network::Example;
use network::model::{Backbone, Batch, Network};
use network::nn::{Kernels, Selection, Weights};
use network::pretrained::{Assigned, PretrainedCheckpoint};
use network::tensor::{DType, Flex, FlexDevice, FloatDType, Tensor, TensorData, to_host_f64};

const DEVICE: FlexDevice = FlexDevice;

/// Returns a network for each way in which a family can be laid out.
fn families() -> Vec<Network> {
    let decoder = |kv_heads: u32, d_head: u32, untied: bool| {
        json!({ "family": "decoder", "d_model": 8, "layers": 2, "heads": 4, "kv_heads": kv_heads, "d_head": d_head,
                "d_ff": 12, "context": 7, "untied": untied })
    };
    let feed_forward = |history: u32| {
        json!({ "family": "feed_forward", "d_model": 4, "layers": 3, "heads": 1, "d_ff": 9, "context": 7,
                "history": history, "hidden": [9, 6, 5] })
    };
    let llama = json!({ "family": "llama", "d_model": 8, "layers": 2, "heads": 4, "kv_heads": 2, "d_ff": 12,
                        "context": 7, "untied": true });
    let models = [decoder(2, 2, false), decoder(1, 6, true), feed_forward(3), feed_forward(20), llama];
    models.into_iter().map(|model| testing::network(&model, "causal_lm", 23)).collect()
}

fn weights(network: &Network) -> Weights<Flex> {
    moved_weights(network, 41, &DEVICE)
}

fn clipped(network: &Network, weights: &Weights<Flex>, rows: usize, bound: f64) -> Vec<f64> {
    let examples = ragged_lot();
    let lot = lot(network, &examples, rows);
    flatten(clipped_sum(network, weights, &lot, bound, plan::Clipping::Flat))
}

/// The clipped sum of micro-batches of each number of rows is that of the loop.
fn assert_equals_the_loop(network: &Network, weights: &Weights<Flex>, micro_batches: &[usize], what: &str) {
    let double = weights.clone().cast(FloatDType::F64);
    let bound = median_norm(network, &double, &ragged_lot(), &DEVICE);
    let want = clipped_sum_by_loop(network, &double, &ragged_lot(), bound, &DEVICE);
    for &rows in micro_batches {
        let distance = relative_distance(&clipped(network, weights, rows, bound), &want);
        assert!(distance < 1e-4, "{what} {rows}: {distance}");
    }
    // Without clipping nothing is rounded up, so the result has double precision.
    let all = clipped_sum_by_loop(network, &double, &ragged_lot(), 1e6, &DEVICE);
    let distance = relative_distance(&clipped(network, &double, 3, 1e6), &all);
    assert!(distance < 1e-12, "{what}: {distance}");
}

#[test]
fn clipped_sum_equals_the_loop_for_decoder_and_feed_forward() {
    for network in families() {
        assert_equals_the_loop(&network, &weights(&network), &[1, 3, 9], &format!("{network:?}"));
    }
}

/// Oracle: autodiff of torch in double precision (tests/vectors/make_*.py).
#[test]
fn norms_equal_those_of_autodiff_in_torch_for_decoder_and_feed_forward() {
    for name in ["gemma_tiny", "gemma_untied", "llama_tiny", "feed_forward_tiny"] {
        let (folder, network) = testing::vectors(name);
        let Assigned { weights: tensors, ignored, .. } = PretrainedCheckpoint::read(&folder)
            .unwrap()
            .weights(&network.specs(), &network.hf_config())
            .unwrap();
        assert!(ignored.is_empty());
        let mut weights = weights(&network);
        let value = |tensor: network::tensor_file::NamedTensor| {
            let length = tensor.data.len();
            Tensor::from_data(TensorData::new(tensor.data, [length]), &DEVICE)
        };
        weights.replace(tensors.into_iter().map(value).collect());
        let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
        let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
        for example in expected["examples"].as_array().unwrap() {
            let window: Vec<u32> = serde_json::from_value(example["tokens"].clone()).unwrap();
            let causal = Example::causal(&window);
            let batch = Batch::new(&[causal], 2, network.shape(), FloatDType::F32, &DEVICE);
            let got = per_example_norms(&network.records(&weights, batch))[0];
            let want = example["gradient_norm"].as_f64().unwrap();
            assert!((got / want - 1.0).abs() < 3e-5, "{name}: {got} {want}");
        }
    }
}

/// Returns networks of which a part is trained: the network, the part, and its number of
/// parameters.
fn parts() -> Vec<(Network, plan::Trainable, usize)> {
    let lora = |targets: &[&str]| {
        let targets = targets.iter().map(|target| (*target).to_owned()).collect();
        plan::Trainable::Lora(plan::Lora { rank: 2, alpha: 3.0, targets })
    };
    let gpt2 = || {
        let model =
            json!({ "family": "gpt2", "d_model": 8, "layers": 2, "heads": 2, "d_ff": 12, "context": 7 });
        testing::network(&model, "causal_lm", 23)
    };
    let mut families = families();
    let feed_forward = families.remove(2);
    let decoder = families.remove(0);
    vec![
        (gpt2(), lora(&["c_attn", "mlp.c_proj"]), 8),
        (gpt2(), plan::Trainable::LastLayers(1), 14),
        (gpt2(), plan::Trainable::Norms, 5),
        (decoder.clone(), plan::Trainable::Norms, 5),
        (decoder.clone(), lora(&["q_proj", "v_proj", "down_proj"]), 12),
        (decoder, plan::Trainable::LastLayers(2), 19),
        (feed_forward.clone(), lora(&["hidden.0", "hidden.2"]), 4),
        (feed_forward, plan::Trainable::LastLayers(1), 4),
    ]
}

fn restricted(network: &Network, trainable: &plan::Trainable) -> Weights<Flex> {
    let layers = if matches!(network.backbone(), Backbone::FeedForward(_)) { 3 } else { 2 };
    let selection = Selection::new(trainable, network.layout(), layers).unwrap().unwrap();
    let mut stream = TestRng::from_seed(43).stream(Purpose::Initialization, 0, 0);
    let mut weights = weights(network).restrict(selection, &mut stream, &DEVICE);
    // Weights are moved away from their initial values: there B is 0, and A has no gradient.
    let moved = weights.take().into_iter().map(|value| {
        let mut noise = vec![0.0; value.dims()[0]];
        stream.fill_gaussian_f32(&mut noise, 0.3);
        value + Tensor::from_data(noise.as_slice(), &DEVICE)
    });
    weights.replace(moved.collect());
    weights
}

#[test]
fn clipped_sum_of_a_trained_part_equals_the_loop() {
    for (network, trainable, count) in parts() {
        let weights = restricted(&network, &trainable);
        assert_eq!(weights.specs().len(), count, "{:?}", weights.specs());
        assert_equals_the_loop(&network, &weights, &[3], &format!("{trainable:?}"));
    }
}

/// The loss changes with A, B and whole parameters as their gradients predict, through the merged
/// matrices.
#[test]
fn gradients_of_a_trained_part_equal_central_differences_of_the_loss() {
    const STEP: f64 = 1e-5;
    for (network, trainable, _) in parts() {
        let weights = restricted(&network, &trainable).cast(FloatDType::F64);
        let example = Example::causal(&[3, 4, 4, 9, 0, 22, 3]);
        let gradient = single_gradient(&network, &weights, &example, &DEVICE);
        let loss = |weights: &Weights<Flex>| {
            let batch =
                Batch::new(std::slice::from_ref(&example), 1, network.shape(), FloatDType::F64, &DEVICE);
            let (targets, target_weights) = (batch.targets.clone(), batch.target_weights.clone());
            let nll = Flex::token_nll(network.logits(weights, batch), targets.reshape([7]));
            to_host_f64((nll * target_weights.reshape([7])).sum())[0]
        };
        let (mut offset, mut got, mut want) = (0, Vec::new(), Vec::new());
        for (index, spec) in weights.specs().to_vec().iter().enumerate() {
            for element in (0..spec.len()).step_by(spec.len().div_ceil(7)) {
                let at = |shift: f64| {
                    let mut moved = weights.clone();
                    let mut values = moved.take();
                    let mut host = to_host_f64(values[index].clone());
                    host[element] += shift;
                    let length = host.len();
                    let data = TensorData::new(host, [length]);
                    values[index] = Tensor::from_data(data, (&DEVICE, DType::F64));
                    moved.replace(values);
                    loss(&moved)
                };
                want.push((at(STEP) - at(-STEP)) / (2.0 * STEP));
                got.push(gradient[offset + element]);
            }
            offset += spec.len();
        }
        let distance = relative_distance(&got, &want);
        assert!(distance < 1e-6 && norm(&got) > 0.01, "{trainable:?}: {distance}");
    }
}

#[test]
fn an_adapter_for_what_is_no_linear_layer_is_refused_with_the_names_there_are() {
    let network = families().remove(0);
    for target in ["c_attn", "embed_tokens", "norm", "proj"] {
        let lora = plan::Lora { rank: 2, alpha: 1.0, targets: vec![target.to_owned()] };
        let refusal = Selection::new(&plan::Trainable::Lora(lora), network.layout(), 2).unwrap_err();
        let message = refusal.to_string();
        assert!(message.contains(target) && message.contains("down_proj, gate_proj, k_proj"), "{message}");
    }
}
