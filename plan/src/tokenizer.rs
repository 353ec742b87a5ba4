//! Where the vocabulary comes from: private text at a cost, or a public file for nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the vocabulary comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// Trained on words released privately from the training text; charged.
    Train(TrainedTokenizer),
    /// An existing file, made without the private text; costs nothing.
    Public(PublicTokenizer),
    /// One token per byte; costs nothing.
    Bytes,
}

/// A vocabulary learnt from privately released words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainedTokenizer {
    /// How released words become tokens.
    pub model: TokenizerModel,
    /// Upper limit on the number of tokens, special and byte tokens included.
    #[schemars(range(min = 300, max = 1_048_576))]
    pub vocab_size: u32,
    /// How words are released.
    pub release: ReleaseMethod,
    /// Whether text outside the vocabulary becomes byte tokens instead of the unknown token.
    #[serde(default = "yes")]
    pub byte_fallback: bool,
}

fn yes() -> bool {
    true
}

/// How released words become tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenizerModel {
    /// The most likely cut into pieces.
    Unigram,
}

/// How words are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseMethod {
    /// Iterative partition selection: three thresholded rounds, then noisy counts of the words found.
    Sips,
}

/// A vocabulary made without the private text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublicTokenizer {
    /// A `tokenizer.json`, relative to the plan file.
    #[schemars(length(min = 1))]
    pub path: String,
}
