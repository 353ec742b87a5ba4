use std::collections::HashMap;

use serde_json::{Value, json};

use super::*;
use crate::nn::{Initializer, ParamSpec};
use crate::tensor_file::NamedTensor;

fn specs() -> Vec<ParamSpec> {
    let spec = |name: &str, shape: &[usize]| ParamSpec {
        name: name.to_owned(),
        shape: shape.to_vec(),
        initial: Initializer::Constant(0.0),
    };
    vec![spec("transformer.wte.weight", &[3, 2]), spec("transformer.wpe.weight", &[2, 2])]
}

fn config() -> Value {
    json!({ "model_type": "gpt2", "vocab_size": 3, "n_positions": 2, "n_embd": 2, "n_layer": 1, "n_head": 1, "n_inner": 8,
            "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true })
}

type Stored<'a> = (&'a str, safetensors::Dtype, Vec<usize>, Vec<u8>);

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn table<'a>(name: &'a str, values: &[f32]) -> Stored<'a> {
    (name, safetensors::Dtype::F32, vec![values.len() / 2, 2], f32s(values))
}

const TOKENS: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const PLACES: [f32; 4] = [0.5, 0.25, -1.0, 8.0];

fn whole() -> Vec<Stored<'static>> {
    vec![table("transformer.wte.weight", &TOKENS), table("transformer.wpe.weight", &PLACES)]
}

