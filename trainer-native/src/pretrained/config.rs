//! Whether a checkpoint's `config.json` describes the plan's model.

use serde_json::{Value, json};

/// Fields of our configuration that say nothing about what the network computes without dropout.
const OF_NO_ACCOUNT: [&str; 24] = [
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_pdrop",
    "bos_token_id",
    "classifier_dropout",
    "decoder_start_token_id",
    "dropout_rate",
    "dtype",
    "embd_pdrop",
    "eos_token_id",
    "hidden_activation",
    "hidden_dropout_prob",
    "initializer_factor",
    "initializer_range",
    "n_ctx",
    "pad_token_id",
    "resid_pdrop",
    "summary_first_dropout",
    "torch_dtype",
    "transformers_version",
    "use_cache",
    "vocab_size",
    "is_encoder_decoder",
];

/// What `transformers` takes where a file leaves a field out.
const DEFAULTS: [(&str, &str, &str); 18] = [
    ("gpt2", "activation_function", "\"gelu_new\""),
    ("gpt2", "layer_norm_epsilon", "1e-5"),
    ("gpt2", "tie_word_embeddings", "true"),
    ("bert", "hidden_act", "\"gelu\""),
    ("bert", "layer_norm_eps", "1e-12"),
    ("bert", "position_embedding_type", "\"absolute\""),
    ("bert", "tie_word_embeddings", "true"),
    ("bert", "type_vocab_size", "2"),
    ("t5", "feed_forward_proj", "\"relu\""),
    ("t5", "layer_norm_epsilon", "1e-6"),
    ("t5", "relative_attention_max_distance", "128"),
    ("t5", "relative_attention_num_buckets", "32"),
    ("t5", "tie_word_embeddings", "true"),
    ("gemma", "attention_bias", "false"),
    ("gemma", "head_dim", "256"),
    ("gemma", "rms_norm_eps", "1e-6"),
    ("gemma", "rope_theta", "10000.0"),
    ("gemma", "tie_word_embeddings", "true"),
];

/// Settings that this program has no other value for; a checkpoint may leave them out.
const FIXED: [(&str, &str, &str); 4] = [
    ("gpt2", "scale_attn_by_inverse_layer_idx", "false"),
    ("gpt2", "scale_attn_weights", "true"),
    ("bert", "is_decoder", "false"),
    ("gemma", "use_bidirectional_attention", "null"),
];

/// Accepts a checkpoint's configuration that describes the model of ours; else says what differs, with both values.
pub(super) fn check(ours: &Value, theirs: &Value) -> Result<(), String> {
    let family = ours["model_type"].as_str().unwrap_or_default();
    let Some(fields) = ours.as_object() else { return Err("the model has no configuration".to_owned()) };
    for (name, our) in fields.iter().filter(|(name, _)| !OF_NO_ACCOUNT.contains(&name.as_str())) {
        let their = field(family, theirs, name);
        let fits = match name.as_str() {
            // Relative positions have no end.
            "n_positions" if family == "t5" => true,
            // Positions beyond the plan's context are not used.
            "n_positions" | "max_position_embeddings" => their.as_u64() >= our.as_u64(),
            _ => same(our, &their),
        };
        if !fits {
            return Err(differs(name, our, &their));
        }
    }
    for (_, name, only) in FIXED.iter().filter(|(of, ..)| *of == family) {
        let only: Value = serde_json::from_str(only).unwrap_or_default();
        if theirs.get(*name).is_some_and(|their| !their.is_null() && *their != only) {
            return Err(format!("config.json has {name} = {}; allowed: {only}", theirs[*name]));
        }
    }
    Ok(())
}

/// A field of a checkpoint's configuration, as `transformers` would understand it.
fn field(family: &str, config: &Value, name: &str) -> Value {
    let given = &config[name];
    match (family, name) {
        ("gpt2", "n_inner") if given.is_null() => json!(config["n_embd"].as_u64().map(|d| 4 * d)),
        // mT5 is T5 version 1.1 with another vocabulary.
        ("t5", "model_type") if given == "mt5" => json!("t5"),
        ("t5", "num_decoder_layers") if given.is_null() => config["num_layers"].clone(),
        ("gemma", "rope_theta") if given.is_null() && !config["rope_parameters"].is_null() => {
            config["rope_parameters"]["rope_theta"].clone()
        }
        ("gemma", "hidden_act") => gemma_activation(config),
        _ if given.is_null() => DEFAULTS
            .iter()
            .find(|(of, field, _)| *of == family && *field == name)
            .and_then(|(_, _, value)| serde_json::from_str(value).ok())
            .unwrap_or_default(),
        _ => given.clone(),
    }
}

/// Gemma's first files say "gelu" and mean its tanh form.
fn gemma_activation(config: &Value) -> Value {
    match config["hidden_activation"].as_str().or(config["hidden_act"].as_str()) {
        None | Some("gelu") => json!("gelu_pytorch_tanh"),
        Some(other) => json!(other),
    }
}

fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours.as_f64(), theirs.as_f64()) {
        (Some(ours), Some(theirs)) => ours == theirs,
        _ => ours == theirs,
    }
}

fn differs(name: &str, ours: &Value, theirs: &Value) -> String {
    let of_plan = match name {
        "n_embd" | "hidden_size" | "d_model" => "model.d_model",
        "n_layer" | "num_hidden_layers" | "num_layers" | "num_decoder_layers" => "model.layers",
        "n_head" | "num_attention_heads" | "num_heads" => "model.heads",
        "n_inner" | "intermediate_size" | "d_ff" => "model.d_ff",
        "n_positions" | "max_position_embeddings" => "model.context",
        "num_key_value_heads" => "model.kv_heads",
        "head_dim" | "d_kv" => "model.d_head",
        "hidden_sizes" => "model.hidden",
        "history" => "model.history",
        _ => "model.family",
    };
    format!(
        "config.json has {name} = {theirs}, the plan's {of_plan} makes it {ours}; set {of_plan} as the checkpoint is, or \
         give another checkpoint"
    )
}
