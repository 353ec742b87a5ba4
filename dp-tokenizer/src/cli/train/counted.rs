//! The text in which `train` counts words.

use std::path::PathBuf;

use dp_tokenizer::corpus::{Source, expand};
use dp_tokenizer::count::UnitItems;
use dp_tokenizer::release::{public_corpus_counts, public_item_counts};

use super::arguments::Train;
use crate::cli::failure::refuse;
use crate::cli::given::Given;
use crate::cli::progress;

/// The invented notes of `--embedded`.
const EMBEDDED: Source = Source::Embedded { records: EMBEDDED_RECORDS, seed: 7 };
pub(super) const EMBEDDED_RECORDS: u64 = 6000;

/// The text in which words are counted.
pub(super) enum Counted {
    /// Records of text.
    Text(Source),
    /// Files of counted parts.
    Runs(Vec<PathBuf>),
}

impl Counted {
    /// Returns the text that the arguments name.
    pub(super) fn of(arguments: &Train, given: &Given) -> anyhow::Result<Self> {
        Ok(match () {
            () if arguments.embedded => Self::Text(EMBEDDED),
            () if !arguments.runs.is_empty() => Self::Runs(expand(&arguments.runs).map_err(refuse)?),
            () => Self::Text(arguments.corpus.source(given)?),
        })
    }

    /// Returns the items of each unit.
    pub(super) fn items(&self, arguments: &Train) -> anyhow::Result<UnitItems> {
        let (words, options) = (arguments.words(), arguments.machine.options());
        let items = match self {
            Self::Text(source) => {
                let _shown = progress::reading("counting", source);
                UnitItems::read(source, arguments.unit, words, &options)
            }
            Self::Runs(files) => UnitItems::from_shards(files, Some(arguments.unit), words, &options),
        };
        items.map_err(refuse)
    }

    /// Returns the words of public text with their counts.
    pub(super) fn public(&self, arguments: &Train) -> anyhow::Result<Vec<(String, f64)>> {
        let (words, options) = (arguments.words(), arguments.machine.options());
        let counts = match self {
            Self::Text(source) => {
                let _shown = progress::reading("counting", source);
                public_corpus_counts(source, words, &options)
            }
            Self::Runs(files) => {
                public_item_counts(&UnitItems::from_shards(files, None, words, &options).map_err(refuse)?)
            }
        };
        counts.map_err(refuse)
    }
}
