//! Qwen 2 and 2.5: Llama with biases on queries, keys and values.
//!
//! # References
//! Qwen Team 2024, <https://arxiv.org/abs/2412.15115>; names and initial values as Hugging Face's `Qwen2ForCausalLM`.

use serde_json::{Value, json};

use super::decoder::config::{
    LAYER_TYPES, any_slides, layer_types, read, rms_norm_eps, sliding_window, usual_head_width,
};
use super::decoder::{Decoder, Projections, Style};
use super::rope::{ROPE_SCALING, rope_theta};
use super::{FieldType, HuggingFace, ModelError, PlannedNetwork, llama};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("hidden_act", "\"silu\""),
        ("num_key_value_heads", "32"),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", "10000.0"),
        ("tie_word_embeddings", "false"),
    ],
    read: |config, field| match field {
        "head_dim" if config[field].is_null() => usual_head_width(config),
        _ => read_windows(config, field),
    },
    fixed: &[("use_mrope", "false")],
    // Repeats what `layer_types` says.
    irrelevant: &["attention_dropout", "max_window_layers"],
    config_fields: &[
        rms_norm_eps("1e-6"),
        rope_theta("1000000.0"),
        ROPE_SCALING,
        sliding_window("null", FieldType::CountOrNull),
        LAYER_TYPES,
    ],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::decoder("qwen2", "Qwen2")
};

/// Reads which layers have a window, in each form that Qwen's files use. Reads all other fields as
/// [`read`] does.
pub(super) fn read_windows(config: &Value, field: &str) -> Option<Value> {
    let window = Some(&config["use_sliding_window"]).filter(|used| **used == true);
    let window = window.map(|_| config.get("sliding_window").cloned().unwrap_or(json!(4096)));
    let first = config["max_window_layers"].as_u64().unwrap_or(28);
    let has_window = window.as_ref().is_some_and(|window| !window.is_null());
    let layers = || layer_types(config, |at| has_window && at >= first);
    match field {
        "layer_types" => Some(layers()),
        "use_sliding_window" => Some(json!(any_slides(&layers()))),
        "sliding_window" => Some(window.filter(|_| any_slides(&layers())).unwrap_or_default()),
        _ => read(config, field),
    }
}

/// Fields that repeat `layer_types` for older readers: from one layer on, all layers have a window.
pub(super) fn fields(slides: &[bool]) -> Value {
    let first = slides.iter().position(|&slides| slides).unwrap_or(slides.len());
    json!({ "hidden_act": "silu", "use_sliding_window": first < slides.len(), "max_window_layers": first })
}

/// Qwen 2's variant of the decoder.
pub(super) const STYLE: Style =
    Style { hugging_face: &HUGGING_FACE, fields, projections: Projections::Biased, ..llama::STYLE };

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
