//! Where the vocabulary comes from: private text, which is charged, or a public file, which is not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the vocabulary comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// Trained on words released privately from the training text. Charged.
    Train(TrainedTokenizer),
    /// An existing file made without the private text. Costs nothing.
    Public(PublicTokenizer),
    /// One token per byte. Costs nothing.
    Bytes,
}

/// A vocabulary trained on privately released words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainedTokenizer {
    /// How released words become tokens.
    pub model: TokenizerModel,
    /// Maximum number of tokens, including special and byte tokens.
    #[schemars(range(min = 300, max = 1_048_576))]
    pub vocab_size: u32,
    /// The method that releases words.
    pub release: ReleaseMethod,
    /// Whether text outside the vocabulary becomes byte tokens. Otherwise it becomes the unknown token.
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
    /// Unigram language model: the most probable segmentation into pieces.
    Unigram,
}

/// The method that releases words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseMethod {
    /// DP-SIPS: three rounds of thresholded partition selection, then noisy counts of the words found.
    Sips,
    /// DP-SIPS in five rounds that pool their evidence.
    Pooled,
    /// The policy Gaussian mechanism in one round: each unit adds weight only to words that still need it.
    Policy,
    /// A variant of MaxAdaptiveDegree in two rounds: surplus weight of frequent words moves to rarer ones.
    Mad2r,
}

impl ReleaseMethod {
    /// How a release divides its squared μ among its rounds; [`COUNT_SHARE`] is left for the count. More each round: few
    /// words pass the first, and those leave before the last, which can then look at rarer ones.
    pub(crate) fn round_shares(self) -> &'static [f64] {
        match self {
            Self::Sips => &[0.0625, 0.1875, 0.5],
            Self::Pooled => &[0.07, 0.07, 0.14, 0.2, 0.27],
            Self::Policy => &[0.75],
            Self::Mad2r => &[0.15, 0.6],
        }
    }
}

/// The share of a release's squared μ for the count of what was found.
pub(crate) const COUNT_SHARE: f64 = 0.25;

/// A vocabulary made without the private text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublicTokenizer {
    /// A `tokenizer.json`, relative to the plan file.
    #[schemars(length(min = 1))]
    pub path: String,
}
