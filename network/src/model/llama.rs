//! Llama 1 to 3: the decoder without extras. Scaled rotary positions and biases where a checkpoint asks for them.
//!
//! # References
//! Touvron et al. 2023, <https://arxiv.org/abs/2307.09288>; names and initial values as Hugging Face's `LlamaForCausalLM`.

use serde_json::json;

use super::decoder::config::{ATTENTION_BIAS, MLP_BIAS, read, rms_norm_eps, usual_head_width};
use super::decoder::{Decoder, Norms, Projections, Style};
use super::rope::{ROPE_SCALING, rope_theta};
use super::{HuggingFace, ModelError, PlannedNetwork};
use crate::nn::Gate;

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("attention_bias", "false"),
        ("hidden_act", "\"silu\""),
        ("mlp_bias", "false"),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", "10000.0"),
        ("tie_word_embeddings", "false"),
    ],
    read: |config, field| match field {
        "num_key_value_heads" if config[field].is_null() => Some(config["num_attention_heads"].clone()),
        "head_dim" if config[field].is_null() => usual_head_width(config),
        _ => read(config, field),
    },
    // Computes a product in slices, which changes only how it is rounded.
    irrelevant: &["attention_dropout", "pretraining_tp"],
    config_fields: &[rms_norm_eps("1e-5"), rope_theta("10000.0"), ROPE_SCALING, ATTENTION_BIAS, MLP_BIAS],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::decoder("llama", "Llama")
};

/// Llama's variant of the decoder. Other families state how they differ from it.
pub(super) const STYLE: Style = Style {
    hugging_face: &HUGGING_FACE,
    fields: |_| json!({ "hidden_act": "silu" }),
    scaled_embedding: false,
    unit_offset: false,
    gate: Gate::Silu,
    norms: Norms::Before,
    feed_forward_norm: "post_attention_layernorm",
    head_norms: None,
    projections: Projections::Apart,
    slides: |_| false,
};

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
