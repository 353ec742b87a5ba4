//! T5 and BERT as a user trains them: agreement with `transformers`
//! (tests/vectors/make_encoders.py), and whole runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::vectors::{self, read_json, tensors, vectors};
use common::{Bench, stderr, tiny, tiny_with_vocabulary};
use network::Example;
use network::model::Network;
use network::tensor::{Flex, FlexDevice};
use serde_json::{Value, json};
use training::infer::InferenceModel;
use training::verify::verify_run;

const MODELS: [&str; 4] = ["t5_tiny", "t5_v1_1_tiny", "bert_tiny", "bert_masked_tiny"];

fn network(name: &str) -> Network {
    let (model, objective, vocab_size) = vectors::planned(name);
    vectors::network(&model, &objective, vocab_size)
}

fn example(value: &Value) -> Example {
    let read = |field: &str| serde_json::from_value::<Vec<u32>>(value[field].clone()).unwrap_or_default();
    Example {
        input: read("input"),
        segments: read("segments"),
        decoder_input: read("decoder_input"),
        positions: read("positions"),
        targets: read("targets"),
        sentence: value["sentence"].as_u64().map(|class| class as u32),
        ..Example::default()
    }
}

#[test]
fn logits_and_likelihoods_equal_those_of_transformers() {
    for name in MODELS {
        let weights = tensors(&vectors(name).join("model.safetensors"));
        let model = InferenceModel::<Flex>::new(network(name), weights, 3, FlexDevice).unwrap();
        let (mut examples, mut total) = (Vec::new(), 0.0);
        for case in read_json(&vectors(name).join("expected.json"))["examples"].as_array().unwrap() {
            let example = example(case);
            let want: Vec<Vec<f32>> = serde_json::from_value(case["logits"].clone()).unwrap();
            let got = model.logits(&example).unwrap();
            assert_eq!(got.len(), want.len());
            let worst = got.iter().flatten().zip(want.iter().flatten()).map(|(a, b)| (a - b).abs());
            let worst = worst.fold(0.0, f32::max);
            // Logits are of order 10 in f32. Sums of up to 61 products have another order.
            assert!(worst < 1e-4, "{name}: {worst}");
            total += case["mean_nll"].as_f64().unwrap() * example.targets.len() as f64;
            examples.push(example);
        }
        // In one batch, padded to its full shape, in another precision.
        let (sum, _) = model.nll(&examples).unwrap();
        assert!((sum / total - 1.0).abs() < 1e-5, "{name}: {sum} {total}");
    }
}

#[test]
fn names_shapes_and_config_are_those_of_transformers() {
    for name in MODELS {
        let network = network(name);
        vectors::check_tensors(name, &network, &[]);
        let (ours, theirs) = (network.hf_config(), read_json(&vectors(name).join("config.json")));
        let told = ["torch_dtype", "n_positions", "tie_word_embeddings", "initializer_factor"];
        for (field, value) in
            ours.as_object().unwrap().iter().filter(|(field, _)| !told.contains(&field.as_str()))
        {
            assert_eq!(value, &theirs[field], "{name}: {field}");
        }
    }
}

fn plan(family: &str, objective: &str, mut plan: Value) -> Value {
    plan["model"] =
        json!({ "family": family, "d_model": 16, "layers": 1, "heads": 2, "d_ff": 32, "context": 24 });
    plan["training"]["objective"] = json!(objective);
    plan["training"]["steps"] = json!(6);
    plan["evaluation"]["every"] = json!(3);
    plan
}

const RUNS: [(&str, &str); 5] = [
    ("t5", "span_corruption"),
    ("t5_v1_1", "prefix_lm"),
    ("t5_v1_1", "span_corruption"),
    ("bert", "masked_lm"),
    ("bert", "masked_lm_next_sentence"),
];

