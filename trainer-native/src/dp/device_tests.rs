//! Every family on a GPU or software Vulkan: the clipped sum equals that of the loop over single examples on the same device,
//! and that on the CPU.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use burn_wgpu::{Wgpu, WgpuDevice};
use serde_json::json;

use super::reference::{clipped_sum_by_loop, flatten, median_norm, moved_weights, relative_distance};
use super::{Lot, clipped_sum};
use crate::data::Example;
use crate::model::{Network, testing};
use crate::nn::Kernels;
use crate::tensor::{Flex, FlexDevice};

/// Ragged, with repeated tokens, a full example and an empty one.
fn examples(objective: &str) -> Vec<Example> {
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

fn clipped<B: Kernels>(network: &Network, examples: &[Example], bound: f64, device: &B::Device) -> Vec<f64> {
    let weights = moved_weights::<B>(network, 61, device);
    let lot = Lot { examples, physical_batch: 4, shape: network.shape(), recompute: false, device };
    flatten(clipped_sum(network, &weights, &lot, bound, plan::Clipping::Flat))
}

#[test]
fn clipped_sums_of_all_families_on_wgpu_equal_the_loop_and_the_cpu() {
    let gpu = WgpuDevice::default();
    let cases = [
        (json!({ "family": "gpt2" }), "causal_lm"),
        (json!({ "family": "decoder", "kv_heads": 1, "d_head": 6 }), "causal_lm"),
        (json!({ "family": "decoder", "untied": true }), "causal_lm"),
        (json!({ "family": "feed_forward", "history": 3 }), "causal_lm"),
        (json!({ "family": "t5" }), "prefix_lm"),
        (json!({ "family": "t5_v1_1" }), "prefix_lm"),
        (json!({ "family": "bert" }), "masked_lm"),
        (json!({ "family": "bert" }), "masked_lm_next_sentence"),
    ];
    for (model, objective) in cases {
        let name = model["family"].to_string() + objective;
        let examples = examples(objective);
        let network = testing::network(&model, objective, 23);
        let here = moved_weights::<Flex>(&network, 61, &FlexDevice);
        let bound = median_norm(&network, &here, &examples, &FlexDevice);
        let there = clipped::<Wgpu>(&network, &examples, bound, &gpu);
        let by_loop =
            clipped_sum_by_loop(&network, &moved_weights::<Wgpu>(&network, 61, &gpu), &examples, bound, &gpu);
        let on_cpu = clipped::<Flex>(&network, &examples, bound, &FlexDevice);
        let distances = [relative_distance(&there, &by_loop), relative_distance(&there, &on_cpu)];
        assert!(distances.iter().all(|&distance| distance < 1e-4), "{name}: {distances:?}");
    }
}