fn write(folder: &Path, name: &str, tensors: &[Stored<'_>]) {
    let views = tensors.iter().map(|(name, format, shape, bytes)| {
        (*name, safetensors::tensor::TensorView::new(*format, shape.clone(), bytes).unwrap())
    });
    let bytes = safetensors::serialize(views, None::<HashMap<String, String>>).unwrap();
    std::fs::write(folder.join(name), bytes).unwrap();
}

fn loaded(config: &Value, tensors: &[Stored<'_>]) -> Result<(Vec<NamedTensor>, Vec<String>), FileError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(CONFIG_FILE_NAME), config.to_string()).unwrap();
    write(folder.path(), "model.safetensors", tensors);
    let assigned = PretrainedCheckpoint::read(folder.path())?.weights(&specs(), &self::config())?;
    assert!(assigned.drawn.is_empty());
    Ok((assigned.weights, assigned.ignored))
}

#[track_caller]
fn gives_the_weights(config: &Value, tensors: &[Stored<'_>], ignored: &[&str]) {
    let (weights, unused) = loaded(config, tensors).unwrap();
    assert_eq!(weights[0].data, TOKENS);
    assert_eq!(weights[1].data, PLACES);
    assert_eq!(weights[1].name, "transformer.wpe.weight");
    assert_eq!(unused, ignored);
}

#[track_caller]
fn refuses(config: &Value, tensors: &[Stored<'_>], parts: &[&str]) {
    let message = loaded(config, tensors).unwrap_err().to_string();
    assert!(message.starts_with("model.initial: ") && !message.contains('\n'), "{message}");
    for part in parts {
        assert!(message.contains(part), "«{part}» is not in: {message}");
    }
}

#[test]
fn names_with_and_without_the_prefix_of_the_whole_model_are_taken() {
    gives_the_weights(&config(), &whole(), &[]);
    gives_the_weights(&config(), &[table("wte.weight", &TOKENS), table("wpe.weight", &PLACES)], &[]);
}

#[test]
fn masks_and_copies_of_tied_tables_are_left_out_by_name() {
    let mut tensors = whole();
    tensors.push(("transformer.h.0.attn.bias", safetensors::Dtype::BOOL, vec![1], vec![1]));
    tensors.push(table("lm_head.weight", &TOKENS));
    gives_the_weights(&config(), &tensors, &["lm_head.weight", "transformer.h.0.attn.bias"]);
    tensors.pop();
    tensors.push(table("lm_head.weight", &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0]));
    refuses(&config(), &tensors, &["lm_head.weight", "differs from the table"]);
}

#[test]
fn a_tied_table_may_have_the_name_of_its_copy_alone() {
    let only_head = [table("lm_head.weight", &TOKENS), table("transformer.wpe.weight", &PLACES)];
    gives_the_weights(&config(), &only_head, &[]);
    refuses(&config(), &only_head[..1], &["transformer.wpe.weight is missing"]);
}

/// GPT-NeoX's first files have masks of 16 bits whose numbers are -inf.
#[test]
fn values_of_buffers_are_not_looked_at() {
    let mut tensors = whole();
    let masked = ("transformer.h.0.attn.masked_bias", safetensors::Dtype::F16, vec![], vec![0x00, 0xfc]);
    tensors.push(masked);
    gives_the_weights(&config(), &tensors, &["transformer.h.0.attn.masked_bias"]);
}

#[test]
fn the_prefix_of_a_wrapper_is_named_with_what_to_save() {
    for (prefix, whose) in [
        ("_module.", "Opacus"),
        ("_orig_mod.", "torch.compile"),
        ("module.", "DataParallel"),
        ("base_model.model.", "PEFT"),
    ] {
        let names = whole().into_iter().map(|(name, ..)| format!("{prefix}{name}")).collect::<Vec<_>>();
        let tensors = names
            .iter()
            .zip(whole())
            .map(|(name, (_, format, shape, bytes))| (name.as_str(), format, shape, bytes));
        let tensors: Vec<_> = tensors.collect();
        refuses(&config(), &tensors, &[prefix, whose, "save_pretrained"]);
    }
}

#[test]
fn other_float_formats_are_widened_to_the_bit() {
    let bf16 =
        |values: &[f32]| values.iter().flat_map(|v| ((v.to_bits() >> 16) as u16).to_le_bytes()).collect();
    // Halves of binary16: sign, five bits of exponent less 15, ten of mantissa; all of these are powers of two or sums.
    let f16: Vec<u8> = [0x3800_u16, 0x3400, 0xbc00, 0x4800].iter().flat_map(|v| v.to_le_bytes()).collect();
    let f64s = |values: &[f32]| values.iter().flat_map(|v| f64::from(*v).to_le_bytes()).collect();
    let mut tensors = whole();
    tensors[0] = ("transformer.wte.weight", safetensors::Dtype::BF16, vec![3, 2], bf16(&TOKENS));
    tensors[1] = ("transformer.wpe.weight", safetensors::Dtype::F16, vec![2, 2], f16);
    gives_the_weights(&config(), &tensors, &[]);
    tensors[0] = ("transformer.wte.weight", safetensors::Dtype::F64, vec![3, 2], f64s(&TOKENS));
    gives_the_weights(&config(), &tensors, &[]);
}

#[test]
fn shards_are_put_together_and_nothing_outside_the_folder_is_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(CONFIG_FILE_NAME), config().to_string()).unwrap();
    let (tokens, places) = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors");
    write(folder.path(), tokens, &whole()[..1]);
    write(folder.path(), places, &whole()[1..]);
    let index = |first: &str| {
        let map = json!({ "transformer.wte.weight": first, "transformer.wpe.weight": places });
        let text = json!({ "metadata": {}, "weight_map": map }).to_string();
        std::fs::write(folder.path().join("model.safetensors.index.json"), text).unwrap();
        PretrainedCheckpoint::read(folder.path())
    };
    let weights = index(tokens).unwrap().weights(&specs(), &config()).unwrap().weights;
    assert_eq!((weights[0].data.as_slice(), weights[1].data.as_slice()), (&TOKENS[..], &PLACES[..]));
    for path in ["../model.safetensors", "/etc/passwd", "a/b", ".."] {
        assert!(index(path).unwrap_err().to_string().contains("not a file of this folder"), "{path}");
    }
}

#[test]
fn positions_beyond_the_plans_context_are_left_out() {
    let mut longer = config();
    longer["n_positions"] = json!(4);
    let mut tensors = whole();
    tensors[1] = table("transformer.wpe.weight", &[0.5, 0.25, -1.0, 8.0, 9.0, 9.0, 9.0, 9.0]);
    gives_the_weights(&longer, &tensors, &[]);
    longer["n_positions"] = json!(1);
    refuses(&longer, &whole(), &["n_positions = 1", "model.context makes it 2"]);
}

#[test]
fn what_differs_is_refused_with_both_values() {
    let with = |field: &str, value: Value| {
        let mut config = config();
        config[field] = value;
        config
    };
    refuses(&with("n_inner", json!(12)), &whole(), &["n_inner = 12", "model.d_ff makes it 8"]);
    gives_the_weights(&with("n_inner", Value::Null), &whole(), &[]);
    refuses(&with("model_type", json!("gptj")), &whole(), &["\"gptj\"", "\"gpt2\"", "model.family"]);
    refuses(&with("activation_function", json!("relu")), &whole(), &["\"relu\"", "\"gelu_new\""]);
    refuses(&with("scale_attn_by_inverse_layer_idx", json!(true)), &whole(), &["= true; allowed: false"]);
}

#[test]
fn missing_unknown_misshapen_and_infinite_tensors_are_refused() {
    refuses(&config(), &whole()[..1], &["transformer.wpe.weight is missing"]);
    let mut tensors = whole();
    tensors.push(table("transformer.h.0.adapter.weight", &[1.0, 2.0]));
    refuses(&config(), &tensors, &["adapter.weight is not one of"]);
    tensors.pop();
    tensors.push(table("wte.weight", &TOKENS));
    refuses(&config(), &tensors, &["under two names"]);
    tensors.pop();
    tensors[0] = table("transformer.wte.weight", &TOKENS[..4]);
    refuses(&config(), &tensors, &["[2, 2]", "[3, 2]"]);
    tensors[0] = table("transformer.wte.weight", &[1.0, f32::NAN, 3.0, 4.0, 5.0, 6.0]);
    refuses(&config(), &tensors, &["no finite number"]);
}

#[test]
fn a_table_may_be_longer_than_the_tokenizer_but_not_shorter() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(CONFIG_FILE_NAME), config().to_string()).unwrap();
    write(folder.path(), "model.safetensors", &whole());
    let checkpoint = PretrainedCheckpoint::read(folder.path()).unwrap();
    assert_eq!(checkpoint.vocab_size(2).unwrap(), 3);
    assert!(
        checkpoint.vocab_size(4).unwrap_err().to_string().contains("has 3 tokens, the plan's tokenizer 4")
    );
}

