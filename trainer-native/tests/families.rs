//! Families other than the oldest ones agree with `transformers` in names, shapes and
//! configuration, and `transformers` computes the same with a model that is written here
//! (tests/vectors/make_families.py). `src/network_tests/recorded.rs` compares logits and gradients.

#![allow(clippy::unwrap_used, reason = "a test stops at its first surprise")]

mod common;

use std::path::Path;
use std::process::Command;

use common::vectors::{self, read_json, tensors, vectors};
use common::{Bench, ROBERTA, stderr, tiny, word_tokenizer};
use durable::FileError;
use network::model::Network;
use network::pretrained::{Assigned, PretrainedCheckpoint};
use network::tensor_file::NamedTensor;
use serde_json::{Value, json};
use training::verify::verify_run;

const MODELS: [&str; 24] = [
    "roberta_tiny",
    "roberta_classifier_tiny",
    "roberta_tagger_tiny",
    "distilbert_tiny",
    "distilbert_classifier_tiny",
    "distilbert_tagger_tiny",
    "electra_tiny",
    "electra_classifier_tiny",
    "electra_tagger_tiny",
    "mt5_tiny",
    "gpt_neox_tiny",
    "gpt_neox_tied_tiny",
    "phi_tiny",
    "stablelm_tiny",
    "stablelm_parallel_tiny",
    "gptj_tiny",
    "opt_tiny",
    "gpt_neo_tiny",
    "bart_tiny",
    "mbart_tiny",
    "marian_tiny",
    "modernbert_tiny",
    "modernbert_classifier_tiny",
    "modernbert_tagger_tiny",
];

fn network(name: &str) -> Network {
    let (model, objective, vocab_size) = vectors::planned(name);
    let mut training = vectors::training(&objective);
    if objective.ends_with("classification") {
        training.labels = Some(["LABEL_0", "LABEL_1", "LABEL_2"].map(str::to_owned).into());
    }
    Network::new(&serde_json::from_value(model).unwrap(), &training, vocab_size).unwrap()
}

fn read(name: &str, folder: &Path) -> Result<Assigned, FileError> {
    let network = network(name);
    PretrainedCheckpoint::read(folder)?.weights(&network.specs(), &network.hf_config())
}

#[test]
fn names_shapes_and_config_are_those_of_transformers() {
    for name in MODELS {
        let network = network(name);
        // This tensor of BART and mBART holds zeros, and transformers does not need it in the file.
        let absent: &[&str] = if name == "marian_tiny" { &[] } else { &["final_logits_bias"] };
        vectors::check_tensors(name, &network, absent);
        let (ours, theirs) = (network.hf_config(), read_json(&vectors(name).join("config.json")));
        let mut compared = 0;
        for (field, value) in ours.as_object().unwrap() {
            // mT5 is written as T5, and the field of tied tables has another meaning in each
            // version.
            let told = ["torch_dtype", "problem_type", "attention_types"].contains(&field.as_str())
                || name == "mt5_tiny"
                    && ["model_type", "architectures", "tie_word_embeddings"].contains(&field.as_str());
            if theirs.get(field).is_some() && !told {
                assert_eq!(value, &theirs[field], "{name}: {field}");
                compared += 1;
            }
        }
        assert!(compared >= 9, "{name}: {compared}");
    }
}

/// Writes the tensors of a checkpoint.
fn write(folder: &Path, tensors: Vec<NamedTensor>) {
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|one| (one.name, one.shape, one.data.iter().flat_map(|value| value.to_le_bytes()).collect()))
        .collect();
    let views = bytes.iter().map(|(name, shape, data)| {
        (name, safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), data).unwrap())
    });
    // transformers does not read a file that does not name its format.
    let marks = std::collections::HashMap::from([("format".to_owned(), "pt".to_owned())]);
    std::fs::write(folder.join("model.safetensors"), safetensors::serialize(views, Some(marks)).unwrap())
        .unwrap();
}

