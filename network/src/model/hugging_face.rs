//! What a family's checkpoints look like on Hugging Face beyond the configuration and names that this program writes.

use serde_json::Value;

use super::Setting;

/// How the checkpoints of a family may differ from ours and still hold the same model.
#[derive(Debug)]
pub struct HuggingFace {
    /// `model_type` in `config.json`.
    pub model_type: &'static str,
    /// Beginning of the names of its classes.
    pub class: &'static str,
    /// What `transformers` takes for a field that a file leaves out, as JSON, before [`Self::COMMON_DEFAULTS`].
    pub defaults: &'static [(&'static str, &'static str)],
    /// Fields of which this program has one value, as JSON; a file may leave them out.
    pub fixed: &'static [(&'static str, &'static str)],
    /// The value of a field that a file states in another way; else `None`.
    pub read: fn(config: &Value, field: &str) -> Option<Value>,
    /// The field that says how many positions there are, if the model has a limit. A file may have more than the plan.
    pub positions: Option<&'static str>,
    /// How many of these positions no token has.
    pub first_position: u64,
    /// Fields that say nothing about what the model computes.
    pub irrelevant: &'static [&'static str],
    /// Fields that a plan may give in `model.config`.
    pub settings: &'static [Setting],
    /// The plan's field that decides each field.
    pub plan_fields: &'static [(&'static str, &'static str)],
    /// Left off each name by a checkpoint of the body alone.
    pub prefix: &'static str,
    /// Ends of names that hold no weight: masks, positions and frequencies that follow from the configuration.
    pub buffers: &'static [&'static str],
    /// Ends of names in old files, and what they are now.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Names under which a tied table is written a second time.
    pub copies: &'static [&'static str],
    /// Names of buffers that may hold zeros alone, and then compute nothing.
    pub zeros: &'static [&'static str],
    /// Starts of names of parts that a model of this program may do without.
    pub unused: &'static [&'static str],
    /// Name of what predicts tags of words.
    pub tagger: &'static str,
    /// Starts of names of what predicts tokens, which a model that predicts labels does without.
    pub token_heads: &'static [&'static str],
    /// Starts of names of what predicts labels. It is drawn at random if a checkpoint lacks it.
    pub label_heads: &'static [&'static str],
    /// The end of the names of tables of positions, of which a file may have more than the plan.
    pub position_table: Option<&'static str>,
}

impl HuggingFace {
    /// Defaults of every family that has no other.
    pub const COMMON_DEFAULTS: &[(&'static str, &'static str)] = &[("tie_word_embeddings", "true")];

    /// A decoder whose head may have its own table.
    pub const fn decoder(model_type: &'static str, class: &'static str) -> Self {
        Self {
            plan_fields: &[
                ("hidden_size", "model.d_model"),
                ("num_hidden_layers", "model.layers"),
                ("num_attention_heads", "model.heads"),
                ("num_key_value_heads", "model.kv_heads"),
                ("head_dim", "model.d_head"),
                ("intermediate_size", "model.d_ff"),
                ("max_position_embeddings", "model.context"),
                ("tie_word_embeddings", "model.untied"),
            ],
            ..Self::plain(model_type, class)
        }
    }

    /// A family without special cases, of this `model_type` and with these classes.
    pub const fn plain(model_type: &'static str, class: &'static str) -> Self {
        Self {
            model_type,
            class,
            defaults: &[],
            fixed: &[],
            read: |_, _| None,
            positions: Some("max_position_embeddings"),
            first_position: 0,
            irrelevant: &[],
            settings: &[],
            plan_fields: &[
                ("hidden_size", "model.d_model"),
                ("num_hidden_layers", "model.layers"),
                ("num_attention_heads", "model.heads"),
                ("num_key_value_heads", "model.kv_heads"),
                ("head_dim", "model.d_head"),
                ("intermediate_size", "model.d_ff"),
                ("max_position_embeddings", "model.context"),
            ],
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
