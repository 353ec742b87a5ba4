//! Sources of text: files, or the embedded generator of invented clinical notes.
//!
//! Everything is streamed. Memory is bounded by the longest line, whose length is limited.

mod blocks;
pub mod clinical;
mod counts;
mod encoding;
mod error;
mod expand;
mod field;
mod fields;
mod files;
mod folder;
mod iob;
mod json_array;
pub(crate) mod json_line;
mod likely_encoding;
pub(crate) mod lines;
mod owners;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(target_arch = "wasm32"))]
mod positions;
mod read_progress;
mod recognize;
mod rows;
#[cfg(not(target_arch = "wasm32"))]
mod same_text;
mod separated;
mod user;

use std::path::{Path, PathBuf};

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use blocks::ShareBlocks;
pub(crate) use blocks::{Block, Blocks};
pub use counts::read_counts;
pub use encoding::NotText;
pub use error::CorpusError;
pub use expand::expand;
pub use field::{Field, FieldKind};
#[cfg(feature = "parquet")]
pub(crate) use fields::parquet_fields;
pub(crate) use fields::stream_fields;
pub use fields::{field_names, fields, has_header_line, has_tags};
pub use files::Position;
pub use likely_encoding::LikelyEncoding;
#[cfg(not(target_arch = "wasm32"))]
pub use likely_encoding::likely_encoding;
pub(crate) use likely_encoding::marked_stream;
pub(crate) use lines::MAX_LINE_BYTES;
pub use mechanisms::{Encoding, Format};
pub use owners::Owners;
#[cfg(not(target_arch = "wasm32"))]
pub use positions::{LineFiles, ShareRecords};
pub use read_progress::ReadProgress;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use same_text::check_comparable;
#[cfg(not(target_arch = "wasm32"))]
pub use same_text::{check_distinct, check_distinct_shares, common_file, public_sketch};

/// One text, and its user where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The text, without its line end.
    pub text: String,
    /// The user it belongs to, for user-level privacy.
    pub user: Option<String>,
    /// The owners it belongs to, each once, where [`Files::owners`] asks for them.
    pub owners: Vec<String>,
    /// The values of each of [`Files::further`]: one, or as many as the list in that field has.
    pub further: Vec<Vec<String>>,
}

impl Record {
    /// Returns a record with a text, but without a user and other fields.
    #[must_use]
    pub fn of_text(text: impl Into<String>) -> Self {
        Self { text: text.into(), user: None, owners: Vec::new(), further: Vec::new() }
    }
}

/// The treatment of bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadUtf8 {
    /// Replace each invalid sequence by U+FFFD and count the line.
    #[default]
    Replace,
    /// Refuse the file and name the line.
    Refuse,
}

/// Files, and how to read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The files in order. `-` is standard input, which can be read only once.
    pub paths: Vec<PathBuf>,
    /// The format that divides each file into records.
    pub format: Format,
    /// The encoding of each file; that of Parquet files is their own.
    pub encoding: Encoding,
    /// The JSON field with the text.
    pub text_field: String,
    /// Whether the text is the JSON of that field, whatever it holds. A string stands for the JSON in it.
    pub text_is_json: bool,
    /// The text ends before the first of these characters, without blanks at its end: of several labels, the first counts.
    pub text_until: Option<char>,
    /// The JSON field with the user, if there is one.
    pub user_field: Option<String>,
    /// Bounds the records of each owner; records beyond the bound are left out.
    pub owners: Option<Owners>,
    /// Fields whose text is appended to that of `text_field`, each after a line end.
    pub appended: Vec<String>,
    /// Other fields to read: strings, numbers or lists of these. If it names the text field, the text may be a list of
    /// words, which blanks join.
    pub further: Vec<String>,
    /// Names of the columns of a table without header line.
    pub columns: Option<Vec<String>>,
    /// Whether the blank lines of text files are records too, so that records and lines correspond.
    pub blank_lines: bool,
    /// The treatment of bytes that are not UTF-8.
    pub bad_utf8: BadUtf8,
    /// Updated while the files are read.
    pub progress: ReadProgress,
}

/// A corpus that can be opened any number of times, with the same records in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Files.
    Files(Files),
    /// Invented clinical notes; see [`clinical`].
    Embedded {
        /// The number of notes.
        records: u64,
        /// The same seed gives the same notes.
        seed: u64,
    },
}

impl Source {
    /// Returns files with the defaults: format by name, text in the field `text`, no user, invalid UTF-8 replaced.
    #[must_use]
    pub fn files(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self::Files(Files::of(paths))
    }
}

