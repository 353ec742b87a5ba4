//! The shape of the network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shape of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The architecture.
    pub family: Family,
    /// Width; a multiple of `heads`.
    #[schemars(range(min = 1, max = 65_536))]
    pub d_model: u32,
    /// Number of blocks.
    #[schemars(range(min = 1, max = 1_024))]
    pub layers: u32,
    /// Attention heads a block.
    #[schemars(range(min = 1, max = 1_024))]
    pub heads: u32,
    /// Width inside a block's feed-forward part.
    #[schemars(range(min = 1, max = 262_144))]
    pub d_ff: u32,
    /// Tokens a window: the longest text the model sees.
    #[schemars(range(min = 2, max = 131_072))]
    pub context: u32,
    /// Key and value heads, shared by the query heads (decoder only); as many as `heads` where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_024))]
    pub kv_heads: Option<u32>,
    /// Width of a head, an even number (decoder only); `d_model` / `heads` where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 65_536))]
    pub d_head: Option<u32>,
    /// Whether the output head is a table of its own instead of the token table (decoder only).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untied: bool,
    /// Tokens that a prediction sees (feed_forward only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_024))]
    pub history: Option<u32>,
    /// Widths of the hidden layers, `layers` of them, none above `d_ff` (feed_forward only); `d_ff` each where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1_024))]
    pub hidden: Option<Vec<u32>>,
    /// What the weights are before the first step.
    #[serde(default, skip_serializing_if = "Initial::is_random")]
    pub initial: Initial,
    /// Which weights the training moves; only these have gradients, noise and optimizer state.
    #[serde(default, skip_serializing_if = "Trainable::is_all")]
    pub trainable: Trainable,
}

impl Model {
    /// Widths of the hidden layers of a feed-forward model.
    #[must_use]
    pub fn hidden_widths(&self) -> Vec<u32> {
        self.hidden.clone().unwrap_or_else(|| vec![self.d_ff; self.layers as usize])
    }
}

/// What the weights are before the first step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Initial {
    /// Drawn at random.
    #[default]
    Random,
    /// Those of a checkpoint made without the private text: a folder with config.json and model.safetensors, relative to
    /// the plan file. The tokenizer must be the checkpoint's, given as a public one.
    Checkpoint(#[schemars(length(min = 1))] String),
}

impl Initial {
    fn is_random(&self) -> bool {
        *self == Self::Random
    }
}

/// Which weights the training moves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trainable {
    /// All of them.
    #[default]
    All,
    /// Low-rank adapters beside frozen matrices (Hu et al. 2021); merged into these in the finished model.
    Lora(Lora),
    /// The last so many blocks and what follows them, the token table excepted.
    LastLayers(#[schemars(range(min = 1, max = 1_024))] u32),
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
    /// Rank of an adapter.
    #[schemars(range(min = 1, max = 4_096))]
    pub rank: u32,
    /// Weight of the adapters, in units of the rank.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e6))]
    pub alpha: f64,
    /// Ends of the names of the adapted matrices, as the checkpoint has them: "q_proj", "c_attn".
    #[schemars(length(min = 1, max = 100))]
    pub targets: Vec<String>,
}

/// The architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// GPT-2: decoder only, learnt positions, layer norm first, embedding and head tied.
    Gpt2,
    /// T5 version 1.0: encoder and decoder of `layers` blocks each, relative positions, ReLU, one table for embeddings
    /// and head. `context` is the encoder's.
    T5,
    /// T5 version 1.1, as mT5: the same with a gated GELU and a head of its own.
    #[serde(rename = "t5_v1_1")]
    T5V1_1,
    /// BERT: encoder only, learnt positions, layer norm last, exact GELU.
    Bert,
    /// Gemma's layout: decoder only, RMS norm first, rotary positions, grouped-query attention, gated GELU.
    Decoder,
    /// Feed-forward: the vectors of the last `history` tokens through hidden layers with ReLU (Kerrigan 2020).
    FeedForward,
}
