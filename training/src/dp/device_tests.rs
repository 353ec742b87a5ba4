//! Tests of every family on a GPU or software Vulkan: the clipped sum equals that of the loop over
//! single examples on the same device, and that on the CPU.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mechanisms::{GaussianMechanism, TestRng};
use serde_json::json;

use super::reference::{
    clipped_sum, clipped_sum_by_loop, examples, flatten, median_norm, moved_weights, relative_distance,
};
use super::{Lot, NoisyAverage, PrivateGradient, noise_alone};
use crate::network_tests::testing;
use network::Example;
use network::model::Network;
use network::nn::{Initializer, Kernels, ParamSpec};
use network::tensor::{Flex, FlexDevice, Wgpu, WgpuDevice, to_host};

fn clipped<B: Kernels>(network: &Network, examples: &[Example], bound: f64, device: &B::Device) -> Vec<f64> {
    let weights = moved_weights::<B>(network, 61, device);
    let lot = Lot {
        examples,
        physical_batch: 4,
        shape: network.shape(),
        recompute: false,
        group_by_length: false,
        device,
        shards: None,
    };
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

#[test]
fn a_device_releases_the_bits_of_the_cpu() {
    fn released<B: Kernels>(device: &B::Device) -> Vec<Vec<f32>> {
        let spec = |&length: &usize| ParamSpec {
            name: String::new(),
            shape: vec![length],
            initial: Initializer::Constant(0.0),
        };
        let specs: Vec<ParamSpec> = [100, 1, 70_003].iter().map(spec).collect();
        let noise = GaussianMechanism::new(2.0).unwrap();
        let release = NoisyAverage { noise, step: 3, divisor: 16.0 };
        let gradient: PrivateGradient<B> = noise_alone(&specs, 0.5, &release, &TestRng::from_seed(1), device);
        gradient.into_parts().into_iter().map(to_host).collect()
    }
    let there = released::<Wgpu>(&WgpuDevice::default());
    assert_eq!(there, released::<Flex>(&FlexDevice));
    assert_ne!(there[0], there[2][..100]);
}
