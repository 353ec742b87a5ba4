//! The command line.

use std::path::PathBuf;

use accountant::NeighboringRelation;
use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};
use dp_tokenizer::release::Paper;
use mechanisms::{PrivacyUnit, ReleaseMethod};

use super::corpus::{Corpus, Machine};

/// Learn a tokenizer from private text with a stated (ε, δ), and use it.
#[derive(Parser)]
#[command(version, max_term_width = 110)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Learn a vocabulary; writes tokenizer.json, tokenizer_config.json and privacy.json.
    Train(Train),
    /// Text lines in, lines of ids out; or a corpus into a token file.
    Encode(Encode),
    /// Lines of ids in, text lines out.
    Decode(Tokens),
    /// Say what a tokenizer holds.
    Inspect(Inspect),
    /// Write a tokenizer in another tool's format.
    Convert(Convert),
}

/// Learn a vocabulary; from invented clinical notes where neither files nor counts are named.
#[derive(Args)]
pub(super) struct Train {
    #[command(flatten)]
    pub(super) corpus: Corpus,
    /// Public counts of words instead of text: a word, a tab and its count a line.
    #[arg(long, num_args = 1.., value_name = "FILE", requires = "public", conflicts_with = "input")]
    pub(super) counts: Vec<PathBuf>,
    /// Whose presence is hidden: record, user, or words:N.
    #[arg(long, default_value = "record", value_name = "UNIT")]
    pub(super) unit: PrivacyUnit,
    /// How words are released.
    #[arg(long, value_enum, default_value = "pooled")]
    pub(super) method: Method,
    /// The ε to stay within.
    #[arg(long, required_unless_present = "public", value_name = "E")]
    pub(super) epsilon: Option<f64>,
    /// The δ to stay within; below one over the number of units.
    #[arg(long, required_unless_present = "public", value_name = "D")]
    pub(super) delta: Option<f64>,
    /// Noise and threshold of the papers' methods as printed; privacy.json then states the true δ, which is larger.
    #[arg(long)]
    pub(super) as_published: bool,
    /// Which data sets must be hard to tell apart.
    #[arg(long, value_enum, default_value = "add-or-remove-one")]
    pub(super) relation: Relation,
    /// The text is public: count it as it is, without noise.
    #[arg(long, conflicts_with_all = ["epsilon", "delta"])]
    pub(super) public: bool,
    /// Kind of model.
    #[arg(long, value_enum, default_value = "unigram")]
    pub(super) model: Model,
    /// Tokens wanted, special tokens and bytes included.
    #[arg(long, default_value_t = 8000, value_name = "V")]
    pub(super) vocab_size: usize,
    /// Write characters outside the vocabulary as <unk> instead of as bytes.
    #[arg(long)]
    pub(super) no_byte_fallback: bool,
    #[command(flatten)]
    pub(super) shape: Shape,
    /// Folder for the files; it is made if need be.
    #[arg(long, value_name = "DIR")]
    pub(super) out: PathBuf,
    /// Repeatable noise from this key. The result is NOT private and says so.
    #[arg(long, value_name = "N", conflicts_with = "public")]
    pub(super) test_key: Option<u64>,
    #[command(flatten)]
    pub(super) machine: Machine,
    /// A summary as JSON on stdout.
    #[arg(long)]
    pub(super) json: bool,
}

