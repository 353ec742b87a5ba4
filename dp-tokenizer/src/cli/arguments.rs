//! The arguments of the command line.

use std::path::PathBuf;

use accountant::NeighboringRelation;
use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};
use dp_tokenizer::release::Paper;
use mechanisms::{PrivacyUnit, ReleaseMethod, Words};

use super::corpus::{Corpus, Machine};
use super::count::Count;
use super::examples;
use super::line::Line;
use super::output::Output;
use super::segmentation::SegmentationOptions;
use super::vocabulary_options::VocabularyOptions;

/// Train a tokenizer on private text with differential privacy, and use it.
#[derive(Parser)]
#[command(version, max_term_width = 110)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Train a vocabulary. Writes tokenizer.json, tokenizer_config.json and privacy.json.
    #[command(after_help = examples::TRAIN)]
    Train(Box<Train>),
    /// Count a part of a corpus, which other processes may do for its other parts; `train --runs` makes the vocabulary.
    #[command(after_help = examples::COUNT)]
    Count(Count),
    /// Encode texts as lines of ids or tokens, or a corpus as a token file.
    #[command(after_help = examples::ENCODE)]
    Encode(Encode),
    /// Decode lines of ids as lines of text.
    #[command(after_help = examples::DECODE)]
    Decode(Decode),
    /// List the vocabulary of a tokenizer: the id, the token and its score, one token a line.
    Vocab(Vocab),
    /// Show what a tokenizer contains.
    Inspect(Inspect),
    /// Write a tokenizer in another format.
    Convert(Convert),
    /// Print a shell completion script.
    Completions {
        #[arg(value_enum)]
        shell: ::cli::Shell,
    },
    /// Write manual pages into a folder.
    Man {
        /// The folder; created if missing.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Train a vocabulary.
#[derive(Args)]
pub(super) struct Train {
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
    /// What is counted as a word.
    #[arg(long, help_heading = "Vocabulary", value_enum, default_value = "by-class")]
    pub(super) words: WordsName,
    /// Method that releases words.
    #[arg(long, help_heading = "Privacy", value_enum, default_value = "pooled")]
    pub(super) method: Method,
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
    pub(super) relation: Relation,
    /// Declare the text public: count it without noise.
    #[arg(long, help_heading = "Privacy")]
    pub(super) public: bool,
    /// Model to train.
    #[arg(long, help_heading = "Vocabulary", value_enum, default_value = "unigram")]
    pub(super) model: Model,
    /// Number of tokens, special tokens and bytes included.
    #[arg(long, help_heading = "Vocabulary", default_value_t = 8000, value_name = "V")]
    pub(super) vocab_size: usize,
    /// Add the released words to this PUBLIC tokenizer instead of training a model. Its tokens keep their ids.
    #[arg(
        long,
        value_name = "PUBLIC",
        value_parser = super::convert::tokenizer_file,
        conflicts_with_all = [
            "model", "vocab_size", "no_byte_fallback", "symbols", "sentinels", "character_coverage", "normalizer",
            "normalizer_of", "normalization_rules", "required_characters", "max_piece_length", "cased", "special_tokens"
        ],
        help_heading = "Vocabulary"
    )]
    pub(super) extend: Option<PathBuf>,
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
    pub(super) json: bool,
}

/// What a vocabulary is made from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    /// Nothing: the model learns nothing.
    None,
    /// Text or counts that are declared public.
    Public,
    /// Text that is released with noise.
    Private,
}

impl Train {
    pub(super) fn text(&self) -> Text {
        match (self.model, self.public) {
            (Model::Byte, _) => Text::None,
            (_, true) => Text::Public,
            (_, false) => Text::Private,
        }
    }

    /// What is counted as a word.
    pub(super) fn words(&self) -> Words {
        if self.options.split_by_whitespace { self.words.into() } else { Words::Runs }
    }
}

/// A tokenizer to use.
#[derive(Args)]
pub(super) struct TokenizerFile {
    /// A tokenizer.json, a SentencePiece .model or .spm, BERT's vocab.txt, or GPT-2's vocab.json beside its merges.txt; or a folder,
    /// which stands for the first of these in it.
    #[arg(long = "tokenizer", value_name = "PATH", value_parser = super::convert::tokenizer_file)]
    pub(super) path: PathBuf,
    /// Keep the case of the text. For a vocab.txt [default: what the tokenizer_config.json beside it says; without one,
    /// whether a token has a capital from A to Z].
    #[arg(long, conflicts_with = "uncased")]
    pub(super) cased: bool,
    /// Put text into lower case and remove its accents. For a vocab.txt.
    #[arg(long)]
    pub(super) uncased: bool,
}

