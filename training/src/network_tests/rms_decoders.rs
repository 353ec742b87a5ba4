//! Tests of decoders with RMS norms against checkpoints that `transformers` wrote
//! (tests/vectors/rms_decoders/make.py). Their generated texts are compared in
//! `infer/generate/tests.rs`.

use mechanisms::{PrivacyRng, Purpose, TestRng};
use plan::Clipping;
use serde_json::{Value, json};

use crate::dp::clipped_sum;
use crate::dp::reference::{flatten, lot, moved_weights, norm, relative_distance, single_gradient};
use crate::network_tests::testing::{Described, rms_decoders};
use network::Example;
use network::model::*;
use network::nn::{ParamSpec, Selection, Weights};
use network::pretrained::PretrainedCheckpoint;
use network::tensor::{Flex, FlexDevice, FloatDType, Tensor, TensorData, to_host_f64};

const DEVICE: FlexDevice = FlexDevice;

fn weights(case: &Described) -> Weights<Flex> {
    let checkpoint = PretrainedCheckpoint::read(&case.folder).unwrap();
    let read = checkpoint.weights(&case.network.specs(), &case.network.hf_config()).unwrap();
    assert!(read.drawn.is_empty() && read.ignored.is_empty(), "{}: {:?}", case.name, read.ignored);
    let mut weights = moved_weights::<Flex>(&case.network, 1, &DEVICE);
    let values = read.weights.into_iter().map(|tensor| Tensor::from_data(tensor.data.as_slice(), &DEVICE));
    weights.replace(values.collect());
    weights
}

fn texts(case: &Described) -> Vec<Vec<u32>> {
    serde_json::from_value(case.expected["texts"].clone()).unwrap()
}

/// `describe` states only the settings that differ from the family's usual values.
#[test]
fn checkpoints_are_described_by_what_is_unusual_of_them() {
    let want = |name: &str| match name {
        "llama3" => json!({
            "rms_norm_eps": 1e-3, "rope_theta": 50.0,
            "rope_scaling": { "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                              "original_max_position_embeddings": 32 }
        }),
        "llama_biased" => json!({ "attention_bias": true, "mlp_bias": true }),
        "gemma_linear" => json!({
            "rms_norm_eps": 1e-4, "rope_theta": 300.0, "rope_scaling": { "rope_type": "linear", "factor": 4.0 }
        }),
        "qwen2" => json!({}),
        "qwen2_window" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 700.0, "sliding_window": 3,
            "layer_types": ["full_attention", "sliding_attention"]
        }),
        "qwen3" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 900.0,
            "rope_scaling": { "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64 }
        }),
        "mistral" => json!({ "rope_theta": 800.0, "sliding_window": 4 }),
        "gemma2" => json!({
            "rms_norm_eps": 1e-5, "sliding_window": 3, "query_pre_attn_scalar": 10, "attn_logit_softcapping": 1.5,
            "final_logit_softcapping": 4.0
        }),
        "gemma3" => json!({
            "rope_theta": 900.0, "rope_local_base_freq": 70.0, "rope_scaling": { "rope_type": "linear", "factor": 8.0 },
            "sliding_window": 3, "query_pre_attn_scalar": 10, "final_logit_softcapping": 4.0,
            "layer_types": ["sliding_attention", "full_attention"]
        }),
        // The file's window belongs to no layer.
        "vaultgemma" => json!({
            "rms_norm_eps": 1e-5, "query_pre_attn_scalar": 10, "attn_logit_softcapping": 1.5, "final_logit_softcapping": 4.0
        }),
        "olmo2" => json!({ "rms_norm_eps": 1e-5, "rope_theta": 800.0 }),
        "granite" => json!({
            "rms_norm_eps": 1e-4, "rope_theta": 700.0, "embedding_multiplier": 3.0, "attention_multiplier": 0.3,
            "residual_multiplier": 0.6, "logits_scaling": 2.0
        }),
        "smollm3" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 600.0, "no_rope_layers": [1, 0, 1], "mlp_bias": true
        }),
        "phi3" => json!({ "rms_norm_eps": 1e-4, "rope_theta": 600.0, "sliding_window": 5 }),
        name => panic!("{name} is not described"),
    };
    let all = rms_decoders();
    assert_eq!(all.len(), 14);
    for case in all {
        assert_eq!(json!(case.model.config), want(&case.name), "{}", case.name);
        assert_eq!((case.model.kv_heads, case.model.d_head), (Some(2), Some(6)));
        assert_eq!(case.model.initial, plan::Initial::Checkpoint(case.folder.display().to_string()));
    }
}