/// Encode a text for reading, or a corpus for a trainer.
#[derive(Args)]
pub(super) struct Encode {
    /// A tokenizer.json, a SentencePiece .model, BERT's vocab.txt, or GPT-2's vocab.json beside its merges.txt.
    #[arg(long, value_name = "PATH")]
    pub(super) tokenizer: PathBuf,
    /// Write a token file of all records, by unit, instead of lines of ids. It holds private text if the files do.
    #[arg(long, value_name = "FILE", requires = "input")]
    pub(super) out: Option<PathBuf>,
    /// What the units of the token file are: record, user, or words:N.
    #[arg(long, default_value = "record", value_name = "UNIT", requires = "out")]
    pub(super) unit: PrivacyUnit,
    /// Write each id with the place of its token in the line, as id:from:to.
    #[arg(long, value_enum, value_name = "UNIT", conflicts_with = "out")]
    pub(super) offsets: Option<Offsets>,
    #[command(flatten)]
    pub(super) corpus: Corpus,
    /// Threads for a token file; all cores unless stated.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), requires = "out")]
    pub(super) threads: Option<u16>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Offsets {
    /// Of UTF-8.
    Bytes,
    /// Unicode scalar values, as Python counts.
    Characters,
}

/// What the vocabulary is made of beside learnt pieces. All of it is public.
#[derive(Args)]
pub(super) struct Shape {
    /// A symbol that is one token wherever it stands (unigram, bpe, byte); repeat for more.
    #[arg(long = "symbol", value_name = "TEXT")]
    pub(super) symbols: Vec<String>,
    /// How many of T5's <extra_id_…> end the vocabulary (unigram).
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) sentinels: usize,
    /// Share of all characters that the alphabet covers (unigram: 1, char: 0.9995, if not given).
    #[arg(long, value_name = "SHARE")]
    pub(super) character_coverage: Option<f64>,
    /// What texts go through first (unigram).
    #[arg(long, value_enum, default_value = "none")]
    pub(super) normalizer: NormalizerName,
    /// The character map of this SentencePiece .model instead, such as T5's nmt_nfkc (unigram).
    #[arg(long, value_name = "PATH", conflicts_with = "normalizer")]
    pub(super) normalizer_of: Option<PathBuf>,
    /// Keep case and accents (wordpiece), as BERT cased does.
    #[arg(long)]
    pub(super) cased: bool,
}

/// Normalisers that need no file.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum NormalizerName {
    /// Texts as they are.
    None,
    /// Unicode's NFC.
    Nfc,
    /// Unicode's NFKC.
    Nfkc,
    /// NFKC, then lower case.
    NfkcLowercase,
}

/// Use a tokenizer.
#[derive(Args)]
pub(super) struct Tokens {
    /// A tokenizer.json, a SentencePiece .model, BERT's vocab.txt, or GPT-2's vocab.json beside its merges.txt.
    #[arg(long, value_name = "PATH")]
    pub(super) tokenizer: PathBuf,
    /// What to read; stdin by default.
    #[arg(long, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
}

/// Look at a tokenizer.
#[derive(Args)]
pub(super) struct Inspect {
    /// A tokenizer.json, a SentencePiece .model, BERT's vocab.txt, or GPT-2's vocab.json beside its merges.txt.
    #[arg(long, value_name = "PATH")]
    pub(super) tokenizer: PathBuf,
    /// PUBLIC text on which to measure tokens a word.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub(super) public_text: Vec<PathBuf>,
    /// As JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Write a tokenizer in another format.
#[derive(Args)]
pub(super) struct Convert {
    /// A tokenizer.json, a SentencePiece .model, BERT's vocab.txt, or GPT-2's vocab.json beside its merges.txt.
    #[arg(long, value_name = "PATH")]
    pub(super) tokenizer: PathBuf,
    /// The file to write; its name says the format as above.
    #[arg(long, value_name = "PATH")]
    pub(super) out: PathBuf,
}

/// How words are released: by a method that a plan can name, or by a simpler one for comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Planned(ReleaseMethod),
    Weighted,
    Paper(Paper),
}

impl Method {
    const ALL: [Self; ReleaseMethod::ALL.len() + 3] = {
        let mut all = [Self::Weighted; ReleaseMethod::ALL.len() + 3];
        let mut at = 0;
        while at < ReleaseMethod::ALL.len() {
            all[at] = Self::Planned(ReleaseMethod::ALL[at]);
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

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Model {
    /// Pieces with probabilities (Kudo 2018).
    Unigram,
    /// Byte-level merges, as GPT-2's.
    Bpe,
    /// Longest match in lower case, as BERT's.
    Wordpiece,
    /// Single characters.
    Char,
    /// Single bytes: nothing is learnt.
    Byte,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Relation {
    /// One unit more or less.
    AddOrRemoveOne,
    /// One unit exchanged for another.
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
