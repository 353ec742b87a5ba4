//! What a file is, by its kind, its name and its first bytes. Nothing is silently read as something else.

use std::path::Path;

use super::{CorpusError, Format};

/// Extensions of binary formats, which must not be read as text.
const NOT_TEXT: &[&str] = &[
    #[cfg(not(feature = "parquet"))]
    "parquet",
    "arrow",
    "feather",
    "zip",
    "7z",
    "bz2",
    "xz",
    "tar",
    "pdf",
    "docx",
    "xlsx",
    "sqlite",
    "npy",
    "npz",
    "pt",
    "bin",
    "safetensors",
];

/// The format of a file by the extension of its name, without `.gz` or `.zst`.
pub(super) fn format_of(path: &Path, extension: &str, wanted: Format) -> Result<Format, CorpusError> {
    let json_lines = "write one JSON object a line, for example with jq -c '.[]', and name the file .jsonl";
    let refused = |fix| {
        let declared_text = wanted == Format::Text;
        let (path, extension) = (path.to_owned(), extension.to_owned());
        Err(CorpusError::UnknownFormat { path, extension, declared_text, fix })
    };
    match (wanted, extension) {
        (Format::Auto | Format::Text, "json") => refused(json_lines),
        (Format::Text, "jsonl" | "ndjson") => {
            refused("leave the format to the name, or declare it to be jsonl")
        }
        (Format::Auto, other) if NOT_TEXT.contains(&other) => refused("convert it first"),
        (Format::Auto, "jsonl" | "ndjson") => Ok(Format::JsonLines),
        (Format::Auto, "csv") => Ok(Format::Csv),
        (Format::Auto, "tsv") => Ok(Format::Tsv),
        (Format::Auto, "iob" | "conll") => Ok(Format::Iob),
        (Format::Auto, _) => Ok(Format::Text),
        (chosen, _) => Ok(chosen),
    }
}

/// Why a path that cannot be opened, or must not be, is no corpus.
pub(super) fn unreadable_kind(path: &Path) -> Option<String> {
    let name = path.to_string_lossy();
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && name.contains(['*', '?']) => {
            return Some("no such file, and patterns are not expanded here; name each file".to_owned());
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && name.contains('~') => {
            return Some("no such file, and ~ is not expanded here; write the whole path".to_owned());
        }
        Err(error) => return Some(error.to_string()),
    };
    if metadata.is_dir() {
        Some("is a folder; name the files in it".to_owned())
    } else if metadata.is_file() {
        None
    } else {
        Some("is a pipe or a device, which cannot be read twice; write its contents to a file".to_owned())
    }
}

/// Refuses contents that are not text, by their first bytes.
pub(super) fn check_contents(path: &Path, first: &[u8]) -> Result<(), CorpusError> {
    let (found, fix) = match first {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => {
            ("UTF-16 text", "convert it, for example with iconv -f UTF-16 -t UTF-8")
        }
        [0x1F, 0x8B, ..] => ("gzip data", "end its name with .gz once for each time that it was compressed"),
        [0x28, 0xB5, 0x2F, 0xFD, ..] => ("zstd data", "end its name with .zst"),
        [b'P', b'K', 3, 4, ..] => ("a zip archive", "extract it first"),
        [b'%', b'P', b'D', b'F', b'-', ..] => ("a PDF", "convert it to text first"),
        [b'P', b'A', b'R', b'1', ..] => ("Parquet data", "convert it to .jsonl first"),
        _ if is_utf16(first) => {
            ("UTF-16 text", "convert it, for example with iconv -f UTF-16LE -t UTF-8 (or UTF-16BE)")
        }
        _ => return Ok(()),
    };
    Err(CorpusError::WrongContents { path: path.to_owned(), found, fix })
}

/// Whether every other byte is mostly 0, as in UTF-16 of a Latin script without a byte-order mark.
fn is_utf16(first: &[u8]) -> bool {
    let first = &first[..first.len().min(512) & !1];
    let zeros = |at: usize| first.iter().skip(at).step_by(2).filter(|&&byte| byte == 0).count() * 10;
    let pairs = first.len() / 2;
    let (even, odd) = (zeros(0), zeros(1));
    pairs >= 4 && (even >= 8 * pairs && odd <= pairs || odd >= 8 * pairs && even <= pairs)
}
