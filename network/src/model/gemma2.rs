//! Gemma 2: Gemma with norms also after each part, soft caps on attention and logits, and a window in every other layer.
//!
//! # References
//! Gemma Team 2024, <https://arxiv.org/abs/2408.00118>; names and initial values as Hugging Face's `Gemma2ForCausalLM`.

use serde_json::json;

use super::decoder::config::{
    ATTENTION_BIAS, ATTENTION_CAP, LAYER_TYPES, QUERY_SCALAR, layer_types, logit_cap, read, rms_norm_eps,
    sliding_window,
};
use super::decoder::{Decoder, Norms, Style};
use super::rope::{ROPE_SCALING, rope_theta};
use super::{FieldType, HuggingFace, ModelError, PlannedNetwork, gemma};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("attention_bias", "false"),
        ("head_dim", "256"),
        ("hidden_activation", "\"gelu_pytorch_tanh\""),
        ("num_key_value_heads", "4"),
        ("query_pre_attn_scalar", "256"),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", "10000.0"),
        ("sliding_window", "4096"),
    ],
    fixed: &[("use_bidirectional_attention", "false")],
    read: |config, field| match field {
        "layer_types" => Some(layer_types(config, |at| at % 2 == 0)),
        // `null` means that there is no cap. Without the field, the cap is the default.
        "attn_logit_softcapping" if config.get(field).is_none() => Some(json!(50.0)),
        "final_logit_softcapping" if config.get(field).is_none() => Some(json!(30.0)),
        _ => read(config, field),
    },
    irrelevant: &["attention_dropout", "cache_implementation", "hidden_act"],
    config_fields: &[
        rms_norm_eps("1e-6"),
        rope_theta("10000.0"),
        ROPE_SCALING,
        ATTENTION_BIAS,
        sliding_window("4096", FieldType::Count),
        LAYER_TYPES,
        QUERY_SCALAR,
        ATTENTION_CAP,
        logit_cap("30.0"),
    ],
    buffers: &["rotary_emb.inv_freq", "embed_scale"],
    ..HuggingFace::decoder("gemma2", "Gemma2")
};

/// Gemma 2's variant of the decoder.
pub(super) const STYLE: Style = Style {
    hugging_face: &HUGGING_FACE,
    fields: |_| json!({ "hidden_activation": "gelu_pytorch_tanh" }),
    norms: Norms::Both,
    feed_forward_norm: "pre_feedforward_layernorm",
    slides: |at| at.is_multiple_of(2),
    ..gemma::STYLE
};

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
