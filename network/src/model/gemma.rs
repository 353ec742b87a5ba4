//! Gemma 1: a scaled token table, norms with a factor of 1 + gain, gated GELU.
//!
//! # References
//! Gemma Team 2024, <https://arxiv.org/abs/2403.08295>; names and initial values as Hugging Face's `GemmaForCausalLM`.

use serde_json::{Value, json};

use super::decoder::config::{ATTENTION_BIAS, read, rms_norm_eps};
use super::decoder::{Decoder, Style};
use super::rope::{ROPE_SCALING, rope_theta};
use super::{HuggingFace, ModelError, PlannedNetwork, llama};
use crate::nn::Gate;

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("attention_bias", "false"),
        ("head_dim", "256"),
        ("num_key_value_heads", "16"),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", "10000.0"),
    ],
    fixed: &[("use_bidirectional_attention", "false")],
    read: |config, field| match field {
        "hidden_act" => Some(activation(config)),
        _ => read(config, field),
    },
    irrelevant: &["attention_dropout", "hidden_activation"],
    config_fields: &[rms_norm_eps("1e-6"), rope_theta("10000.0"), ROPE_SCALING, ATTENTION_BIAS],
    buffers: &["rotary_emb.inv_freq", "embed_scale"],
    ..HuggingFace::decoder("gemma", "Gemma")
};

/// Returns the activation. The first Gemma files say "gelu" and mean its tanh form.
fn activation(config: &Value) -> Value {
    match config["hidden_activation"].as_str().or(config["hidden_act"].as_str()) {
        None | Some("gelu") => json!("gelu_pytorch_tanh"),
        Some(other) => json!(other),
    }
}

/// Gemma's variant of the decoder.
pub(super) const STYLE: Style = Style {
    hugging_face: &HUGGING_FACE,
    fields: |_| json!({ "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh" }),
    scaled_embedding: true,
    unit_offset: true,
    gate: Gate::GeluTanh,
    ..llama::STYLE
};

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
