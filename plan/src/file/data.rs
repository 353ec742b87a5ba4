//! The training text, and the public text for evaluation.

use mechanisms::{Encoding, Format, GaussianMechanism, MechanismError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::MadeFrom;

/// The training text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Where the text comes from.
    pub source: Source,
    /// How a file is divided into records.
    #[serde(default)]
    pub format: Format,
    /// The encoding of the files.
    #[serde(default, skip_serializing_if = "Encoding::is_utf8")]
    #[schemars(extend("default" = "utf-8"))]
    pub encoding: Encoding,
    /// The JSON field or column that holds the text of a record. `a.b` is the field `b` of the object `a`. For
    /// `token_classification` it holds a list of words, for `text_to_text` the input.
    #[serde(default = "text_field")]
    #[schemars(length(min = 1))]
    pub text_field: String,
    /// Put before each text, such as `sst2 sentence: ` for a T5 that learns several tasks (classification of texts and text_to_text only).
    /// `generate` puts it before a prompt as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub text_prefix: Option<String>,
    /// The field that holds a second text, if a record is a pair of texts (classification of texts and text_to_text only). In text_to_text, it
    /// follows the first text after a blank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub second_text_field: Option<String>,
    /// Put before each second text, such as `sentence2: `.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub second_text_prefix: Option<String>,
    /// The field that holds the label of a record, its labels or the tags of its words. Defaults to `label`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub label_field: Option<String>,
    /// The field that holds the text to be written (text_to_text only). Defaults to `target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub target_field: Option<String>,
    /// Counts of the records with each label, released with noise (text_to_text only, where `text_field` holds the label).
    /// Charged. `synthesize` draws labels in their proportions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_histogram: Option<LabelHistogram>,
    /// What separates the labels of a record that has several, such as `,`: the first one counts (text_to_text with `label_histogram` only,
    /// where `text_field` holds the labels).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1))]
    pub label_separator: Option<char>,
    /// Names of the columns of CSV and TSV files without a header line, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10_000))]
    pub columns: Option<Vec<String>>,
    /// The field that names the user of a record. Required when the unit is `user`. Ids are compared in Unicode form NFC without invisible characters around them; a number is the user that its digits name. A blank id is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub user_field: Option<String>,
    /// The field that lists the owners of a record, such as `["ann", "bob"]`. Required when the unit is `owner`. Ids are compared as those of
    /// `user_field`. Records are taken in order, and one is left out if one of its owners already has
    /// `privacy.sampling.poisson_of_examples.examples_per_unit` of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub owners_field: Option<String>,
    /// Whether the text is private.
    #[serde(default)]
    pub visibility: Visibility,
    /// What the text was made from, where an earlier run wrote it. Required for records of `trainer-native synthesize`, which leaves
    /// the run's proof beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_from: Option<MadeFrom>,
    /// The number of privacy units, declared public. Neither the planner nor the trainer counts it from the data.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub units: u64,
}

impl Data {
    /// Returns what the text was made from: people wrote it unless the plan says otherwise.
    #[must_use]
    pub fn made_from(&self) -> MadeFrom {
        self.made_from.unwrap_or(MadeFrom::PublicText)
    }

    /// Returns the field with labels or tags.
    #[must_use]
    pub fn label_field(&self) -> &str {
        self.label_field.as_deref().unwrap_or("label")
    }

    /// Returns the field with the text to be written.
    #[must_use]
    pub fn target_field(&self) -> &str {
        self.target_field.as_deref().unwrap_or("target")
    }

    /// Returns the token file that stands for the text, if the source is one: its tokens are those of
    /// `tokenizer.public`.
    #[must_use]
    pub fn token_file(&self) -> Option<&str> {
        match &self.source {
            Source::Path(path) if self.format == Format::Auto && is_token_file(path) => Some(path),
            _ => None,
        }
    }
}

/// Counts of labels, released with noise. Each unit adds 1 to one of them: a user that of one of its records, chosen at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelHistogram {
    /// All labels. They are declared public and never read from the data.
    #[schemars(length(min = 1, max = 10_000))]
    pub labels: Vec<String>,
    /// Noise multiplier: the standard deviation of the noise on each count, in units.
    #[serde(default = "label_noise")]
    #[schemars(extend("minimum" = 0.02, "maximum" = 1e6))]
    pub noise_multiplier: f64,
}

