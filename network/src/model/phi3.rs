//! Phi-3: Llama with one matrix for queries, keys and values, one for gate and up, and a window that every layer may have.
//!
//! # References
//! Abdin et al. 2024, <https://arxiv.org/abs/2404.14219>; names and initial values as Hugging Face's `Phi3ForCausalLM`.

use super::decoder::config::{read, rms_norm_eps, sliding_window, usual_head_width};
use super::decoder::{Decoder, Projections, Style};
use super::rope::rope_theta;
use super::{FieldType, HuggingFace, ModelError, PlannedNetwork, llama, rope};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("hidden_act", "\"silu\""),
        ("rms_norm_eps", "1e-5"),
        ("rope_theta", "10000.0"),
        ("tie_word_embeddings", "false"),
    ],
    fixed: &[("attention_bias", "false"), ("partial_rotary_factor", "1.0"), (rope::SCALING, "null")],
    read: |config, field| match field {
        "num_key_value_heads" if config[field].is_null() => Some(config["num_attention_heads"].clone()),
        "head_dim" if config[field].is_null() => usual_head_width(config),
        _ => read(config, field),
    },
    irrelevant: &[
        "attention_dropout",
        // Names the Python code for which the checkpoint was first written.
        "auto_map",
        "embd_pdrop",
        // Affects scaled positions only.
        "original_max_position_embeddings",
        "resid_pdrop",
    ],
    config_fields: &[
        rms_norm_eps("1e-5"),
        rope_theta("10000.0"),
        sliding_window("null", FieldType::CountOrNull),
    ],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::decoder("phi3", "Phi3")
};

/// Phi-3's variant of the decoder.
pub(super) const STYLE: Style =
    Style { hugging_face: &HUGGING_FACE, projections: Projections::Fused, slides: |_| true, ..llama::STYLE };

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