/// Writes a checkpoint's weights with our configuration, and lets `transformers` compute the
/// logits. Without Python, only the names and the configuration are compared (above).
#[test]
fn what_is_written_computes_the_same_in_transformers() {
    let Some(python) = std::env::var_os("TRANSFORMERS_PYTHON") else {
        eprintln!("TRANSFORMERS_PYTHON names no Python with transformers: models are not loaded with it");
        return;
    };
    for name in MODELS {
        let folder = tempfile::tempdir().unwrap();
        let network = network(name);
        let (mut config, theirs) = (network.hf_config(), read_json(&vectors(name).join("config.json")));
        // A run adds those of its tokenizer.
        for (field, id) in
            theirs.as_object().unwrap().iter().filter(|(field, _)| field.ends_with("_token_id"))
        {
            config[field] = id.clone();
        }
        std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        write(folder.path(), read(name, &vectors(name)).unwrap().weights);
        let examples = read_json(&vectors(name).join("expected.json"))["examples"].take();
        let there = vectors::read_by_transformers(&python, folder.path(), &examples);
        for (example, logits) in examples.as_array().unwrap().iter().zip(there["logits"].as_array().unwrap())
        {
            let rows: Vec<usize> = serde_json::from_value(example["logits_at"].clone()).unwrap();
            for (row, want) in rows.into_iter().zip(example["logits"].as_array().unwrap()) {
                let got = logits[row].as_array().unwrap().iter().zip(want.as_array().unwrap());
                let worst = got.map(|(a, b)| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs());
                let worst = worst.fold(0.0, f64::max);
                assert!(worst < 1e-4, "{name}: {worst}");
            }
        }
    }
}

/// Reads a copy of a checkpoint with fields of its config.json changed.
fn changed(name: &str, fields: &Value) -> Result<Assigned, FileError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(vectors(name).join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    let mut config = read_json(&vectors(name).join("config.json"));
    for (field, value) in fields.as_object().unwrap() {
        match value {
            Value::Null => config.as_object_mut().unwrap().remove(field),
            value => config.as_object_mut().unwrap().insert(field.clone(), value.clone()),
        };
    }
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    read(name, folder.path())
}

