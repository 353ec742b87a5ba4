//! The arguments of `train`.

use std::path::PathBuf;

use accountant::NeighboringRelation;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use dp_tokenizer::release::Paper;
use mechanisms::{PrivacyUnit, ReleaseMethod, Words};

use super::vocabulary_options::{ModelName, VocabularyOptions};
use crate::cli::corpus::{Corpus, Machine, WordsName};
use crate::cli::output::Output;
use crate::cli::tokenizer_file;

/// Train a vocabulary.
#[derive(Args)]
pub(in crate::cli) struct Train {
    #[command(flatten)]
    pub(super) corpus: Corpus,
    /// Train on 6000 invented clinical notes.
    #[arg(long, help_heading = "Text", conflicts_with_all = ["input", "counts"])]
    pub(super) embedded: bool,
    /// Files of `count` instead of text: all parts of a corpus, with its --unit and --words. `*` and `?` are wildcards.
    #[arg(long, help_heading = "Text", num_args = 1.., value_name = "FILE", conflicts_with_all = ["input", "counts", "embedded"])]
    pub(super) runs: Vec<PathBuf>,
    /// Public word counts instead of text: on each line a word, a tab and its count.
    #[arg(long, help_heading = "Text", num_args = 1.., value_name = "FILE", requires = "public", conflicts_with = "input")]
    pub(super) counts: Vec<PathBuf>,
    /// Privacy unit, whose presence is hidden: record, user, or words:N.
    #[arg(long, help_heading = "Privacy", default_value = "record", value_name = "UNIT")]
    pub(super) unit: PrivacyUnit,
    /// What is counted as a word [default: by-class; runs for unigram and bpe where --units times --epsilon is at least 40,000].
    #[arg(long, help_heading = "Vocabulary", value_enum)]
    pub(super) words: Option<WordsName>,
    /// Method that releases words, as `tokenizer.train.release` names it in a plan.
    #[arg(long, alias = "method", help_heading = "Privacy", value_enum, default_value = "pooled")]
    pub(super) release: MethodName,
    /// Largest ε.
    #[arg(long, help_heading = "Privacy", value_name = "E")]
    pub(super) epsilon: Option<f64>,
    /// Largest δ; must be below 1 / number of units.
    #[arg(long, help_heading = "Privacy", value_name = "D")]
    pub(super) delta: Option<f64>,
    /// Number of units, declared public: δ at or above one over it is refused.
    #[arg(long, help_heading = "Privacy", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) units: Option<u64>,
    /// Use noise and threshold of the papers' methods as printed. privacy.json states the true δ, which is larger.
    #[arg(long, help_heading = "Privacy")]
    pub(super) as_published: bool,
    /// Neighboring relation: the pairs of data sets that the guarantee compares.
    #[arg(long, help_heading = "Privacy", value_enum, default_value = "add-or-remove-one")]
    pub(super) relation: RelationName,
    /// Declare the text public: count it without noise.
    #[arg(long, help_heading = "Privacy")]
    pub(super) public: bool,
    /// Model to train.
    #[arg(long, help_heading = "Vocabulary", value_enum, default_value = "unigram")]
    pub(super) model: ModelName,
    /// Number of tokens, special tokens and bytes included.
    #[arg(long, help_heading = "Vocabulary", default_value_t = 8000, value_name = "V")]
    pub(super) vocab_size: usize,
    /// Add the released words to this PUBLIC tokenizer instead of training a model. Its tokens keep their ids.
    #[arg(
        long,
        value_name = "PUBLIC",
        value_parser = tokenizer_file::locate,
        conflicts_with_all = [
            "model", "vocab_size", "no_byte_fallback", "symbols", "sentinels", "character_coverage", "normalizer",
            "normalizer_of", "normalization_rules", "required_characters", "max_piece_length", "cased", "special_tokens"
        ],
        help_heading = "Vocabulary"
    )]
    pub(super) extend: Option<PathBuf>,
    /// PUBLIC tokenizer, or counts of words (.tsv: a word, a tab and its count), whose words stand for those that were not released
    /// (unigram); may be repeated, and two that know the language need fewer tokens than one.
    #[arg(long = "prior", value_name = "PUBLIC", conflicts_with_all = ["extend", "public"], help_heading = "Vocabulary")]
    pub(super) priors: Vec<PathBuf>,
    /// Most tokens that --extend adds [default: 4000].
    #[arg(long, help_heading = "Vocabulary", value_name = "N", requires = "extend")]
    pub(super) added_tokens: Option<usize>,
    /// Encode characters outside the vocabulary as <unk> instead of as bytes.
    #[arg(long, help_heading = "Vocabulary")]
    pub(super) no_byte_fallback: bool,
    #[command(flatten)]
    pub(super) options: VocabularyOptions,
    /// Folder for the files; created if missing.
    #[arg(long, value_name = "DIR")]
    pub(super) out: PathBuf,
    #[command(flatten)]
    pub(super) output: Output,
    /// Draw repeatable noise from this key. The result is NOT private, and privacy.json says so.
    #[arg(long, help_heading = "Privacy", value_name = "N")]
    pub(super) test_key: Option<u64>,
    #[command(flatten)]
    pub(super) machine: Machine,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// The text from which a vocabulary is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    /// No text: the model learns nothing.
    None,
    /// Text or counts that are declared public.
    Public,
    /// Text that is released with noise.
    Private,
}