/// A checkpoint with changed bytes is read or refused, whatever the change. A panic fails the test.
#[test]
fn damaged_checkpoints_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(CONFIG_FILE_NAME), config().to_string()).unwrap();
    let places = ("transformer.wpe.weight", safetensors::Dtype::F16, vec![2, 2], [0, 60].repeat(4));
    write(folder.path(), "model.safetensors", &[table("transformer.wte.weight", &TOKENS), places]);
    let files = [CONFIG_FILE_NAME, "model.safetensors"].map(|name| folder.path().join(name));
    let mut state = 1_u64;
    let mut draw = |below: usize| {
        // PCG's multiplier (O'Neill 2014); the high bits are the good ones.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut refused = 0;
    for round in 0..2000 {
        let file = &files[round % 2];
        let sound = std::fs::read(file).unwrap();
        let mut bytes = sound.clone();
        for _ in 0..=draw(3) {
            let at = draw(bytes.len());
            match draw(4) {
                0 => bytes.truncate(at + 1),
                1 => bytes[at] = b"0123456789"[draw(10)],
                2 => bytes.insert(at, b"9{}[],:\""[draw(8)]),
                _ => bytes[at] ^= 1 << draw(8),
            }
        }
        std::fs::write(file, bytes).unwrap();
        let found =
            PretrainedCheckpoint::read(folder.path()).and_then(|read| read.weights(&specs(), &config()));
        refused += usize::from(found.is_err());
        std::fs::write(file, sound).unwrap();
    }
    assert!((500..2000).contains(&refused), "{refused}");
}