/// A model, changed fields of its config.json, and a part of the refusal.
fn refusals() -> Vec<(&'static str, Value, &'static str)> {
    let turned = &json!({ "rope_theta": 10_000.0, "rope_type": "linear", "factor": 2.0 });
    vec![
        ("roberta_tiny", json!({ "pad_token_id": 3 }), "pad_token_id = 3; allowed: 1"),
        ("roberta_tiny", json!({ "hidden_act": "quick_gelu" }), "hidden_act = \"quick_gelu\""),
        ("roberta_tiny", json!({ "model_type": "camembert" }), "model_type = \"camembert\""),
        ("roberta_tiny", json!({ "hidden_size": null }), "hidden_size = null"),
        ("roberta_tiny", json!({ "max_position_embeddings": 12 }), "model.context makes it 14"),
        ("roberta_tiny", json!({ "layer_norm_eps": 1e-12 }), "layer_norm_eps = 1e-12"),
        ("distilbert_tiny", json!({ "activation": "relu" }), "activation = \"relu\""),
        ("distilbert_tiny", json!({ "dim": 12 }), "model.d_model makes it 8"),
        ("mt5_tiny", json!({ "d_kv": 4 }), "model.d_head makes it 6"),
        ("gpt_neox_tiny", json!({ "use_parallel_residual": false }), "use_parallel_residual = false"),
        ("gpt_neox_tiny", json!({ "rope_parameters": turned }), "\"linear\""),
        ("gpt_neox_tiny", json!({ "rope_scaling": { "type": "linear", "factor": 2.0 } }), "rope_scaling"),
        ("gpt_neox_tiny", json!({ "rope_parameters": null, "rotary_pct": 1.0 }), "rotary_pct = 1.0"),
        ("gpt_neox_tiny", json!({ "tie_word_embeddings": true }), "tie_word_embeddings = true"),
        ("phi_tiny", json!({ "qk_layernorm": true }), "qk_layernorm = true"),
        ("phi_tiny", json!({ "num_key_value_heads": 1 }), "num_key_value_heads = 1"),
        ("phi_tiny", json!({ "rope_parameters": null }), "partial_rotary_factor = 0.5"),
        ("stablelm_tiny", json!({ "qk_layernorm": true }), "qk_layernorm = true"),
        ("stablelm_tiny", json!({ "use_parallel_residual": true }), "use_parallel_residual = true"),
        ("gptj_tiny", json!({ "rotary_dim": 4 }), "rotary_dim = 4"),
        ("electra_tiny", json!({ "embedding_size": 8 }), "embedding_size = 8"),
        ("opt_tiny", json!({ "word_embed_proj_dim": 4 }), "word_embed_proj_dim = 4"),
        ("opt_tiny", json!({ "do_layer_norm_before": false }), "do_layer_norm_before = false"),
        ("opt_tiny", json!({ "enable_bias": false }), "enable_bias = false"),
        ("gpt_neo_tiny", json!({ "window_size": 128 }), "window_size = 128"),
        ("gpt_neo_tiny", json!({ "attention_types": [[["global"], 2]] }), "attention_layers"),
        ("gpt_neo_tiny", json!({ "activation_function": "swish" }), "activation_function = \"swish\""),
        ("bart_tiny", json!({ "activation_function": "relu" }), "activation_function = \"relu\""),
        ("bart_tiny", json!({ "decoder_layers": 3 }), "decoder_layers = 3"),
        ("bart_tiny", json!({ "normalize_before": true }), "normalize_before = true; allowed: false"),
        ("bart_tiny", json!({ "model_type": "mbart" }), "model_type = \"mbart\""),
        ("mbart_tiny", json!({ "normalize_before": false }), "normalize_before = false; allowed: true"),
        ("mbart_tiny", json!({ "add_final_layer_norm": false }), "add_final_layer_norm = false"),
        ("marian_tiny", json!({ "activation_function": "relu" }), "activation_function = \"relu\""),
        ("marian_tiny", json!({ "scale_embedding": false }), "scale_embedding = false"),
        ("marian_tiny", json!({ "static_position_embeddings": false }), "static_position_embeddings = false"),
        ("marian_tiny", json!({ "share_encoder_decoder_embeddings": false }), "share_encoder_decoder"),
        ("marian_tiny", json!({ "decoder_vocab_size": 29 }), "decoder_vocab_size = 29"),
        ("modernbert_tiny", json!({ "attention_bias": true }), "attention_bias = true; allowed: false"),
        ("modernbert_tiny", json!({ "hidden_activation": "silu" }), "hidden_activation = \"silu\""),
        ("modernbert_tiny", json!({ "local_attention": 64 }), "local_attention = 64"),
        (
            "modernbert_tiny",
            json!({ "layer_types": null, "global_attn_every_n_layers": 1 }),
            "global_attn_every_n_layers = 1",
        ),
        ("modernbert_tiny", json!({ "rope_parameters": { "sliding_attention": turned } }), "\"linear\""),
        ("modernbert_classifier_tiny", json!({ "classifier_pooling": "mean" }), "classifier_pooling"),
    ]
}

#[test]
fn a_config_that_asks_for_another_forward_pass_is_refused_by_name() {
    for (name, fields, words) in refusals() {
        let Err(refusal) = changed(name, &fields) else { panic!("{name} {fields} is taken") };
        let message = refusal.to_string();
        assert!(message.contains(words) && !message.contains('\n'), "{name} {fields}: {message}");
    }
    // The same in the words of older files.
    let old = json!({ "rope_parameters": null, "rotary_pct": 0.25, "rotary_emb_base": 10_000 });
    changed("gpt_neox_tiny", &old).unwrap();
    changed("phi_tiny", &json!({ "rope_parameters": null, "partial_rotary_factor": 0.4 })).unwrap();
    changed("opt_tiny", &json!({ "word_embed_proj_dim": null })).unwrap();
    changed("gpt_neo_tiny", &json!({ "attention_types": [[["global"], 1], [["local"], 1]] })).unwrap();
    changed("roberta_tiny", &json!({ "model_type": "xlm-roberta" })).unwrap();
    changed("marian_tiny", &json!({ "activation_function": "silu", "decoder_vocab_size": null })).unwrap();
    changed("modernbert_tiny", &json!({ "classifier_pooling": "mean" })).unwrap();
    let old = json!({ "layer_types": null, "rope_parameters": null, "global_rope_theta": 160_000.0,
        "local_rope_theta": 10_000.0, "global_attn_every_n_layers": 3 });
    changed("modernbert_tiny", &old).unwrap();
}

