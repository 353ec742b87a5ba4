//! VaultGemma: Gemma 2 without the norms after each part, and without windows.
//!
//! # References
//! VaultGemma Team 2025, <https://arxiv.org/abs/2510.15001>; names and initial values as Hugging Face's `VaultGemmaForCausalLM`.

use serde_json::{Value, json};

use super::decoder::config::{
    ATTENTION_BIAS, ATTENTION_CAP, LAYER_TYPES, QUERY_SCALAR, any_slides, layer_types, logit_cap,
    rms_norm_eps, sliding_window,
};
use super::decoder::{Decoder, Norms, Style};
use super::rope::{ROPE_SCALING, rope_theta};
use super::{FieldType, HuggingFace, ModelError, PlannedNetwork, gemma2};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    fixed: &[],
    read,
    config_fields: &[
        rms_norm_eps("1e-6"),
        rope_theta("10000.0"),
        ROPE_SCALING,
        ATTENTION_BIAS,
        sliding_window("null", FieldType::CountOrNull),
        LAYER_TYPES,
        QUERY_SCALAR,
        ATTENTION_CAP,
        logit_cap("30.0"),
    ],
    defaults: gemma2::HUGGING_FACE.defaults,
    irrelevant: gemma2::HUGGING_FACE.irrelevant,
    buffers: gemma2::HUGGING_FACE.buffers,
    ..HuggingFace::decoder("vaultgemma", "VaultGemma")
};

/// Reads a window only where a layer has it: the published file has a window and no such layer.
fn read(config: &Value, field: &str) -> Option<Value> {
    // Without a list, `transformers` gives every other layer a window, as in Gemma 2.
    let layers = || layer_types(config, |at| at % 2 == 0);
    match field {
        "sliding_window" if !any_slides(&layers()) => Some(Value::Null),
        _ => (gemma2::HUGGING_FACE.read)(config, field),
    }
}

/// VaultGemma's variant of the decoder.
const STYLE: Style = Style {
    hugging_face: &HUGGING_FACE,
    fields: |slides| match slides.contains(&true) {
        true => json!({ "hidden_activation": "gelu_pytorch_tanh" }),
        // `transformers` needs a window even if no layer has it. This one is that of the published file.
        false => json!({ "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 512 }),
    },
    norms: Norms::Before,
    slides: |_| false,
    ..gemma2::STYLE
};

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
