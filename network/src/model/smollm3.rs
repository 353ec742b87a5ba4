//! SmolLM3: Llama without rotary positions in every fourth layer.
//!
//! # References
//! Layers without positions: Yang et al. 2025, <https://arxiv.org/abs/2501.18795>; names and initial values as Hugging Face's
//! `SmolLM3ForCausalLM`.

use serde_json::{Value, json};

use super::decoder::config::{
    ATTENTION_BIAS, MAX_LAYERS, MLP_BIAS, ROTATING, layer_types, read, rms_norm_eps, usual_head_width,
};
use super::decoder::{Decoder, Style};
use super::rope::{ROPE_SCALING, rope_theta};
use super::{HuggingFace, ModelError, PlannedNetwork, llama};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("attention_bias", "false"),
        ("hidden_act", "\"silu\""),
        ("mlp_bias", "false"),
        ("num_key_value_heads", "4"),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", "2000000.0"),
    ],
    fixed: &[("use_sliding_window", "false")],
    read: |config, field| match field {
        "head_dim" if config[field].is_null() => usual_head_width(config),
        "layer_types" => Some(layer_types(config, |_| false)),
        field if field == ROTATING.name => Some(rotating(config)),
        _ => read(config, field),
    },
    irrelevant: &[
        "attention_dropout",
        "max_window_layers",
        // Counts only where `no_rope_layers` is not given, and is read there.
        "no_rope_layer_interval",
        "pretraining_tp",
        // No layer has a window.
        "sliding_window",
    ],
    config_fields: &[
        rms_norm_eps("1e-6"),
        rope_theta("5000000.0"),
        ROPE_SCALING,
        ROTATING,
        ATTENTION_BIAS,
        MLP_BIAS,
    ],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::decoder("smollm3", "SmolLM3")
};

/// Returns, for each layer, 1 if it has rotary positions and 0 if not. A list may be longer than the model.
fn rotating(config: &Value) -> Value {
    let layers = config["num_hidden_layers"].as_u64().unwrap_or(0).min(MAX_LAYERS);
    match &config[ROTATING.name] {
        Value::Null => {
            let interval = config["no_rope_layer_interval"].as_u64().unwrap_or(4).max(1);
            (1..=layers).map(|at| u8::from(!at.is_multiple_of(interval))).collect()
        }
        Value::Array(flags) => flags.iter().take(layers as usize).cloned().collect(),
        other => other.clone(),
    }
}

/// SmolLM3's variant of the decoder.
const STYLE: Style = Style {
    hugging_face: &HUGGING_FACE,
    fields: |slides| {
        let full = vec!["full_attention"; slides.len()];
        json!({ "hidden_act": "silu", "use_sliding_window": false, "layer_types": full })
    },
    ..llama::STYLE
};

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