#[test]
fn logits_equal_those_of_transformers() {
    for case in rms_decoders() {
        let example = Example { input: texts(&case)[0].clone(), ..Example::default() };
        let batch = Batch::new(&[example], 1, case.network.shape(), FloatDType::F32, &DEVICE);
        let got = to_host_f64(case.network.logits(&weights(&case), batch));
        let want: Vec<Vec<f64>> = serde_json::from_value(case.expected["logits"].clone()).unwrap();
        let want = want.concat();
        let worst = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // Logits of order 3 in single precision, given to five decimals.
        assert!(worst < 2e-5, "{}: {worst}", case.name);
    }
}

/// Returns the products of each parameter with the three vectors of the oracle.
fn products(sum: &[f64], specs: &[ParamSpec]) -> Vec<(String, Vec<f64>)> {
    let mut rest = sum;
    let of_spec = |spec: &ParamSpec| {
        let (own, left) = rest.split_at(spec.len());
        rest = left;
        let product = |rate: f64| {
            own.iter().enumerate().map(|(place, value)| value * (place as f64 * rate + rate).sin()).sum()
        };
        (spec.name.clone(), [0.3, 1.1, 2.7].map(product).to_vec())
    };
    specs.iter().map(of_spec).collect()
}

fn assert_step_equals(case: &Described, weights: &Weights<Flex>, want: &Value, what: &str) {
    let examples: Vec<Example> = texts(case).iter().map(|text| Example::causal(text)).collect();
    let norms: Vec<f64> = serde_json::from_value(want["gradient_norms"].clone()).unwrap();
    for (example, want) in examples.iter().zip(norms) {
        let got = norm(&single_gradient(&case.network, weights, example, &DEVICE));
        // Angles of rotary positions are f32 in both.
        assert!((got / want - 1.0).abs() < 1e-5, "{what}: {got} {want}");
    }
    let bound = want["l2_clip_norm"].as_f64().unwrap();
    let of_rows = |rows: usize, recompute: bool| {
        let lot = crate::dp::Lot { recompute, ..lot(&case.network, &examples, rows) };
        flatten(clipped_sum(&case.network, weights, &lot, bound, Clipping::Flat))
    };
    let sum = of_rows(3, false);
    for (rows, recompute) in [(1, false), (5, false), (3, true)] {
        // Factors are f32, and norms are rounded up by 1e-5.
        assert!(relative_distance(&of_rows(rows, recompute), &sum) < 2e-5, "{what} {rows}");
    }
    let want = want["products"].as_object().unwrap();
    let got = products(&sum, weights.specs());
    assert_eq!(got.len(), want.len(), "{what}");
    for (name, got) in got {
        let want: Vec<f64> = serde_json::from_value(want[&name].clone()).unwrap();
        let distance = relative_distance(&got, &want);
        assert!(distance < 1e-4, "{what} {name}: {got:?} {want:?}");
    }
}

/// Oracle: torch in double precision, one text at a time.
#[test]
fn a_clipped_step_of_all_parameters_equals_the_loop_in_torch() {
    for case in rms_decoders() {
        let weights = weights(&case).cast(FloatDType::F64);
        assert_step_equals(&case, &weights, &case.expected["step"], &case.name);
    }
}