impl Files {
    /// Returns files with the defaults of [`Source::files`].
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            paths: paths.into_iter().collect(),
            format: Format::Auto,
            encoding: Encoding::Utf8,
            text_field: "text".to_owned(),
            text_is_json: false,
            text_until: None,
            user_field: None,
            owners: None,
            appended: Vec::new(),
            further: Vec::new(),
            columns: None,
            blank_lines: false,
            bad_utf8: BadUtf8::Replace,
            progress: ReadProgress::default(),
        }
    }

    /// Whether any file has fields: all formats but text have.
    ///
    /// # Errors
    /// [`CorpusError`] if the name of a file does not tell its format, and [`Self::format`] does not either.
    pub fn have_fields(&self) -> Result<bool, CorpusError> {
        let formats = self.paths.iter().map(|path| files::named_format(path, self.format));
        formats
            .collect::<Result<Vec<_>, _>>()
            .map(|all| all.iter().any(|(format, _)| *format != Format::Text))
    }

    /// Returns the names of all fields that are read, each once.
    fn field_names(&self) -> impl Iterator<Item = &str> {
        let first = [&self.text_field].into_iter().chain(&self.user_field);
        let owners = self.owners.iter().map(|owners| &owners.field);
        let all = first.chain(owners).chain(&self.appended).chain(&self.further);
        let mut names: Vec<&str> = Vec::new();
        for name in all {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names.into_iter()
    }

    fn json_fields(&self) -> json_line::FieldNames<'_> {
        json_line::FieldNames {
            text: &self.text_field,
            text_is_json: self.text_is_json,
            text_until: self.text_until,
            user: self.user_field.as_deref(),
            owners: self.owners.as_ref().map(|owners| owners.field.as_str()),
            appended: &self.appended,
            further: &self.further,
        }
    }
}

/// The records of an opened corpus, at least one.
pub struct Records {
    inner: Inner,
    first: Option<Result<Record, CorpusError>>,
}

enum Inner {
    Files(Box<files::FileRecords>),
    Embedded(clinical::Notes),
}

impl Records {
    /// Returns the number of lines so far in which invalid UTF-8 was replaced. This raw count is private if the corpus
    /// is.
    #[must_use]
    pub fn replaced_lines(&self) -> u64 {
        match &self.inner {
            Inner::Files(files) => files.replaced_lines(),
            Inner::Embedded(_) => 0,
        }
    }

    fn advance(&mut self) -> Option<Result<Record, CorpusError>> {
        match &mut self.inner {
            Inner::Files(files) => files.next(),
            Inner::Embedded(notes) => notes.next().map(Ok),
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, CorpusError>;
    fn next(&mut self) -> Option<Self::Item> {
        self.first.take().or_else(|| self.advance())
    }
}

/// Opens a corpus and reads up to its first record.
///
/// ```
/// use dp_tokenizer::corpus::{Source, open};
/// let notes: Result<Vec<_>, _> = open(&Source::Embedded { records: 3, seed: 7 })?.collect();
/// assert_eq!(notes?.len(), 3);
/// # Ok::<(), dp_tokenizer::corpus::CorpusError>(())
/// ```
///
/// # Errors
/// [`CorpusError`] if a file is missing or unreadable, a line is refused, or there is no record.
pub fn open(source: &Source) -> Result<Records, CorpusError> {
    let inner = match source {
        Source::Files(files) => Inner::Files(Box::new(files::FileRecords::open(files.clone())?)),
        Source::Embedded { records, seed } => Inner::Embedded(clinical::Notes::new(*records, *seed)),
    };
    started(inner, || source_name(source))
}

/// Reads the first record.
fn started(inner: Inner, name: impl FnOnce() -> String) -> Result<Records, CorpusError> {
    let mut records = Records { inner, first: None };
    match records.advance() {
        Some(Ok(first)) => {
            records.first = Some(Ok(first));
            Ok(records)
        }
        Some(Err(error)) => Err(error),
        None => Err(CorpusError::Empty { source_name: name() }),
    }
}

/// Opens a text that is no file, such as one of a browser, and reads up to its first record. The one path of `files` is its name.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_stream(
    text: impl std::io::Read + Send + 'static,
    files: Files,
) -> Result<Records, CorpusError> {
    let name = files.paths.first().cloned().unwrap_or_default();
    let text = files::open_input(&name, Box::new(text), &files)?;
    records_of(text, &name, files)
}

/// Opens a table in parquet as [`open_stream`] does a text.
///
/// # Errors
/// As [`open`].
#[cfg(feature = "parquet")]
pub(crate) fn open_parquet(
    table: impl std::io::Read + std::io::Seek + Send + 'static,
    files: Files,
) -> Result<Records, CorpusError> {
    let name = files.paths.first().cloned().unwrap_or_default();
    let text = files::open_parquet(&name, table, &files)?;
    records_of(text, &name, files)
}

fn records_of(text: files::OpenFile, name: &Path, files: Files) -> Result<Records, CorpusError> {
    let records = files::FileRecords::of_opened(text, files)?;
    started(Inner::Files(Box::new(records)), || name.display().to_string())
}

pub(crate) fn source_name(source: &Source) -> String {
    match source {
        Source::Files(files) => match files.paths.as_slice() {
            [] => "the list of files".to_owned(),
            [one] => one.display().to_string(),
            [first, rest @ ..] => format!("{} and {} more", first.display(), rest.len()),
        },
        Source::Embedded { .. } => "the embedded sample with records = 0".to_owned(),
    }
}
