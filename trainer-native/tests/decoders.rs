//! Decoders agree with `transformers`, and the feed-forward model with torch, on checkpoints that these wrote
//! (tests/vectors/make_decoders.py, tests/vectors/feed_forward_tiny/make.py).

#![allow(clippy::unwrap_used, reason = "a test stops at its first surprise")]

mod common;

use std::path::{Path, PathBuf};

use common::vectors::{self, read_json, vectors};
use serde_json::{Value, json};
use trainer_native::data::Example;
use trainer_native::infer::InferenceModel;
use trainer_native::model::Network;
use trainer_native::pretrained::Checkpoint;
use trainer_native::tensor::{Flex, FlexDevice};

fn cases() -> Vec<(PathBuf, Value)> {
    let gemma = |layers: u32, kv_heads: u32, untied: bool| {
        json!({ "family": "decoder", "d_model": 8, "layers": layers, "heads": 4, "kv_heads": kv_heads, "d_head": 6,
                "d_ff": 20, "context": 12, "untied": untied })
    };
    let llama = json!({ "family": "llama", "d_model": 8, "layers": 2, "heads": 4, "kv_heads": 2, "d_head": 6,
                        "d_ff": 20, "context": 12, "untied": true });
    let feed_forward = json!({ "family": "feed_forward", "d_model": 5, "layers": 3, "heads": 1, "d_ff": 12,
                               "context": 10, "history": 4, "hidden": [12, 9, 6] });
    let folder = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    let gpt2 = json!({ "family": "gpt2", "d_model": 16, "layers": 2, "heads": 4, "d_ff": 40, "context": 12 });
    vec![
        (folder("gpt2_tiny"), gpt2),
        (folder("gemma_tiny"), gemma(2, 2, false)),
        (folder("gemma_untied"), gemma(1, 1, true)),
        (folder("llama_tiny"), llama),
        (folder("feed_forward_tiny"), feed_forward),
    ]
}

fn network(checkpoint: &Checkpoint, model: &Value) -> Network {
    vectors::network(model, "causal_lm", checkpoint.vocab_size(1).unwrap())
}

/// A model with the weights of the folder's checkpoint.
fn model(folder: &Path, model: &Value) -> InferenceModel<Flex> {
    let checkpoint = Checkpoint::read(folder).unwrap();
    let network = network(&checkpoint, model);
    let (weights, ignored) = checkpoint.weights(&network.specs(), &network.hf_config()).unwrap();
    assert!(ignored.is_empty());
    InferenceModel::new(network, weights, 3, FlexDevice).unwrap()
}

#[test]
fn logits_and_likelihood_equal_those_of_the_oracle() {
    for (folder, model) in cases() {
        let model = self::model(&folder, &model);
        for example in read_json(&folder.join("expected.json"))["examples"].as_array().unwrap() {
            let tokens: Vec<u32> = serde_json::from_value(example["tokens"].clone()).unwrap();
            let want: Vec<Vec<f32>> = serde_json::from_value(example["logits"].clone()).unwrap();
            for (length, want) in (1..).zip(want) {
                let got = model.next_token_logits(&tokens[..length], &[]).unwrap();
                let worst = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                // Logits of order 10 in f32, given to six decimals, sums in another order.
                assert!(worst < 2e-5 && got.len() == want.len(), "{folder:?} at {length}: {worst}");
            }
            let (sum, count) = model.nll(&[Example::causal(&tokens)]).unwrap();
            let mean = example["mean_nll"].as_f64().unwrap();
            assert!((sum / count as f64 - mean).abs() < 1e-5, "{folder:?}");
        }
    }
}

#[test]
fn config_is_the_oracles() {
    for (folder, model) in cases() {
        let ours = network(&Checkpoint::read(&folder).unwrap(), &model).hf_config();
        let theirs = read_json(&folder.join("config.json"));
        let mut compared = 0;
        for (name, value) in ours.as_object().unwrap() {
            // Names of older versions of transformers that the newer still read.
            if theirs.get(name).is_some() && name != "torch_dtype" {
                assert_eq!(value, &theirs[name], "{folder:?} {name}");
                compared += 1;
            }
        }
        assert!(compared >= 9);
    }
}

/// Checkpoints of the other families are read too. encoders.rs compares their logits.
#[test]
fn checkpoints_of_encoders_are_read_whole() {
    let models = [
        ("t5_tiny", "t5", "span_corruption", 40),
        ("t5_v1_1_tiny", "t5_v1_1", "span_corruption", 40),
        ("bert_tiny", "bert", "masked_lm_next_sentence", 16),
        ("bert_masked_tiny", "bert", "masked_lm", 16),
        // A model without next-sentence prediction leaves that head of the checkpoint out.
        ("bert_tiny", "bert", "masked_lm", 16),
    ];
    for (name, family, objective, context) in models {
        let model = json!({ "family": family, "d_model": 16, "layers": 2, "heads": 4, "d_ff": 24, "context": context });
        let network = vectors::network(&model, objective, 61);
        let checkpoint = Checkpoint::read(&vectors(name)).unwrap();
        let (weights, ignored) = checkpoint.weights(&network.specs(), &network.hf_config()).unwrap();
        let head =
            |name: &String| name.starts_with("bert.pooler.") || name.starts_with("cls.seq_relationship.");
        assert!(
            ignored.iter().all(head)
                && (ignored.len() == 4) == (objective == "masked_lm" && name == "bert_tiny")
        );
        InferenceModel::<Flex>::new(network, weights, 3, FlexDevice).unwrap();
    }
}