/// BART's tensor of zeros adds nothing to the logits. Another tensor would.
#[test]
fn a_bias_of_barts_logits_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(vectors("bart_tiny").join("config.json"), folder.path().join("config.json")).unwrap();
    let mut all = tensors(&vectors("bart_tiny").join("model.safetensors"));
    let bias = all.iter_mut().find(|tensor| tensor.name == "final_logits_bias").unwrap();
    bias.data[3] = 0.5;
    write(folder.path(), all);
    let Err(refusal) = read("bart_tiny", folder.path()) else { panic!("a bias is left out in silence") };
    assert!(refusal.to_string().contains("final_logits_bias holds other values than 0"), "{refusal}");
}

fn bench(family: &str, objective: &str, special: &[&str]) -> Bench {
    let mut plan = tiny();
    plan["model"] =
        json!({ "family": family, "d_model": 16, "layers": 1, "heads": 2, "d_ff": 32, "context": 24 });
    plan["training"]["objective"] = json!(objective);
    plan["training"]["steps"] = json!(6);
    plan["tokenizer"] = json!({ "public": { "path": "tokenizer.json", "made_from": "public_text" } });
    plan.as_object_mut().unwrap().remove("evaluation");
    if objective != "masked_lm" {
        // Shorter than the encoder.
        plan["model"]["decoder_context"] = json!(12);
        plan["data"] = json!({ "source": { "path": "train.jsonl" }, "units": 240 });
    }
    let bench = Bench::new(&plan);
    std::fs::write(bench.path("tokenizer.json"), word_tokenizer(special).to_string()).unwrap();
    let word = |number: usize| ["zero", "one", "two"][number % 3];
    let line =
        |number: usize| format!("{}\n", json!({ "text": word(number), "target": format!("yes {number}") }));
    std::fs::write(bench.path("train.jsonl"), (0..240).map(line).collect::<String>()).unwrap();
    bench
}

/// A RoBERTa accepts its own special tokens. A tokenizer whose positions `transformers` would count
/// differently is refused.
#[test]
fn robertas_tokenizer_is_taken_and_another_padding_token_is_refused() {
    let trained = bench("roberta", "masked_lm", &ROBERTA);
    trained.model("run", &[]);
    assert!(verify_run(&trained.path("run")).unwrap().private);
    let config = read_json(&trained.path("run").join("config.json"));
    let told = ["pad_token_id", "eos_token_id", "max_position_embeddings"].map(|field| config[field].clone());
    assert_eq!(told, [json!(1), json!(2), json!(26)]);
    let other = bench("roberta", "masked_lm", &["<pad>", "<s>", "</s>", "<unk>", "<mask>"]);
    let output = other.run("run", &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("its padding token has id 0"), "{}", stderr(&output));
    assert!(!other.path("run").exists());
}

/// `config.json` tells `transformers` where a decoder starts and which token BART writes first.
#[test]
fn bart_mbart_and_marian_write_texts_with_their_own_special_tokens() {
    for (family, start, first) in
        [("bart", 2, json!(0)), ("mbart", 2, Value::Null), ("marian", 1, Value::Null)]
    {
        let trained = bench(family, "text_to_text", &ROBERTA);
        trained.model("run", &[]);
        let run = trained.path("run");
        let config = read_json(&run.join("config.json"));
        assert_eq!(
            (&config["decoder_start_token_id"], &config["forced_bos_token_id"]),
            (&json!(start), &first)
        );
        let output = Command::new(env!("CARGO_BIN_EXE_trainer-native"))
            .args([
                "generate",
                run.to_str().unwrap(),
                "--prompt",
                "one",
                "--temperature",
                "0",
                "--tokens",
                "4",
            ])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(!output.stdout.is_empty(), "{family}");
    }
}
