//! Decoders agree with `transformers`, and the feed-forward model with torch, on checkpoints that these wrote
//! (tests/vectors/make_decoders.py, tests/vectors/feed_forward_tiny/make.py).

#![allow(clippy::unwrap_used, reason = "a test stops at its first surprise")]

mod common;

use std::path::{Path, PathBuf};

use common::vectors::{self, read_json, vectors};
use network::Example;
use network::model::Network;
use network::pretrained::{Assigned, PretrainedCheckpoint, describe};
use network::tensor::{Flex, FlexDevice};
use network::tensor_file::{Formatted, NumberFormat, PrivacyMark, write_model};
use serde_json::{Value, json};
use training::infer::InferenceModel;

fn cases() -> Vec<(PathBuf, Value)> {
    ["gpt2_tiny", "gemma_tiny", "gemma_untied", "llama_tiny", "feed_forward_tiny"]
        .map(|name| (vectors(name), vectors::planned(name).0))
        .into()
}

fn network(checkpoint: &PretrainedCheckpoint, model: &Value) -> Network {
    vectors::network(model, "causal_lm", checkpoint.vocab_size(1).unwrap())
}

/// A model with the weights of the folder's checkpoint.
fn model(folder: &Path, model: &Value) -> InferenceModel<Flex> {
    let checkpoint = PretrainedCheckpoint::read(folder).unwrap();
    let network = network(&checkpoint, model);
    let Assigned { weights, ignored, .. } =
        checkpoint.weights(&network.specs(), &network.hf_config()).unwrap();
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
                // Logits are of order 10 in f32, given to six decimals, and sums have another
                // order.
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
        let ours = network(&PretrainedCheckpoint::read(&folder).unwrap(), &model).hf_config();
        let theirs = read_json(&folder.join("config.json"));
        let mut compared = 0;
        for (name, value) in ours.as_object().unwrap() {
            // Names of older versions of transformers that newer versions still read.
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
    for name in ["t5_tiny", "t5_v1_1_tiny", "bert_tiny", "bert_masked_tiny"] {
        let (model, objective, vocab_size) = vectors::planned(name);
        read_whole(name, &vectors::network(&model, &objective, vocab_size), &[]);
    }
    // A model without next-sentence prediction does not use that head of the checkpoint.
    let (model, _, vocab_size) = vectors::planned("bert_tiny");
    let sentence = ["bert.pooler.dense", "cls.seq_relationship"];
    read_whole("bert_tiny", &vectors::network(&model, "masked_lm", vocab_size), &sentence);
}

/// Reads the checkpoint into the network, which must leave out the weight and the bias of each
/// layer in `ignored`.
fn read_whole(name: &str, network: &Network, ignored: &[&str]) {
    let checkpoint = PretrainedCheckpoint::read(&vectors(name)).unwrap();
    let Assigned { weights, ignored: mut left, .. } =
        checkpoint.weights(&network.specs(), &network.hf_config()).unwrap();
    left.sort_unstable();
    let want: Vec<_> =
        ignored.iter().flat_map(|layer| ["bias", "weight"].map(|part| format!("{layer}.{part}"))).collect();
    assert_eq!(left, want);
    InferenceModel::<Flex>::new(network.clone(), weights, 3, FlexDevice).unwrap();
}

/// A saved checkpoint with all its settings is the same model in `transformers`.
#[test]
fn transformers_reads_what_is_saved_of_its_checkpoints() {
    let Some(python) = std::env::var_os("TRANSFORMERS_PYTHON") else {
        eprintln!("TRANSFORMERS_PYTHON names no Python with transformers: models are not loaded with it");
        return;
    };
    for entry in std::fs::read_dir(vectors("rms_decoders")).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let checkpoint = PretrainedCheckpoint::read(&folder).unwrap();
        let model = serde_json::to_value(describe(&folder).unwrap()).unwrap();
        let network = network(&checkpoint, &model);
        let weights = checkpoint.weights(&network.specs(), &network.hf_config()).unwrap().weights;
        let saved = tempfile::tempdir().unwrap();
        // As the end of a run writes it.
        let mut config = network.hf_config();
        config["pad_token_id"] = Value::Null;
        std::fs::write(saved.path().join("config.json"), config.to_string()).unwrap();
        let written = |tensor| Formatted { tensor, format: NumberFormat::F32 };
        let tensors = weights.iter().map(|tensor| (&*tensor.name, written(tensor))).collect();
        let public = PrivacyMark { promise: "public".to_owned(), id: None };
        write_model(&saved.path().join("model.safetensors"), tensors, &public).unwrap();
        let expected = read_json(&folder.join("expected.json"));
        let sent = json!([{ "input": expected["texts"][0], "decoder_input": [], "positions": [] }]);
        let read = vectors::read_by_transformers(&python, saved.path(), &sent);
        let logits = |of: &Value| serde_json::from_value::<Vec<Vec<f32>>>(of.clone()).unwrap().concat();
        let (got, want) = (logits(&read["logits"][0]), logits(&expected["logits"]));
        let worst = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-4 && got.len() == want.len(), "{folder:?}: {worst}");
    }
}