/// Encode lines of text, or a corpus for training.
#[derive(Args)]
pub(super) struct Encode {
    #[command(flatten)]
    pub(super) tokenizer: TokenizerFile,
    /// Write a token file of all records, by unit, instead of lines of ids. It is private if the text is.
    #[arg(long, value_name = "FILE", requires = "input")]
    pub(super) out: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: Output,
    /// Privacy unit of the token file: record, user, or words:N.
    #[arg(long, default_value = "record", value_name = "UNIT", requires = "out")]
    pub(super) unit: PrivacyUnit,
    /// Write each id with the offsets of its token in the line, as id:from:to.
    #[arg(long, value_enum, value_name = "UNIT", conflicts_with = "out")]
    pub(super) offsets: Option<Offsets>,
    /// Add the tokens that the tokenizer puts around a text, such as [CLS] and [SEP].
    #[arg(long, conflicts_with = "out")]
    pub(super) special_tokens: bool,
    #[command(flatten)]
    pub(super) segmentation: SegmentationOptions,
    #[command(flatten)]
    pub(super) line: Line,
    #[command(flatten)]
    pub(super) corpus: Corpus,
    /// Threads for a token file [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), requires = "out")]
    pub(super) threads: Option<u16>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Offsets {
    /// Bytes of UTF-8.
    Bytes,
    /// Unicode scalar values, as in Python.
    Characters,
}

/// Decode lines of ids.
#[derive(Args)]
pub(super) struct Decode {
    #[command(flatten)]
    pub(super) tokenizer: TokenizerFile,
    /// File to read, also as .gz or .zst [default: standard input].
    #[arg(long, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
    /// Leave out tokens that are no text, such as <pad> and [CLS].
    #[arg(long)]
    pub(super) skip_special_tokens: bool,
    /// Write text as soon as its ids are read, before the line ends.
    #[arg(long)]
    pub(super) stream: bool,
}

/// List the vocabulary of a tokenizer.
#[derive(Args)]
pub(super) struct Vocab {
    #[command(flatten)]
    pub(super) tokenizer: TokenizerFile,
    /// Write a JSON object a line, with id, token, score and special.
    #[arg(long)]
    pub(super) json: bool,
}

/// Show what a tokenizer contains.
#[derive(Args)]
pub(super) struct Inspect {
    #[command(flatten)]
    pub(super) tokenizer: TokenizerFile,
    /// PUBLIC text on which to measure tokens per word.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub(super) public_text: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Write a tokenizer in another format.
#[derive(Args)]
pub(super) struct Convert {
    #[command(flatten)]
    pub(super) tokenizer: TokenizerFile,
    /// File to write. Its name determines the format, as above.
    #[arg(long, value_name = "PATH")]
    pub(super) out: PathBuf,
    /// Write the file even if a few texts are read otherwise, such as those that spell a special token. They are named.
    #[arg(long)]
    pub(super) allow_rare_differences: bool,
    #[command(flatten)]
    pub(super) output: Output,
}

/// How words are released: by a method that a plan can name, or by a simpler one for comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Planned(ReleaseMethod),
    Weighted,
    Paper(Paper),
}

impl Method {
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

impl ValueEnum for Method {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.help()))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Model {
    /// Pieces with probabilities (Kudo 2018).
    Unigram,
    /// Byte-level merges, as in GPT-2.
    Bpe,
    /// Longest match in lower case, as in BERT.
    Wordpiece,
    /// Whole words in lower case; others are unknown.
    Word,
    /// Single characters.
    Char,
    /// Single bytes; nothing is learnt.
    Byte,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WordsName {
    /// A run of letters, of digits or of other characters.
    ByClass,
    /// A run of characters without white space (unigram and char). From ε = 3 on, it needs fewer tokens.
    AsWritten,
    /// The same, and each run of two or three of them that a piece can hold (unigram and bpe): pieces reach across blanks.
    Runs,
}

impl From<WordsName> for Words {
    fn from(name: WordsName) -> Self {
        match name {
            WordsName::ByClass => Self::ByClass,
            WordsName::AsWritten => Self::AsWritten,
            WordsName::Runs => Self::Runs,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Relation {
    /// One unit is added or removed.
    AddOrRemoveOne,
    /// One unit is exchanged for another.
    ReplaceOne,
}

impl From<Relation> for NeighboringRelation {
    fn from(relation: Relation) -> Self {
        match relation {
            Relation::AddOrRemoveOne => Self::AddOrRemoveOne,
            Relation::ReplaceOne => Self::ReplaceOne,
        }
    }
}
