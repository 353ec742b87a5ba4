//! Qwen 3: Llama with norms of each head of queries and keys.
//!
//! # References
//! Qwen Team 2025, <https://arxiv.org/abs/2505.09388>; names and initial values as Hugging Face's `Qwen3ForCausalLM`.

use super::decoder::config::{ATTENTION_BIAS, LAYER_TYPES, rms_norm_eps, sliding_window};
use super::decoder::{Decoder, HeadNorms, Style};
use super::rope::{ROPE_SCALING, rope_theta};
use super::{FieldType, HuggingFace, ModelError, PlannedNetwork, llama, qwen2};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("attention_bias", "false"),
        ("head_dim", "128"),
        ("hidden_act", "\"silu\""),
        ("num_key_value_heads", "32"),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", "10000.0"),
        ("tie_word_embeddings", "false"),
    ],
    read: qwen2::read_windows,
    irrelevant: &["attention_dropout", "max_window_layers"],
    config_fields: &[
        rms_norm_eps("1e-6"),
        rope_theta("1000000.0"),
        ROPE_SCALING,
        ATTENTION_BIAS,
        sliding_window("null", FieldType::CountOrNull),
        LAYER_TYPES,
    ],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::decoder("qwen3", "Qwen3")
};

/// Qwen 3's variant of the decoder.
pub(super) const STYLE: Style = Style {
    hugging_face: &HUGGING_FACE,
    fields: qwen2::fields,
    head_norms: Some(HeadNorms::Each),
    ..llama::STYLE
};

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