#[test]
fn a_clipped_step_of_adapters_equals_the_loop_in_torch() {
    for case in rms_decoders() {
        let fused = case.name == "phi3";
        let targets: &[&str] = if fused { &["qkv_proj", "gate_up_proj"] } else { &["q_proj", "v_proj"] };
        let targets = targets.iter().map(|target| (*target).to_owned()).collect();
        let trainable = plan::Trainable::Lora(plan::Lora { rank: 1, alpha: 3.0, targets });
        let layers = case.model.layers as usize;
        let selection = Selection::new(&trainable, case.network.layout(), layers).unwrap().unwrap();
        let mut stream = TestRng::from_seed(3).stream(Purpose::Initialization, 0, 0);
        let mut weights = weights(&case).restrict(selection, &mut stream, &DEVICE).cast(FloatDType::F64);
        let by_rule = |spec: &ParamSpec| {
            let value = |place: usize| match spec.name.ends_with("lora_A.weight") {
                true => (place as f64 * 1.3 + 0.2).sin() * 0.3,
                false => (place as f64 * 0.7 + 0.1).cos() * 0.3,
            };
            let values: Vec<f64> = (0..spec.len()).map(value).collect();
            let data = TensorData::new(values, [spec.len()]);
            Tensor::from_data(data, (&DEVICE, network::tensor::DType::F64))
        };
        weights.replace(weights.specs().iter().map(by_rule).collect());
        let what = format!("{} with adapters", case.name);
        assert_step_equals(&case, &weights, &case.expected["lora"], &what);
    }
}

/// Settings that a plan may not have in `model.config`.
#[test]
fn settings_that_a_family_does_not_take_are_refused_by_name() {
    let refusal = |family: &str, config: Value| {
        let model = json!({ "family": family, "d_model": 8, "layers": 2, "heads": 2, "d_ff": 12, "context": 14, "config": config });
        let training = json!({
            "objective": "causal_lm", "expected_batch_size": 4, "steps": 3, "l2_clip_norm": 1.0,
            "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-3 }
        });
        let (model, training) =
            (serde_json::from_value(model).unwrap(), serde_json::from_value(training).unwrap());
        let message = Network::new(&model, &training, 23).unwrap_err().to_string();
        assert!(message.starts_with("model.config: ") && !message.contains('\n'), "{message}");
        message
    };
    let layers = |types: &[&str]| json!({ "layer_types": types, "sliding_window": 3 });
    let (full, slides) = ("full_attention", "sliding_attention");
    for (family, config, words) in [
        ("gpt2", json!({ "rope_theta": 1e4 }), "allowed: nothing"),
        ("llama", json!({ "rope_thta": 1e4 }), "allowed: rms_norm_eps, rope_theta, rope_scaling"),
        ("llama", json!({ "sliding_window": 4 }), "\"llama\""),
        ("llama", json!({ "rope_theta": 0.0 }), "rope_theta = 0.0; allowed: a number > 0"),
        ("llama", json!({ "rms_norm_eps": "1e-5" }), "rms_norm_eps = \"1e-5\""),
        ("llama", json!({ "attention_bias": 1 }), "true or false"),
        ("llama", json!({ "rope_scaling": { "rope_type": "yarn", "factor": 2.0 } }), "yarn"),
        ("llama", json!({ "rope_scaling": { "rope_type": "linear", "factor": 2.0, "x": 1 } }), "linear"),
        (
            "llama",
            json!({ "rope_scaling": { "rope_type": "llama3", "factor": 2.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0,
                                      "original_max_position_embeddings": 64 } }),
            "the high factor above",
        ),
        ("granite", json!({ "logits_scaling": 0.0 }), "logits_scaling = 0.0; allowed: a number > 0"),
        ("smollm3", json!({ "no_rope_layers": [1, 2] }), "a list with 1 (rotary positions) or 0 (none)"),
        ("smollm3", json!({ "no_rope_layers": [1] }), "no_rope_layers lists 1 layers"),
        ("gptj", json!({ "rotary_dim": 5 }), "rotary_dim = 5 of the 4 coordinates"),
        ("phi3", json!({ "rope_scaling": null }), "sliding_window"),
        ("mistral", json!({ "sliding_window": 0 }), "a whole number ≥ 1, or null"),
        ("gemma2", json!({ "final_logit_softcapping": -1 }), "a number > 0, or null"),
        ("qwen2", layers(&[full]), "lists 1 layers"),
        ("qwen2", layers(&[full, full]), "no layer has it"),
        ("qwen2", json!({ "layer_types": [full, slides] }), "without sliding_window"),
        ("qwen2", json!({ "layer_types": [full, "linear_attention"] }), "linear_attention"),
    ] {
        let message = refusal(family, config.clone());
        assert!(message.contains(words), "{family} {config}: {message}");
    }
}
