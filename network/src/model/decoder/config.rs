//! Fields of `config.json` that several families of decoders share, and the forms in which files state them.

use serde_json::{Value, json};

use crate::model::{ConfigField, FieldType, rope};

/// The entry of `layer_types` for a layer that sees only the last tokens before a token.
pub(super) const SLIDING: &str = "sliding_attention";

/// Returns the field of the number that is added to the mean square in norms, with the family's usual value.
pub(in crate::model) const fn rms_norm_eps(usual: &'static str) -> ConfigField {
    ConfigField::new("rms_norm_eps", usual, FieldType::Positive)
}

/// Returns the field of the number of tokens that a layer with a window sees, with the family's usual value.
pub(in crate::model) const fn sliding_window(usual: &'static str, field_type: FieldType) -> ConfigField {
    ConfigField::new("sliding_window", usual, field_type)
}

/// Whether all four projections of attention have biases.
pub(in crate::model) const ATTENTION_BIAS: ConfigField =
    ConfigField::new("attention_bias", "false", FieldType::Flag);
/// Whether the projections of the feed-forward part have biases.
pub(in crate::model) const MLP_BIAS: ConfigField = ConfigField::new("mlp_bias", "false", FieldType::Flag);
/// The base of rotary positions in layers with a window, which are never scaled.
pub(in crate::model) const LOCAL_BASE: ConfigField =
    ConfigField::new("rope_local_base_freq", "10000.0", FieldType::Positive);
/// The square root of this number divides attention's scores.
pub(in crate::model) const QUERY_SCALAR: ConfigField =
    ConfigField::new("query_pre_attn_scalar", "256", FieldType::Positive);
/// A factor of the embeddings.
pub(in crate::model) const EMBEDDING_FACTOR: ConfigField =
    ConfigField::new("embedding_multiplier", "12.0", FieldType::Positive);
/// The factor of attention's scores, instead of that of the width of a head.
pub(in crate::model) const ATTENTION_FACTOR: ConfigField =
    ConfigField::new("attention_multiplier", "0.015625", FieldType::Positive);
/// A factor of the output of each part of a block.
pub(in crate::model) const RESIDUAL_FACTOR: ConfigField =
    ConfigField::new("residual_multiplier", "0.22", FieldType::Positive);
/// A divisor of the logits.
pub(in crate::model) const LOGITS_DIVISOR: ConfigField =
    ConfigField::new("logits_scaling", "8.0", FieldType::Positive);
/// Which layers have rotary positions.
pub(in crate::model) const ROTATING: ConfigField =
    ConfigField::new("no_rope_layers", "null", FieldType::RotatingLayers);
/// A cap of attention's scores.
pub(in crate::model) const ATTENTION_CAP: ConfigField =
    ConfigField::new("attn_logit_softcapping", "50.0", FieldType::PositiveOrNull);

/// Returns the field of the cap of the logits, with the family's usual value.
pub(in crate::model) const fn logit_cap(usual: &'static str) -> ConfigField {
    ConfigField::new("final_logit_softcapping", usual, FieldType::PositiveOrNull)
}

pub(in crate::model) const LAYER_TYPES: ConfigField =
    ConfigField::new("layer_types", "null", FieldType::LayerTypes);

/// Reads a field that all these families state in the same way; `None` for any other field.
pub(in crate::model) fn read(config: &Value, field: &str) -> Option<Value> {
    match field {
        rope::BASE => rope::base(config),
        rope::SCALING => Some(rope::scaling(config)),
        "num_key_value_heads" if config.get(field)?.is_null() => Some(config["num_attention_heads"].clone()),
        _ => None,
    }
}

/// Returns whether a layer has rotary positions in a file that does not list them.
pub(super) fn usually_rotates(layer: usize) -> bool {
    !(layer + 1).is_multiple_of(4)
}

/// Returns the width of a head in a file that omits it.
pub(in crate::model) fn usual_head_width(config: &Value) -> Option<Value> {
    let [width, heads] = ["hidden_size", "num_attention_heads"].map(|size| config[size].as_u64());
    Some(json!(width.zip(heads).and_then(|(width, heads)| width.checked_div(heads))))
}

/// One more layer than a plan may have. The limit keeps a file from asking for any amount of memory.
pub(in crate::model) const MAX_LAYERS: u64 = 1024 + 1;

/// Returns the type of each layer, as `layer_types` lists it or, without a list, as `slides`
/// decides by index.
pub(in crate::model) fn layer_types(config: &Value, slides: impl Fn(u64) -> bool) -> Value {
    let given = &config["layer_types"];
    if !given.is_null() {
        return given.clone();
    }
    let layers = config["num_hidden_layers"].as_u64().unwrap_or(0).min(MAX_LAYERS);
    (0..layers).map(|at| layer_type(slides(at))).collect()
}

pub(super) fn layer_type(slides: bool) -> Value {
    json!(if slides { SLIDING } else { "full_attention" })
}

/// Returns whether any layer of a list has a window.
pub(in crate::model) fn any_slides(layer_types: &Value) -> bool {
    layer_types.as_array().is_some_and(|types| types.iter().any(|layer| layer == SLIDING))
}