/// Scaled rotary positions change every logit, and these plans have none.
#[test]
fn scaled_rotary_positions_are_refused_whichever_way_a_file_states_them() {
    for name in ["gemma_tiny", "llama_tiny"] {
        let (folder, network) = crate::vectors::vectors(name);
        let text = std::fs::read_to_string(folder.join(CONFIG_FILE_NAME)).unwrap();
        let theirs: Value = serde_json::from_str(&text).unwrap();
        let read = |field: &str, value: Value| {
            let copy = tempfile::tempdir().unwrap();
            let mut config = theirs.clone();
            config[field] = value;
            std::fs::write(copy.path().join(CONFIG_FILE_NAME), config.to_string()).unwrap();
            std::fs::copy(folder.join("model.safetensors"), copy.path().join("model.safetensors")).unwrap();
            PretrainedCheckpoint::read(copy.path())?.weights(&network.specs(), &network.hf_config()).map(drop)
        };
        read("rope_parameters", Value::Null).unwrap();
        for (field, value) in [
            ("rope_scaling", json!({ "type": "linear", "factor": 2.0 })),
            ("rope_scaling", json!({ "rope_type": "llama3", "factor": 8.0 })),
            ("rope_parameters", json!({ "rope_theta": 10000.0, "rope_type": "linear", "factor": 2.0 })),
            ("rope_parameters", json!({ "rope_theta": 10000.0, "type": "linear", "factor": 2.0 })),
            ("rope_parameters", json!({ "rope_theta": 10000.0, "partial_rotary_factor": 0.5 })),
            ("rope_parameters", json!({ "full_attention": { "rope_theta": 10000.0 } })),
        ] {
            let refusal = read(field, value.clone()).unwrap_err().to_string();
            assert!(refusal.contains("config.json has rope_"), "{name} {value}: {refusal}");
        }
    }
}

/// Returns a recorded checkpoint of `transformers` with another configuration and other tensors, read for its own
/// model.
fn altered(
    name: &str,
    config: impl Fn(&mut Value),
    tensor: impl Fn(&str) -> Vec<String>,
) -> Result<Vec<NamedTensor>, FileError> {
    let (folder, network) = crate::vectors::vectors(name);
    let mut theirs: Value =
        serde_json::from_slice(&std::fs::read(folder.join(CONFIG_FILE_NAME)).unwrap()).unwrap();
    config(&mut theirs);
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let renamed = file.tensors().into_iter().flat_map(|(name, view)| {
        let stored = move |name| (name, view.dtype(), view.shape().to_vec(), view.data().to_vec());
        tensor(&name).into_iter().map(stored)
    });
    let tensors: Vec<_> = renamed.collect();
    let tensors: Vec<Stored<'_>> = tensors
        .iter()
        .map(|(name, format, shape, data)| (name.as_str(), *format, shape.clone(), data.clone()))
        .collect();
    let copy = tempfile::tempdir().unwrap();
    std::fs::write(copy.path().join(CONFIG_FILE_NAME), theirs.to_string()).unwrap();
    write(copy.path(), "model.safetensors", &tensors);
    Ok(PretrainedCheckpoint::read(copy.path())?.weights(&network.specs(), &network.hf_config())?.weights)
}

fn as_it_is(name: &str) -> Vec<String> {
    vec![name.to_owned()]
}

fn data(weights: Vec<NamedTensor>) -> Vec<(String, Vec<f32>)> {
    weights.into_iter().map(|tensor| (tensor.name, tensor.data)).collect()
}

/// bert-base-chinese and the multilingual models describe a pooler that no version of the model
/// has; distilgpt2 states a number of labels.
#[test]
fn fields_of_published_files_that_say_nothing_are_passed_over() {
    let chinese = |config: &mut Value| {
        config["directionality"] = json!("bidi");
        config["pooler_fc_size"] = json!(768);
        config["pooler_type"] = json!("first_token_transform");
    };
    altered("bert_tiny", chinese, as_it_is).unwrap();
    altered("gpt2_tiny", |config| config["_num_labels"] = json!(1), as_it_is).unwrap();
    let rotary = |config: &mut Value| config["rope_parameters"] = json!({ "rope_theta": 1e4 });
    assert!(altered("gpt2_tiny", rotary, as_it_is).unwrap_err().to_string().contains("rope_parameters"));
}