impl LabelHistogram {
    /// Returns the mechanism that adds the noise. A unit moves the counts by 1 in L2 norm.
    ///
    /// # Errors
    /// [`MechanismError`] for noise that is not finite and above 0.
    pub fn mechanism(&self) -> Result<GaussianMechanism, MechanismError> {
        GaussianMechanism::new(self.noise_multiplier)
    }
}

/// Returns the default noise multiplier of 20. It costs little beside training at any useful ε, and changes the shares
/// of labels of some thousand units by less than 1 %.
fn label_noise() -> f64 {
    20.0
}

/// Returns whether a path is that of a token file, by the name that `dp-tokenizer encode --out` requires.
pub(crate) fn is_token_file(path: &str) -> bool {
    path.ends_with(".tokens")
}

fn text_field() -> String {
    "text".to_owned()
}

/// Where text comes from. Paths are relative to the plan file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// Synthetic clinical notes from a seeded generator. Needs no file.
    Embedded {
        /// Number of notes.
        #[schemars(range(min = 1, max = 100_000_000))]
        records: u64,
        /// Seed of the generator. The same seed gives the same notes.
        #[schemars(range(max = 9_007_199_254_740_991_u64))]
        seed: u64,
    },
    /// A folder, in which each `.txt` file is a record, or one file: `.txt`, `.jsonl`, `.json`, `.csv`, `.tsv`, `.parquet` or `.iob`, optionally compressed (`.gz`, `.zst`). Training text may also be a `.tokens` file,
    /// written by `dp-tokenizer encode --out` with the public tokenizer that the plan names.
    Path(#[schemars(length(min = 1))] String),
    /// Several files, read in this order.
    Paths(#[schemars(length(min = 1))] Vec<String>),
}

/// Whether text is private.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Every unit is protected. Each use of the text adds noise and is charged.
    #[default]
    Private,
    /// The text needs no protection. Nothing is noised or charged, every figure is marked NOT PRIVATE, and the plan
    /// must not promise an ε.
    Public,
}

/// Public text on which the model is evaluated during training. It is not protected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Where the text comes from. The text is declared public.
    pub source: Source,
    /// What the text was made from, where an earlier run wrote it. Required for records of `trainer-native synthesize`, which leaves
    /// the run's proof beside them: figures on these are figures on the text of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_from: Option<MadeFrom>,
    /// How a file is divided into records. Defaults to the format of the training text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The encoding of the files.
    #[serde(default, skip_serializing_if = "Encoding::is_utf8")]
    #[schemars(extend("default" = "utf-8"))]
    pub encoding: Encoding,
    /// The field that holds the text of a record. All fields default to those of the training text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub text_field: Option<String>,
    /// Whether records of fewer than 8 words may be equal to training records though they have 18 letters or more. By default, at most
    /// 1 in 1,000 may. Parts of one corpus of short texts have more, by chance. The certificate states what was accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub accept_equal_phrases: bool,
    /// Number of steps between evaluations. The model is also evaluated at the end.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub every: u64,
    /// Whether the finished model is the one with the lowest loss on this text, instead of the last one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub keep_best: bool,
    /// Training stops after so many evaluations in a row without a new lowest loss. The steps left out stay charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub patience: Option<u64>,
    /// How much lower a loss must be, in nats, to be a new lowest loss for `patience` and `keep_best`. By default, any lower loss is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e3))]
    pub smallest_change: Option<f64>,
    /// Most records that are read, the first ones. Defaults to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub records: Option<u64>,
    /// Number of beams of the search for the texts that are scored (text_to_text only). Without it, they are decoded greedily.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 64))]
    pub beams: Option<u32>,
}

impl Evaluation {
    /// Returns what the text was made from: people wrote it unless the plan says otherwise.
    #[must_use]
    pub fn made_from(&self) -> MadeFrom {
        self.made_from.unwrap_or(MadeFrom::PublicText)
    }
}
