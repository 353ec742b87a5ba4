//! Where the vocabulary comes from: private text, which is charged, or a public file, which is not.

use mechanisms::{ReleaseMethod, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::MadeFrom;

/// Where the vocabulary comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// Trained on words released privately from the training text. Charged.
    Train(TrainedTokenizer),
    /// A public file with more tokens: words released privately from the training text. Charged.
    Extend(ExtendedTokenizer),
    /// An existing file. `made_from` declares what it was made from.
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
    /// Whether text outside the vocabulary becomes byte tokens (unigram and char). Otherwise it becomes the unknown token.
    #[serde(default = "yes")]
    pub byte_fallback: bool,
    /// What is released as a word. The guarantee is the same: what a unit adds is bounded over whatever words there are.
    #[serde(default, skip_serializing_if = "Words::is_by_class")]
    #[schemars(extend("default" = "by_class"))]
    pub words: Words,
    /// Public `tokenizer.json` files, relative to the plan file, whose pieces stand for words that were not released (unigram). They cost
    /// nothing and must be made from public text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1)))]
    pub prior: Vec<String>,
}

/// A public vocabulary and privately released words. Tokens of the file keep their ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendedTokenizer {
    /// A `tokenizer.json` made from public text, relative to the plan file: unigram, BPE or WordPiece.
    #[schemars(length(min = 1))]
    pub path: String,
    /// Maximum number of tokens to add. Each has a row in the model's tables.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub added_tokens: u32,
    /// The method that releases words.
    pub release: ReleaseMethod,
}

impl Tokenizer {
    /// Returns the method and the kind of words by which words of the training text are released; `None` if none are.
    #[must_use]
    pub fn release(&self) -> Option<(ReleaseMethod, Words)> {
        match self {
            Self::Train(trained) => Some((trained.release, trained.words)),
            Self::Extend(extended) => Some((extended.release, Words::ByClass)),
            Self::Public(_) | Self::Bytes => None,
        }
    }

    /// Returns the public files whose pieces stand for words that were not released, relative to the plan file.
    #[must_use]
    pub fn prior(&self) -> &[String] {
        match self {
            Self::Train(trained) => &trained.prior,
            Self::Extend(_) | Self::Public(_) | Self::Bytes => &[],
        }
    }

    /// Returns the file that the tokenizer is or extends, relative to the plan file.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Public(public) => Some(&public.path),
            Self::Extend(extended) => Some(&extended.path),
            Self::Train(_) | Self::Bytes => None,
        }
    }

    /// Returns what [the file](Self::file) was made from.
    #[must_use]
    pub fn made_from(&self) -> MadeFrom {
        match self {
            Self::Public(public) => public.made_from,
            Self::Train(_) | Self::Extend(_) | Self::Bytes => MadeFrom::PublicText,
        }
    }
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
    /// Byte-level byte-pair encoding, as in GPT-2.
    Bpe,
    /// WordPiece with BERT's special tokens, in lower case without accents.
    Wordpiece,
    /// WordPiece that keeps case and accents.
    WordpieceCased,
    /// The most frequent characters.
    Char,
}

/// A vocabulary that exists already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublicTokenizer {
    /// A `tokenizer.json`, relative to the plan file.
    #[schemars(length(min = 1))]
    pub path: String,
    /// What the tokenizer was made from: "public_text" is no private text, "same_units" private text whose units are those of the
    /// training text, "disjoint_units" other private text. A file that private text made is refused under another name.
    pub made_from: MadeFrom,
}