/// Exports a run and gives the folder.
fn export(bench: &Bench, run: &str) -> PathBuf {
    let out = bench.path("exported");
    let output = Command::new(env!("CARGO_BIN_EXE_trainer-native"))
        .args(["export", bench.path(run).to_str().unwrap(), "--out", out.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    out
}

/// A run of each objective ends, verifies, repeats bit for bit with a known key, and continues in
/// the same way after a stop.
#[test]
fn every_objective_trains_verifies_and_repeats() {
    for (family, objective) in RUNS {
        let bench = Bench::new(&plan(family, objective, tiny()));
        assert_eq!(
            bench.model("a", &["--test-key", "3"]),
            bench.model("b", &["--test-key", "3"]),
            "{objective}"
        );
        bench.model("private", &[]);
        assert!(verify_run(&bench.path("private")).unwrap().private);
        let evaluation = read_json(&bench.path("private").join("evaluation.json"));
        let perplexity = evaluation["perplexity"].as_f64().unwrap();
        assert!(perplexity.is_finite() && perplexity > 1.0, "{family} {objective}: {perplexity}");
        let exported = export(&bench, "private");
        let card = std::fs::read_to_string(exported.join("README.md")).unwrap();
        assert!(
            card.contains(if family == "bert" { "- fill-mask" } else { "- text2text-generation" }),
            "{card}"
        );
        let accuracy = evaluation["token_accuracy"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&accuracy), "{family} {objective}: {accuracy}");
        // The model is hardly trained, so the order of sentences is a guess: ln 2 each.
        let sentences = &evaluation["sentences"];
        assert_eq!(sentences.is_object(), objective == "masked_lm_next_sentence", "{objective}: {sentences}");
        if let Some(nll) = sentences["nll"].as_f64() {
            assert!(
                (nll - 2.0_f64.ln()).abs() < 0.3 && sentences["pairs"].as_u64() > Some(10),
                "{sentences}"
            );
        }
    }
}

/// A trained vocabulary has the tokens that the objective needs, and names them to other tools.
#[test]
fn trained_vocabularies_have_the_tokens_of_their_objective() {
    let read = |family, objective| {
        let bench = Bench::new(&plan(family, objective, tiny_with_vocabulary()));
        bench.model("run", &[]);
        let config = read_json(&bench.path("run").join("tokenizer_config.json"));
        (config, read_json(&bench.path("run").join("config.json")), bench)
    };
    let (tokens, config, bench) = read("bert", "masked_lm");
    let roles = ["mask_token", "cls_token", "sep_token", "pad_token"].map(|role| tokens[role].clone());
    assert_eq!(roles, ["[MASK]", "[CLS]", "[SEP]", "<pad>"]);
    // As transformers' own tokenizer of BERT has them, and no other tokenizer here.
    assert_eq!(tokens["model_input_names"], json!(["input_ids", "token_type_ids", "attention_mask"]));
    let limit = 420;
    assert!(config["vocab_size"].as_u64().unwrap() <= limit, "special tokens count within the limit");
    let output = Command::new(env!("CARGO_BIN_EXE_trainer-native"))
        .args(["generate", bench.path("run").to_str().unwrap(), "--prompt", "a"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("fills masked places"), "{}", stderr(&output));
    let (tokens, config, bench) = read("t5", "span_corruption");
    assert!(tokens["additional_special_tokens"].as_array().unwrap().contains(&json!("<extra_id_0>")));
    assert!(tokens["model_input_names"].is_null());
    assert_eq!(config["decoder_start_token_id"], config["pad_token_id"]);
    let output = Command::new(env!("CARGO_BIN_EXE_trainer-native"))
        .args(["generate", bench.path("run").to_str().unwrap(), "--tokens", "5", "--seed", "1"])
        .args(["--prompt", "Patient <extra_id_0> with pain"])
        .output()
        .unwrap();
    assert!(output.status.success() && !output.stdout.is_empty(), "{}", stderr(&output));
}

/// `transformers` loads the export of a run, including special tokens, and computes the logits of
/// the trainer. Without Python, the names and shapes are compared with those that `transformers`
/// wrote (above).
#[test]
fn what_a_run_leaves_computes_the_same_in_transformers() {
    let Some(python) = std::env::var_os("TRANSFORMERS_PYTHON") else {
        eprintln!("TRANSFORMERS_PYTHON names no Python with transformers: models are not loaded with it");
        return;
    };
    for (family, objective) in RUNS.into_iter().chain([("gpt2", "causal_lm"), ("decoder", "causal_lm")]) {
        let bench = Bench::new(&plan(family, objective, tiny()));
        bench.model("run", &[]);
        let exported = export(&bench, "run");
        let (run, file) = (exported, std::fs::read_to_string(bench.path("plan.json")).unwrap());
        let plan = plan::Plan::try_from(plan::PlanFile::parse(&file).unwrap()).unwrap();
        let config = read_json(&run.join("config.json"));
        let vocab_size = config["vocab_size"].as_u64().unwrap() as usize;
        let network = Network::new(plan.model(), plan.training(), vocab_size).unwrap();
        let weights = tensors(&run.join("model.safetensors"));
        let model = InferenceModel::<Flex>::new(network, weights, 2, FlexDevice).unwrap();
        let mut example = Example { input: (50..60).collect(), ..Example::default() };
        if family == "bert" {
            example.positions = vec![2, 7];
            example.segments = vec![0; 10];
            example.targets = vec![1, 2];
        } else if objective != "causal_lm" {
            example.decoder_input = vec![0, 60, 61];
            example.targets = vec![60, 61, 62];
        }
        let sent = json!([{
            "input": example.input, "decoder_input": example.decoder_input, "segments": example.segments,
            "positions": example.positions
        }]);
        let read = vectors::read_by_transformers(&python, &run, &sent);
        let theirs: Vec<Vec<f32>> = serde_json::from_value(read["logits"][0].clone()).unwrap();
        let ours = model.logits(&example).unwrap();
        let pairs = ours.iter().flatten().zip(theirs.iter().flatten());
        let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-4 && ours.len() == theirs.len(), "{family} {objective}: {worst}");
        match family {
            "bert" => assert_eq!([&read["mask"], &read["cls"], &read["sep"]], ["[MASK]", "[CLS]", "[SEP]"]),
            _ => assert!(objective != "span_corruption" || read["sentinel"].as_u64() > Some(2)),
        }
    }
}

/// A public tokenizer without the objective's tokens is refused before anything is written.
#[test]
fn a_tokenizer_without_the_tokens_of_the_objective_is_refused() {
    let source = Bench::new(&tiny());
    source.model("run", &[]);
    let tokenizer = std::fs::read(source.path("run").join("tokenizer.json")).unwrap();
    for (family, objective, lacks) in
        [("t5", "span_corruption", "<extra_id_0>"), ("bert", "masked_lm", "[CLS]")]
    {
        let mut plan = plan(family, objective, tiny());
        plan["tokenizer"] = json!({ "public": { "path": "tokenizer.json", "made_from": "public_text" } });
        let bench = Bench::new(&plan);
        std::fs::write(bench.path("tokenizer.json"), &tokenizer).unwrap();
        let output = bench.run("run", &[]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(lacks) && stderr(&output).contains("have one trained"));
        assert!(!bench.path("run").exists());
    }
}
