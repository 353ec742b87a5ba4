//! The definition of a word in a release of words.

use serde::{Deserialize, Serialize};

/// How text is cut into the words that a release counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Words {
    /// At white space, and between letters, numbers and other characters: `fever,` is `fever` and `,`.
    #[default]
    ByClass,
    /// At white space alone: `fever,` is one word (Ponomareva, Bastings, Vassilvitskii 2022, §3.1). For unigram and char: BPE and
    /// WordPiece cut text at punctuation themselves.
    AsWritten,
    /// Words as written, and each run of two or three of them, with single blanks between, that is short enough for a token: tokens
    /// then reach across blanks. A run is one more item to release, so that a unit's bounded contribution is shared by more items
    /// and fewer words are found. Plans refuse it.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Runs,
    /// By class, and each pair of neighboring words, with or without a blank between, of which the beginning and end of a text count as
    /// one: `training.warm_start` draws texts in which words follow each other as in these pairs. A unit's bounded contribution is
    /// shared by about twice as many items, so that fewer words are found. Tokens are learnt from the words alone.
    Pairs,
    /// For texts with one label each, to be classified or written (`data.label_histogram`): words and pairs of the text, as with
    /// `pairs`, and each word together with the label: `training.warm_start` draws texts whose words suit their label. A unit's
    /// bounded contribution is shared by about three times as many items as with `by_class`.
    PairsByLabel,
}

impl Words {
    /// Whether it is the default.
    #[must_use]
    pub fn is_by_class(&self) -> bool {
        *self == Self::ByClass
    }

    /// Whether pairs of neighboring words are items beside words.
    #[must_use]
    pub fn has_pairs(self) -> bool {
        matches!(self, Self::Pairs | Self::PairsByLabel)
    }
}
