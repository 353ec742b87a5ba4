//! The shape of the network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shape of the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
}
