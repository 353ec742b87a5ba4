//! The reasons why a corpus is refused. No message quotes the corpus.

use std::path::{Path, PathBuf};

use super::ReadProgress;
use super::encoding::NotText;
use super::rows::RowFault;

/// The formats that are read, for messages.
const READ: &str = if cfg!(feature = "parquet") {
    ".txt, .jsonl, .json, .csv, .tsv and .iob, plain or as .gz or .zst, and .parquet"
} else {
    ".txt, .jsonl, .json, .csv, .tsv and .iob, plain or as .gz or .zst"
};

/// The reason why a corpus cannot be read. Messages name file and line, never a line's content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusError {
    /// A file cannot be opened or read.
    #[error("{}: {reason}{}", path.display(), if reason.contains("; ") { "" } else { "; give a readable file" })]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's message, or what is wrong and how to fix it.
        reason: String,
    },
    /// Reading stopped in the middle of a file.
    #[error("{}, after line {line}: {reason}; the file may be cut off or damaged: fetch it again", path.display())]
    Interrupted {
        /// The file.
        path: PathBuf,
        /// The last line that was read.
        line: u64,
        /// The failure.
        reason: String,
    },
    /// A file format that this program does not read.
    #[error(
        "{}: .{extension} files are not read{}; allowed: {READ}; {fix}",
        path.display(),
        if *declared_text { " as text" } else { "" }
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The extension of the file.
        extension: String,
        /// Whether the file was declared to be text.
        declared_text: bool,
        /// The advice on what to do.
        fix: &'static str,
    },
    /// A name that does not tell the format.
    #[error(
        "{}: the name does not tell the format; allowed: {READ}; rename the file, or name the format (--format; in a plan data.format)",
        path.display()
    )]
    UnnamedFormat {
        /// The file.
        path: PathBuf,
    },
    /// A file that is not what its name says.
    #[error("{}: it holds {found}; {fix}", path.display())]
    WrongContents {
        /// The file.
        path: PathBuf,
        /// The content that was found.
        found: &'static str,
        /// The advice on what to do.
        fix: &'static str,
    },
    /// A long stretch without any text.
    #[error("{}, line {line}: more than {most} blank lines in a row; remove them", path.display())]
    TooManyBlankLines {
        /// The file.
        path: PathBuf,
        /// A line in the stretch.
        line: u64,
        /// The largest number of blank lines in a row.
        most: u64,
    },
    /// The program asked to stop reading.
    #[error("reading was stopped")]
    Stopped,
    /// A line longer than the cap.
    #[error("{}, line {line}: longer than {cap} bytes; break the text into shorter lines", path.display())]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The cap, in bytes.
        cap: usize,
    },
    /// Bytes that are not in the encoding of the text, under [`super::BadUtf8::Refuse`].
    #[error("{}, line {line}: {fault}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The encoding that they are not in.
        fault: NotText,
    },
    /// A line of a JSON Lines file or a table that is not as announced.
    #[error("{}, line {line}: {reason}", path.display())]
    BadJson {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The fault, and how to fix it.
        reason: String,
    },
    /// An element of a JSON array that is not as announced.
    #[error("{}, element {element}: {reason}", path.display())]
    BadElement {
        /// The file.
        path: PathBuf,
        /// The element, from 1.
        element: u64,
        /// The fault, and how to fix it.
        reason: String,
    },
    /// A line of a file of counts that is no count.
    #[error("{}, line {line}: no count; allowed: a word, a tab, and a number above 0", path.display())]
    BadCount {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
    /// One text has two names.
    #[error(
        "{} and {} are the same text; give each text once: its records would count as two units",
        first.display(),
        second.display()
    )]
    SameText {
        /// The file named first.
        first: PathBuf,
        /// The file named again.
        second: PathBuf,
    },
    /// No record at all.
    #[error("{source_name}: no record found; give at least one line that is not blank")]
    Empty {
        /// The name of the source that was opened.
        source_name: String,
    },
}

impl CorpusError {
    /// Returns the error with so many further lines of the file `of` before its line.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn after_lines(mut self, of: &Path, lines: u64) -> Self {
        if let Self::Interrupted { path, line, .. }
        | Self::TooManyBlankLines { path, line, .. }
        | Self::LineTooLong { path, line, .. }
        | Self::NotText { path, line, .. }
        | Self::BadJson { path, line, .. } = &mut self
            && path == of
        {
            *line += lines;
        }
        self
    }

    /// Returns the error of reading that stopped after `line` lines.
    pub(crate) fn of_reading(path: &Path, line: u64, error: &std::io::Error) -> Self {
        if ReadProgress::has_stopped(error) {
            return Self::Stopped;
        }
        let path = path.to_owned();
        match error.get_ref().and_then(|inner| inner.downcast_ref::<RowFault>()) {
            Some(fault) => Self::BadJson { path, line: fault.line, reason: fault.reason.clone() },
            None => Self::Interrupted { path, line, reason: error.to_string() },
        }
    }
}