/// bert-base-uncased names its norms as TensorFlow does.
#[test]
fn norms_of_old_berts_are_read_under_their_old_names() {
    let old = |name: &str| {
        vec![name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")]
    };
    let new = data(altered("bert_tiny", |_| (), as_it_is).unwrap());
    assert_eq!(data(altered("bert_tiny", |_| (), old).unwrap()), new);
}

/// t5-small and t5-base hold a table that no version of the model has used.
#[test]
fn a_leftover_table_of_the_first_t5_is_not_read() {
    let bias = "relative_attention_bias.weight";
    let with_leftover = |name: &str| {
        let leftover = name == format!("decoder.block.0.layer.0.SelfAttention.{bias}");
        let leftover = leftover.then(|| format!("decoder.block.0.layer.1.EncDecAttention.{bias}"));
        std::iter::once(name.to_owned()).chain(leftover).collect()
    };
    let plain = data(altered("t5_tiny", |_| (), as_it_is).unwrap());
    assert_eq!(data(altered("t5_tiny", |_| (), with_leftover).unwrap()), plain);
}

#[test]
fn a_t5_of_version_1_1_that_transformers_5_wrote_keeps_its_head() {
    let rewritten = |config: &mut Value| {
        config["tie_word_embeddings"] = json!(true);
        config["scale_decoder_outputs"] = json!(false);
    };
    let plain = data(altered("t5_v1_1_tiny", |_| (), as_it_is).unwrap());
    assert_eq!(data(altered("t5_v1_1_tiny", rewritten, as_it_is).unwrap()), plain);
    let tied = |config: &mut Value| config["scale_decoder_outputs"] = json!(true);
    let refusal = altered("t5_v1_1_tiny", tied, as_it_is).unwrap_err().to_string();
    assert!(refusal.contains("scale_decoder_outputs"), "{refusal}");
}

/// `transformers` 5 writes a T5 that was made with gated units without a head of its own. It never scales an mT5.
#[test]
fn gated_t5s_whose_head_is_the_token_table_are_described_so() {
    let described = |kind: &str, scaled: Option<bool>| {
        let folder = tempfile::tempdir().unwrap();
        let mut config: Value =
            serde_json::from_slice(&std::fs::read(crate::vectors::path("mt5_tiny/config.json")).unwrap())
                .unwrap();
        config["model_type"] = json!(kind);
        config["tie_word_embeddings"] = json!(true);
        config["scale_decoder_outputs"] = json!(scaled);
        std::fs::write(folder.path().join(CONFIG_FILE_NAME), config.to_string()).unwrap();
        write(folder.path(), "model.safetensors", &[table("shared.weight", &TOKENS)]);
        json!(describe(folder.path()).unwrap().config)
    };
    assert_eq!(described("t5", Some(true)), json!({ "tie_word_embeddings": true }));
    let unscaled = json!({ "tie_word_embeddings": true, "scale_decoder_outputs": false });
    assert_eq!(described("t5", Some(false)), unscaled);
    assert_eq!(described("mt5", None), unscaled);
}

/// A configuration of another family, or with an unknown field, is never accepted silently.
#[test]
fn another_family_and_unknown_fields_are_refused_by_name() {
    let refusal =
        |change: &dyn Fn(&mut Value)| altered("llama_tiny", change, as_it_is).unwrap_err().to_string();
    let qwen = refusal(&|config| {
        config["model_type"] = json!("qwen2");
        config["head_dim"] = Value::Null;
    });
    assert!(qwen.contains("model_type = \"qwen2\"") && !qwen.contains("head_dim"), "{qwen}");
    for (field, value) in [
        ("sliding_window", json!(4096)),
        ("quantization_config", json!({ "bits": 4 })),
        ("use_qk_norm", json!(true)),
    ] {
        let unknown = refusal(&|config| config[field] = value.clone());
        assert!(unknown.contains(field) && unknown.contains("not known here"), "{unknown}");
    }
    assert!(refusal(&|config| config["is_decoder"] = json!(true)).contains("allowed: false"));
    for value in [Value::Null, json!([]), json!({})] {
        altered("llama_tiny", |config| config["sliding_window"] = value.clone(), as_it_is).unwrap();
    }
}

#[test]
fn files_that_are_no_checkpoint_of_floats_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |want: &str| {
        let message = PretrainedCheckpoint::read(folder.path()).unwrap_err().to_string();
        assert!(message.contains(want) && message.lines().count() == 1, "{want}: {message}");
    };
    std::fs::write(folder.path().join(CONFIG_FILE_NAME), config().to_string()).unwrap();
    refused("it has no model.safetensors; fetch all files");
    std::fs::write(folder.path().join("pytorch_model.bin"), "x").unwrap();
    refused("it has pytorch_model.bin, which is not read here");
    std::fs::remove_file(folder.path().join("pytorch_model.bin")).unwrap();
    for (file, what) in [
        ("model.Q4_K_M.gguf", "model.Q4_K_M.gguf, a model for llama.cpp"),
        ("adapter_config.json", "adapters alone"),
    ] {
        std::fs::write(folder.path().join(file), "{}").unwrap();
        refused(what);
        std::fs::rename(folder.path().join(CONFIG_FILE_NAME), folder.path().join("away")).unwrap();
        refused(what);
        assert!(describe(folder.path()).unwrap_err().to_string().contains(what));
        std::fs::rename(folder.path().join("away"), folder.path().join(CONFIG_FILE_NAME)).unwrap();
    }
    let index = json!({ "weight_map": { "a": "model-00001-of-00002.safetensors" } });
    std::fs::write(folder.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    refused("model-00001-of-00002.safetensors is missing; fetch all files");
    for format in [safetensors::Dtype::I8, safetensors::Dtype::BOOL, safetensors::Dtype::F8_E4M3] {
        let mut tensors = whole();
        tensors[0] = ("transformer.wte.weight", format, vec![3, 2], vec![1; 6]);
        let message = loaded(&config(), &tensors).unwrap_err().to_string();
        assert!(
            message.contains("wte.weight holds other numbers than floats of 16, 32 or 64 bits"),
            "{message}"
        );
    }
}

/// Assigns tensors of one value to the parameters of a BERT that has a token table and a head for means.
fn assigned_to_bert(tensors: &[&str]) -> Result<Assigned, String> {
    let family = crate::model::Network::checkpoints().find(|family| family.model_type == "bert").unwrap();
    let spec =
        |name: &str| ParamSpec { name: name.to_owned(), shape: vec![1], initial: Initializer::Constant(0.0) };
    let tensor = |name: &&str| {
        let data = vec![1.0].into();
        ((*name).to_owned(), NamedTensor { name: (*name).to_owned(), shape: vec![1], data })
    };
    let tensors = tensors.iter().map(tensor).collect();
    let specs = [spec("bert.embeddings.word_embeddings.weight"), spec("mean_classifier.weight")];
    names::assign(family, &tensors, &specs, true).map(Assigned::in_f32)
}

#[test]
fn a_head_for_means_is_drawn_or_read_and_the_pooler_has_no_use() {
    for prefix in ["", "bert."] {
        let [table, pooler] = ["embeddings.word_embeddings.weight", "pooler.dense.weight"]
            .map(|name| format!("{prefix}{name}"));
        let fresh = assigned_to_bert(&[&table, &pooler]).unwrap();
        assert_eq!(
            (fresh.drawn, fresh.ignored),
            (vec!["mean_classifier.weight".to_owned()], vec![pooler.clone()])
        );
        let trained = assigned_to_bert(&[&table, &pooler, "mean_classifier.weight"]).unwrap();
        assert!(trained.drawn.is_empty() && trained.weights.len() == 2);
        let refused = assigned_to_bert(&[&table, "mean_classifier.bias"]).unwrap_err();
        assert!(refused.contains("\"pooling\": \"mean\""), "{refused}");
    }
}
