//! Descriptions of the families' checkpoints on Hugging Face, beyond the configuration and names
//! that this program writes.

use serde_json::Value;

use super::ConfigField;

/// The ways in which a family's checkpoints may differ from those of this program and still hold the same model.
#[derive(Debug)]
pub struct HuggingFace {
    /// `model_type` in `config.json`.
    pub model_type: &'static str,
    /// Beginning of the names of the model classes.
    pub class: &'static str,
    /// Values, as JSON, that `transformers` assumes for fields that a file omits, before
    /// [`Self::COMMON_DEFAULTS`].
    pub defaults: &'static [(&'static str, &'static str)],
    /// Fields for which this program supports a single value, as JSON. A file may omit them.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Reads a field that a file states in another form; otherwise returns `None`.
    pub read: fn(config: &Value, field: &str) -> Option<Value>,
    /// Returns the refusal of a file whose fields contradict one another.
    pub contradiction: fn(config: &Value) -> Option<String>,
    /// The field with the number of positions, if the model has a limit. A file may have more
    /// positions than the plan.
    pub positions: Option<&'static str>,
    /// Number of the positions in that field that no token has.
    pub first_position: u64,
    /// Fields that do not affect the model's computation.
    pub irrelevant: &'static [&'static str],
    /// Fields that a plan may give in `model.config`.
    pub config_fields: &'static [ConfigField],
    /// Fields of `config.json`, each with the field of the plan that determines it.
    pub plan_fields: &'static [(&'static str, &'static str)],
    /// Prefix of all names, which a checkpoint of the body alone omits.
    pub prefix: &'static str,
    /// Suffixes of names that hold no weight: masks, positions and frequencies that follow from the
    /// configuration.
    pub buffers: &'static [&'static str],
    /// Suffixes of names in old files, and their present forms.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Names under which a tied table is written a second time.
    pub copies: &'static [&'static str],
    /// Names of buffers that may hold only zeros, which then have no effect.
    pub zeros: &'static [&'static str],
    /// Prefixes of the names of parts that a model of this program may lack.
    pub unused: &'static [&'static str],
    /// Name of the layer that predicts tags of words.
    pub tagger: &'static str,
    /// Prefixes of the names of layers that predict tokens. A model that predicts labels lacks
    /// them.
    pub token_heads: &'static [&'static str],
    /// Prefixes of the names of layers that predict labels. They are drawn at random if a
    /// checkpoint lacks them.
    pub label_heads: &'static [&'static str],
    /// Suffix of the names of position tables, of which a file may have more rows than the plan.
    pub position_table: Option<&'static str>,
}

/// Fields of `config.json`, each with the field of the plan that determines it. The last one exists in families whose
/// head may have its own table.
const PLAN_FIELDS: &[(&str, &str)] = &[
    ("hidden_size", "model.d_model"),
    ("num_hidden_layers", "model.layers"),
    ("num_attention_heads", "model.heads"),
    ("num_key_value_heads", "model.kv_heads"),
    ("head_dim", "model.d_head"),
    ("intermediate_size", "model.d_ff"),
    ("max_position_embeddings", "model.context"),
    ("tie_word_embeddings", "model.untied"),
];

impl HuggingFace {
    /// Defaults of every family that states no other.
    pub const COMMON_DEFAULTS: &[(&'static str, &'static str)] = &[("tie_word_embeddings", "true")];

    /// Describes a decoder whose head may have its own table.
    pub const fn decoder(model_type: &'static str, class: &'static str) -> Self {
        Self { plan_fields: PLAN_FIELDS, ..Self::plain(model_type, class) }
    }

    /// Describes a family without special cases, with this `model_type` and these classes.
    pub const fn plain(model_type: &'static str, class: &'static str) -> Self {
        Self {
            model_type,
            class,
            defaults: &[],
            fixed: &[],
            read: |_, _| None,
            contradiction: |_| None,
            positions: Some("max_position_embeddings"),
            first_position: 0,
            irrelevant: &[],
            config_fields: &[],
            plan_fields: PLAN_FIELDS.split_at(PLAN_FIELDS.len() - 1).0,
            prefix: "model.",
            buffers: &[],
            renamed: &[],
            copies: &["lm_head.weight"],
            zeros: &[],
            unused: &[],
            tagger: "score",
            token_heads: &["lm_head."],
            label_heads: &["score.", "classifier."],
            position_table: None,
        }
    }
}
