//! The format of a corpus file.

use serde::{Deserialize, Serialize};

/// How a file is divided into records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Chosen by the file name: `.txt` or `.text`, `.jsonl` or `.ndjson`, `.json`, `.csv`, `.tsv`, `.iob` or `.conll`, or `.parquet`;
    /// all but the last may be compressed (`.gz`, `.zst`). In a folder and the folders below it, each `.txt` file is a record.
    #[default]
    Auto,
    /// Each line that is not blank is a record.
    Text,
    /// Each line that is not blank is a JSON object with a text field.
    Jsonl,
    /// A JSON array. Each element is a record: an object with a text field, or a string, which is the text.
    Json,
    /// A table with commas (RFC 4180), or with the semicolons, tabs or bars that alone stand between the names of its header line. Each row is
    /// a record, and each column a field.
    Csv,
    /// A table with tabs, without quotation marks.
    Tsv,
    /// A table in Apache Parquet, for programs built with the feature `parquet`. Each row is a record, and each column a field.
    Parquet,
    /// A word and its tag a line, and a blank line after each sentence, which is a record: the text field is the list of its words,
    /// every other field the list of its tags.
    Iob,
}
