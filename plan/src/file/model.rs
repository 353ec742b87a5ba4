//! The network architecture.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::schema::check::check_field;
use crate::{Family, MadeFrom, PlanError};

/// The network architecture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The model family.
    pub family: Family,
    /// Model width. A multiple of `heads`.
    #[schemars(range(min = 1, max = 65_536))]
    pub d_model: u32,
    /// Number of blocks.
    #[schemars(range(min = 1, max = 1_024))]
    pub layers: u32,
    /// Attention heads per block.
    #[schemars(range(min = 1, max = 1_024))]
    pub heads: u32,
    /// Width of the feed-forward part of a block.
    #[schemars(range(min = 1, max = 262_144))]
    pub d_ff: u32,
    /// Tokens per window: the longest text that the model sees.
    #[schemars(range(min = 2, max = 131_072))]
    pub context: u32,
    /// Most tokens that the decoder writes, the end-of-text token included (t5, t5_v1_1, bart, mbart and marian only). Defaults to `context`; with
    /// `span_corruption` and classification it follows from `context`. With `prefix_lm` it also fixes where a text is divided, unless
    /// `training.prefix_split` does: after `context` − 1 tokens, and this − 1 are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 131_072))]
    pub decoder_context: Option<u32>,
    /// Key and value heads, each shared by a group of query heads (stablelm and decoders with RMS norms only: llama, gemma3 and others). Defaults to `heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_024))]
    pub kv_heads: Option<u32>,
    /// Width of an attention head (decoders with RMS norms, where it is even, and t5 and t5_v1_1). Defaults to `d_model` / `heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_536))]
    pub d_head: Option<u32>,
    /// Whether the output head has its own table instead of sharing the token table (decoders with RMS norms, gpt_neox,
    /// phi, stablelm and gptj only).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub untied: bool,
    /// Fields of the checkpoint's `config.json` in which it differs from the usual values of the family, such as `rope_theta`.
    /// `trainer-native describe CHECKPOINT` writes them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// Number of preceding tokens that a prediction sees (feed_forward only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_024))]
    pub history: Option<u32>,
    /// Widths of the `layers` hidden layers, each at most `d_ff` (feed_forward only). Defaults to `d_ff` for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1_024))]
    pub hidden: Option<Vec<u32>>,
    /// The initial weights.
    #[serde(default, skip_serializing_if = "Initial::is_random")]
    #[schemars(extend("default" = "random"))]
    pub initial: Initial,
    /// How a text becomes one vector for the head of a classification (bert, roberta and distilbert only). Defaults to what the
    /// family's classifier in `transformers` does: the first position, through a layer of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooling: Option<Pooling>,
    /// What the checkpoint was made from. Required with a checkpoint. One that private text made is refused under another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_made_from: Option<MadeFrom>,
    /// Which weights are trained. Only these have gradients, noise and optimizer state.
    #[serde(default, skip_serializing_if = "Trainable::is_all")]
    #[schemars(extend("default" = "all"))]
    pub trainable: Trainable,
}

impl Model {
    /// Reads a model as a plan states it.
    ///
    /// # Errors
    /// [`PlanError::Field`] for an unknown or missing field, a wrong type or a value out of range.
    pub fn parse(value: &Value) -> Result<Self, PlanError> {
        check_field(value, "model")?;
        serde_json::from_value(value.clone()).map_err(|error| {
            PlanError::field("model", error.to_string(), "a model as in a plan", "correct the field")
        })
    }

    /// Returns the widths of the hidden layers of a feed-forward model.
    #[must_use]
    pub fn hidden_widths(&self) -> Vec<u32> {
        self.hidden.clone().unwrap_or_else(|| vec![self.d_ff; self.layers as usize])
    }
}

/// The initial weights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Initial {
    /// Random initialization.
    #[default]
    Random,
    /// The weights of a checkpoint: a folder with `config.json` and `model.safetensors`,
    /// relative to the plan file. The tokenizer must be the one of the checkpoint, given as `public`.
    Checkpoint(#[schemars(length(min = 1))] String),
}

impl Model {
    /// Names the family, the number of layers and their width, for a sentence.
    #[must_use]
    pub fn shape_in_words(&self) -> String {
        let layers = if self.layers == 1 { "layer" } else { "layers" };
        format!("{}, {} {layers} of width {}", self.family.name(), self.layers, self.d_model)
    }

    /// Returns what the initial weights were made from, in a valid plan. Random weights are made from nothing.
    #[must_use]
    pub fn made_from(&self) -> MadeFrom {
        self.checkpoint_made_from.unwrap_or(MadeFrom::PublicText)
    }

    /// Returns this field of `config`, if it is true or false.
    pub(crate) fn flag(&self, field: &str) -> Option<bool> {
        self.config.get(field)?.as_bool()
    }
}

impl Initial {
    fn is_random(&self) -> bool {
        *self == Self::Random
    }
}

/// How a text becomes one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// The mean of the hidden states of its tokens. The head is then one linear layer, which starts at zero.
    Mean,
}

/// Which weights are trained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trainable {
    /// All weights.
    #[default]
    All,
    /// Low-rank adapters beside frozen matrices (Hu et al. 2021). They are merged into the finished model.
    Lora(Lora),
    /// The last blocks, this many of them, and the parts after them, except the token table.
    LastLayers(#[schemars(range(min = 1, max = 1_024))] u32),
    /// The gains of the norms, and the head of a classification.
    Norms,
    /// The attention of the decoder to the encoder's output, and the head of a classification (t5, t5_v1_1, bart, mbart and marian
    /// only).
    CrossAttention,
    /// The head of a classification alone.
    Head,
}

impl Trainable {
    fn is_all(&self) -> bool {
        *self == Self::All
    }
}

/// Low-rank adapters: a frozen matrix W acts as W + (alpha/rank)·B·A.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lora {
    /// Rank of each adapter.
    #[schemars(range(min = 1, max = 4_096))]
    pub rank: u32,
    /// Scale of the adapters: their product is multiplied by alpha / rank.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e6))]
    pub alpha: f64,
    /// Name suffixes of the adapted matrices, as in the checkpoint: "q_proj", "c_attn".
    #[schemars(length(min = 1, max = 100))]
    pub targets: Vec<String>,
}

impl Lora {
    /// Returns the adapters that a family usually gets: rank 4 and alpha 32, as for GPT-2 in Hu et al. 2021, table 11.
    #[must_use]
    pub fn usual(family: Family) -> Self {
        let targets = family.adapted_matrices().iter().map(|name| (*name).to_owned()).collect();
        Self { rank: 4, alpha: 32.0, targets }
    }
}
