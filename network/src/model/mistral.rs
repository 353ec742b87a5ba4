//! Mistral: Llama with a window that every layer may have.
//!
//! # References
//! Jiang et al. 2023, <https://arxiv.org/abs/2310.06825>; names and initial values as Hugging Face's `MistralForCausalLM`.

use super::decoder::config::{read, rms_norm_eps, sliding_window, usual_head_width};
use super::decoder::{Decoder, Style};
use super::rope::{ROPE_SCALING, rope_theta};
use super::{FieldType, HuggingFace, ModelError, PlannedNetwork, llama};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("hidden_act", "\"silu\""),
        ("num_key_value_heads", "8"),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", "10000.0"),
        ("tie_word_embeddings", "false"),
    ],
    read: |config, field| match field {
        // `null` means that there is no window. Without the field, the window is the default.
        "sliding_window" if config.get(field).is_none() => Some(4096.into()),
        "head_dim" if config[field].is_null() => usual_head_width(config),
        _ => read(config, field),
    },
    irrelevant: &["attention_dropout"],
    config_fields: &[
        rms_norm_eps("1e-5"),
        rope_theta("10000.0"),
        ROPE_SCALING,
        sliding_window("null", FieldType::CountOrNull),
    ],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::decoder("mistral", "Mistral")
};

/// Mistral's variant of the decoder.
pub(super) const STYLE: Style = Style { hugging_face: &HUGGING_FACE, slides: |_| true, ..llama::STYLE };

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