/// Units times ε from which a vocabulary of runs needs fewer tokens than one of words by class. Measured on public text; README.md has the
/// table.
const SIZE_FOR_RUNS: f64 = 40_000.0;
/// The same beside a prior, which has the words that runs leave no budget for.
const SIZE_FOR_RUNS_WITH_PRIOR: f64 = 10_000.0;

impl Train {
    pub(super) fn text(&self) -> Text {
        match (self.model, self.public) {
            (ModelName::Byte, _) => Text::None,
            (_, true) => Text::Public,
            (_, false) => Text::Private,
        }
    }

    /// Returns the kind of words that are counted.
    pub(super) fn words(&self) -> Words {
        match (self.words, self.size()) {
            _ if !self.options.split_by_whitespace => Words::Runs,
            (Some(name), _) => name.into(),
            (None, Some(size)) if size >= self.size_for_runs() => Words::Runs,
            (None, _) => Words::ByClass,
        }
    }

    /// Returns the units times ε, both public, if the kind of words follows from them.
    fn size(&self) -> Option<f64> {
        let has_runs = matches!(self.model, ModelName::Unigram | ModelName::Bpe) && self.extend.is_none();
        let is_open = self.words.is_none() && self.options.split_by_whitespace;
        let is_counted_here = self.text() == Text::Private && self.runs.is_empty();
        if has_runs && is_open && is_counted_here { Some(self.units? as f64 * self.epsilon?) } else { None }
    }

    fn size_for_runs(&self) -> f64 {
        if self.priors.is_empty() { SIZE_FOR_RUNS } else { SIZE_FOR_RUNS_WITH_PRIOR }
    }

    /// Says which kind of words was chosen, and why.
    pub(super) fn reason_of_words(&self) -> Option<String> {
        let (size, least) = (self.size()?, self.size_for_runs());
        let (name, order, why) = match size >= least {
            true => ("runs", "at least", "enough runs of words are released, and pieces reach across blanks"),
            false => {
                ("by-class", "below", "the fewer kinds of words there are, the more of them are released")
            }
        };
        Some(format!("--words {name}, because units times ε is {size:.0}, {order} {least:.0}: {why}"))
    }
}

/// The method that releases words: one that a plan can name, or a simpler one for comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MethodName {
    Planned(ReleaseMethod),
    Weighted,
    Paper(Paper),
}

impl MethodName {
    const ALL: [Self; ReleaseMethod::GENERAL.len() + 3] = {
        let mut all = [Self::Weighted; ReleaseMethod::GENERAL.len() + 3];
        let mut at = 0;
        while at < ReleaseMethod::GENERAL.len() {
            all[at] = Self::Planned(ReleaseMethod::GENERAL[at]);
            at += 1;
        }
        all[at + 1] = Self::Paper(Paper::Hoory2021);
        all[at + 2] = Self::Paper(Paper::Ponomareva2022);
        all
    };

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Planned(method) => method.name(),
            Self::Weighted => "weighted",
            Self::Paper(Paper::Hoory2021) => "hoory-2021",
            Self::Paper(Paper::Ponomareva2022) => "ponomareva-2022",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::Planned(method) => method.summary(),
            Self::Weighted => "One round of even weights with Gaussian noise.",
            Self::Paper(Paper::Hoory2021) => {
                "The paper's word histogram, each word once per unit; needs --unit words:N."
            }
            Self::Paper(Paper::Ponomareva2022) => {
                "The paper's word histogram with counts; needs --unit words:N."
            }
        }
    }
}

impl ValueEnum for MethodName {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.help()))
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum RelationName {
    /// One unit is added or removed.
    AddOrRemoveOne,
    /// One unit is exchanged for another.
    ReplaceOne,
}

impl From<RelationName> for NeighboringRelation {
    fn from(relation: RelationName) -> Self {
        match relation {
            RelationName::AddOrRemoveOne => Self::AddOrRemoveOne,
            RelationName::ReplaceOne => Self::ReplaceOne,
        }
    }
}
