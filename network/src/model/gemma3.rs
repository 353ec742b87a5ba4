//! Gemma 3 for text: Gemma with norms after each part and for each head of queries and keys. Five
//! of six layers have a window, and rotary positions with their own base.
//!
//! # References
//! Gemma Team 2025, <https://arxiv.org/abs/2503.19786>; names and initial values as Hugging Face's
//! `Gemma3ForCausalLM`.

use serde_json::{Value, json};

use super::decoder::config::{
    ATTENTION_BIAS, LAYER_TYPES, LOCAL_BASE, QUERY_SCALAR, layer_types, logit_cap, read, rms_norm_eps,
    sliding_window,
};
use super::decoder::{Decoder, HeadNorms, Style};
use super::rope::{ROPE_SCALING, rope_theta};
use super::{FieldType, HuggingFace, ModelError, PlannedNetwork, gemma2, rope};

/// Period of the layers that see all tokens.
const FULL_EVERY: usize = 6;

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("attention_bias", "false"),
        ("head_dim", "256"),
        ("hidden_activation", "\"gelu_pytorch_tanh\""),
        ("num_key_value_heads", "4"),
        ("query_pre_attn_scalar", "256"),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", "1000000.0"),
        (LOCAL_BASE.name, "10000.0"),
        ("sliding_window", "4096"),
    ],
    // The cap of attention is dropped by some of transformers' kernels and kept by others.
    fixed: &[("use_bidirectional_attention", "false"), ("attn_logit_softcapping", "null")],
    read: |config, field| match field {
        "layer_types" => {
            let every = config["sliding_window_pattern"].as_u64().unwrap_or(FULL_EVERY as u64).max(1);
            Some(layer_types(config, |at| !(at + 1).is_multiple_of(every)))
        }
        rope::BASE => rope::base_among(config, &config["rope_parameters"]["full_attention"]),
        rope::SCALING => Some(scaling(config)),
        field if field == LOCAL_BASE.name => {
            let local = &config["rope_parameters"]["sliding_attention"]["rope_theta"];
            Some(local.clone()).filter(|base| !base.is_null())
        }
        _ => read(config, field),
    },
    contradiction: |config| {
        let is_given = |name: &str| config[name].as_object().is_some_and(|fields| !fields.is_empty());
        if is_given(rope::SCALING) && is_given(rope::PARAMETERS) {
            return Some(
                "rope_scaling beside rope_parameters, which transformers reads otherwise in each version; remove rope_scaling \
                 if rope_parameters says it"
                    .to_owned(),
            );
        }
        rope::not_by_layer(config)
    },
    // Both patterns repeat what `layer_types` says.
    irrelevant: &[
        "attention_dropout",
        "cache_implementation",
        "hidden_act",
        "_sliding_window_pattern",
        "sliding_window_pattern",
    ],
    config_fields: &[
        rms_norm_eps("1e-6"),
        rope_theta("1000000.0"),
        LOCAL_BASE,
        ROPE_SCALING,
        ATTENTION_BIAS,
        sliding_window("512", FieldType::Count),
        LAYER_TYPES,
        QUERY_SCALAR,
        logit_cap("null"),
    ],
    buffers: &["rotary_emb.inv_freq", "rotary_emb_local.inv_freq", "embed_scale"],
    ..HuggingFace::decoder("gemma3_text", "Gemma3Text")
};

/// Returns the scaling of the layers that see all tokens. If a file also scales the other layers,
/// the result is a value that no plan gives.
fn scaling(config: &Value) -> Value {
    let parameters = &config[rope::PARAMETERS];
    let local = rope::scaling_among(config, &parameters["sliding_attention"]);
    match rope::scaling_among(config, &config[rope::SCALING]) {
        _ if !local.is_null() => parameters.clone(),
        Value::Null => rope::scaling_among(config, &parameters["full_attention"]),
        old => old,
    }
}

/// Gemma 3's variant of the decoder.
pub(super) const STYLE: Style = Style {
    hugging_face: &HUGGING_FACE,
    // The names of this model's other classes begin with `Gemma3Text`.
    fields: |_| json!({ "architectures": ["Gemma3ForCausalLM"], "hidden_activation": "gelu_pytorch_tanh" }),
    head_norms: Some(HeadNorms::Each),
    slides: |at| !(at + 1).is_multiple_of(FULL_EVERY),
    ..gemma2::STYLE
};

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
