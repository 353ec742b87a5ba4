//! Why a corpus is refused. No message quotes the corpus.

use std::path::{Path, PathBuf};

use super::rows::RowFault;

/// Why a corpus cannot be read. Messages name file and line, never a line's content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusError {
    /// A file cannot be opened or read.
    #[error("{}: {reason}; give a readable file", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// Reading stopped in the middle of a file.
    #[error("{}, after line {line}: {reason}; the file may be cut off or damaged: fetch it again", path.display())]
    Interrupted {
        /// The file.
        path: PathBuf,
        /// The last line that was read.
        line: u64,
        /// What went wrong.
        reason: String,
    },
    /// A file format that this program does not read.
    #[error(
        "{}: .{extension} files are not read; allowed: .txt, .jsonl, .ndjson, .csv, .tsv, .iob and any other text, plain or as .gz or .zst, and .parquet where the program was built with --features parquet: convert it first",
        path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// Its extension.
        extension: String,
    },
    /// A line longer than the cap.
    #[error("{}, line {line}: longer than {cap} bytes; break the text into shorter lines", path.display())]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: u64,
        /// The cap.
        cap: usize,
    },
    /// Bytes that are not UTF-8, under [`super::BadUtf8::Refuse`].
    #[error(
        "{}, line {line}: not valid UTF-8; convert the file, for example with iconv -f LATIN1 -t UTF-8",
        path.display()
    )]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: u64,
    },
    /// A line of a JSON Lines file or a table that is not as announced.
    #[error("{}, line {line}: {reason}", path.display())]
    BadJson {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: u64,
        /// What is wrong and how to fix it.
        reason: String,
    },
    /// A line of a file of counts that is no count.
    #[error("{}, line {line}: no count; allowed: a word, a tab, and a number above 0", path.display())]
    BadCount {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: u64,
    },
    /// No record at all.
    #[error("{source_name}: no record found; give at least one line that is not blank")]
    Empty {
        /// What was opened.
        source_name: String,
    },
}

impl CorpusError {
    /// Reading stopped after so many lines.
    pub(super) fn of_reading(path: &Path, line: u64, error: &std::io::Error) -> Self {
        let path = path.to_owned();
        match error.get_ref().and_then(|inner| inner.downcast_ref::<RowFault>()) {
            Some(fault) => Self::BadJson { path, line: fault.line, reason: fault.reason.clone() },
            None => Self::Interrupted { path, line, reason: error.to_string() },
        }
    }
}
