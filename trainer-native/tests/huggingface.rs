//! Agreement with `transformers` on a randomly initialised GPT-2 that it wrote (tests/vectors/make_decoders.py).

#![allow(clippy::unwrap_used, reason = "a test stops at its first surprise")]

mod common;

use std::path::PathBuf;

use common::vectors::{read_json, tensors, training, vectors};
use mechanisms::{PrivacyRng, Purpose, TestRng};
use network::Example;
use network::tensor::{Flex, FlexDevice};
use network::tensor_file::{NamedTensor, StoredValues, TensorError};
use serde_json::{Value, json};
use training::infer::InferenceModel;
use training::train::{Trainer, TrainerError};

/// A file of the model that `transformers` wrote.
fn written(file: &str) -> PathBuf {
    vectors("gpt2_tiny").join(file)
}

fn written_by_transformers() -> Vec<NamedTensor> {
    tensors(&written("model.safetensors"))
}

fn trainer(start: Vec<NamedTensor>) -> Trainer<Flex> {
    let model =
        json!({ "family": "gpt2", "d_model": 16, "layers": 2, "heads": 4, "d_ff": 40, "context": 12 });
    let (model, training) = (serde_json::from_value(model).unwrap(), training("causal_lm"));
    let mut init = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
    let stored =
        |NamedTensor { name, shape, data }| NamedTensor { name, shape, data: StoredValues::from(data) };
    let start = start.into_iter().map(stored).collect();
    Trainer::new(start, &model, &training, 61, &mut init, 3, FlexDevice).unwrap()
}

fn model() -> InferenceModel<Flex> {
    trainer(written_by_transformers()).inference()
}

fn tokens(example: &Value) -> Vec<u32> {
    serde_json::from_value(example["tokens"].clone()).unwrap()
}

#[test]
fn logits_equal_those_of_transformers() {
    let model = model();
    for example in read_json(&written("expected.json"))["examples"].as_array().unwrap() {
        let tokens = tokens(example);
        let want: Vec<Vec<f32>> = serde_json::from_value(example["logits"].clone()).unwrap();
        for (length, want) in (1..).zip(want) {
            let got = model.next_token_logits(&tokens[..length], &[]).unwrap();
            let worst = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            // Logits of order 1 in f32, sums of up to 61 products in another order.
            assert!(worst < 1e-5, "{tokens:?} at {length}: {worst}");
        }
    }
}

#[test]
fn likelihood_equals_that_of_transformers_in_double_precision() {
    let model = model();
    let expected = read_json(&written("expected.json"));
    let (mut windows, mut want, mut targets) = (Vec::new(), 0.0, 0);
    for example in expected["examples"].as_array().unwrap() {
        let tokens = tokens(example);
        let count = tokens.len() - 1;
        let mean = example["mean_nll"].as_f64().unwrap();
        let (sum, counted) = model.nll(&[Example::causal(&tokens)]).unwrap();
        assert!((sum / count as f64 - mean).abs() < 1e-5 && counted == count as u64);
        want += mean * count as f64;
        targets += count as u64;
        windows.push(Example::causal(&tokens));
    }
    windows.extend([Example::causal(&[3]), Example::default()]);
    let (sum, counted) = model.nll(&windows).unwrap();
    assert!((sum / want - 1.0).abs() < 1e-5 && counted == targets, "padding must not count");
}

#[test]
fn names_shapes_and_config_are_those_of_transformers() {
    let trainer = trainer(Vec::new());
    let mut ours: Vec<_> = trainer.weights().into_iter().map(|tensor| (tensor.name, tensor.shape)).collect();
    let mut theirs: Vec<_> =
        written_by_transformers().into_iter().map(|tensor| (tensor.name, tensor.shape)).collect();
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
    let (ours, theirs) = (trainer.hf_config(), read_json(&written("config.json")));
    for field in ["model_type", "vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"] {
        assert_eq!(ours[field], theirs[field], "{field}");
    }
    for field in ["activation_function", "tie_word_embeddings", "layer_norm_epsilon", "architectures"] {
        assert_eq!(ours[field], theirs[field], "{field}");
    }
}

#[test]
fn a_state_that_does_not_fit_is_refused_and_changes_nothing() {
    let mut trainer = trainer(Vec::new());
    let before = trainer.state();
    let mut missing = before.clone();
    let dropped = missing.remove(3);
    assert_eq!(
        trainer.load_state(missing),
        Err(TrainerError::State(TensorError { name: dropped.name, problem: "is missing" }))
    );
    let mut reshaped = before.clone();
    reshaped[0].shape.reverse();
    assert!(trainer.load_state(reshaped).unwrap_err().to_string().contains("another shape"));
    let mut unknown = before.clone();
    unknown.push(NamedTensor { name: "lm_head.weight".into(), shape: vec![1], data: vec![0.0] });
    assert!(trainer.load_state(unknown).unwrap_err().to_string().contains("not one of the model's"));
    assert_eq!(trainer.state(), before);
}
