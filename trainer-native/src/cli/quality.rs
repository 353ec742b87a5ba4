//! Options of `quality`.

use std::path::PathBuf;

use clap::Args;

use super::print_result;
use evaluation::quality::{QualityOptions, quality};
use training::RunError;

#[derive(Debug, Args)]
pub(super) struct QualityArgs {
    /// Synthetic records
    synthetic: PathBuf,
    /// Real records of the same kind, which you declare public by naming them here
    #[arg(long, value_name = "FILE")]
    reference: PathBuf,
    /// The field that holds the text; a.b is field b of field a
    #[arg(long, default_value = "text", value_name = "FIELD")]
    text_field: String,
    /// The field that holds the label, if records have one
    #[arg(long, value_name = "FIELD")]
    label_field: Option<String>,
    /// What separates the labels of a real record that has several, such as ,: the first one counts
    #[arg(long, value_name = "CHARACTER", requires = "label_field")]
    label_separator: Option<char>,
    /// Names of all columns of .csv and .tsv files without a header line, in their order
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// The folder of a BERT whose embeddings are compared: config.json, model.safetensors and tokenizer.json
    #[arg(long, value_name = "DIR")]
    bert: Option<PathBuf>,
    /// NOT PRIVATE: also count near-duplicates in this training text
    #[arg(long, value_name = "FILE")]
    train: Option<PathBuf>,
    /// Accept equal records of fewer than 8 words but 18 letters or more: the reference and the training text are parts of one corpus
    #[arg(long, requires = "train")]
    accept_equal_phrases: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl QualityArgs {
    /// Compares, and prints the result.
    pub fn run(self) -> Result<(), RunError> {
        let found = quality(&QualityOptions {
            synthetic: &self.synthetic,
            reference: &self.reference,
            text_field: &self.text_field,
            label_field: self.label_field.as_deref(),
            label_separator: self.label_separator,
            columns: self.columns.as_deref(),
            bert: self.bert.as_deref(),
            train: self.train.as_deref(),
            accept_equal_phrases: self.accept_equal_phrases,
        })?;
        print_result(&found, &found.to_string(), self.json)
    }
}
