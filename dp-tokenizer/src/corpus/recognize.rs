//! Recognizes a file by its kind, its name and its first bytes. Nothing is silently read as something else.

use std::path::Path;

use super::{CorpusError, Format, encoding};

/// Extensions of formats that are not read, whatever the user says of them.
const NOT_TEXT: &[&str] = &[
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

/// Returns the format of a file: as wanted, else by the extension of its name, without `.gz` or `.zst`.
pub(super) fn format_of(path: &Path, extension: &str, wanted: Format) -> Result<Format, CorpusError> {
    let named = match extension {
        "txt" | "text" => Some(Format::Text),
        "jsonl" | "ndjson" => Some(Format::Jsonl),
        "json" => Some(Format::Json),
        "csv" => Some(Format::Csv),
        "tsv" => Some(Format::Tsv),
        "iob" | "conll" => Some(Format::Iob),
        "parquet" => Some(Format::Parquet),
        _ => None,
    };
    let refused = |fix| {
        let (path, extension) = (path.to_owned(), extension.to_owned());
        Err(CorpusError::UnknownFormat { path, extension, declared_text: wanted == Format::Text, fix })
    };
    let format = match (wanted, named) {
        (Format::Auto, Some(named)) => named,
        (Format::Auto, None) if NOT_TEXT.contains(&extension) => return refused("convert it first"),
        (Format::Auto, None) => return Err(CorpusError::UnnamedFormat { path: path.to_owned() }),
        (Format::Text, Some(Format::Jsonl | Format::Json | Format::Parquet)) => {
            return refused("leave the format to the name, or declare what it is");
        }
        (wanted, _) => wanted,
    };
    match format {
        Format::Parquet if !cfg!(feature = "parquet") => {
            refused("convert it first, or build with --features parquet")
        }
        format => Ok(format),
    }
}

/// Returns the reason why a path that cannot be opened, or must not be, is no corpus.
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
        Some(
            "is a folder, whose .txt files are records only where no format is given; name the files in it"
                .to_owned(),
        )
    } else if metadata.is_file() {
        None
    } else {
        Some("is a pipe or a device, which cannot be read twice; write its contents to a file".to_owned())
    }
}

/// Refuses contents that are not text, by their first bytes.
pub(super) fn check_contents(path: &Path, first: &[u8]) -> Result<(), CorpusError> {
    let (found, fix) = match first {
        _ if encoding::marked(first).is_some() => (
            "UTF-16 text",
            "name that (--encoding utf-16; in a plan data.encoding), or convert it, for example with iconv -f UTF-16 -t UTF-8",
        ),
        [0x1F, 0x8B, ..] => ("gzip data", "end its name with .gz once for each time that it was compressed"),
        [0x28, 0xB5, 0x2F, 0xFD, ..] => ("zstd data", "end its name with .zst"),
        [b'P', b'K', 3, 4, ..] => ("a zip archive", "extract it first"),
        [b'%', b'P', b'D', b'F', b'-', ..] => ("a PDF", "convert it to text first"),
        [b'P', b'A', b'R', b'1', ..] => ("Parquet data", "end its name with .parquet"),
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => ("xz data", "decompress it first"),
        [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', ..] => ("bzip2 data", "decompress it first"),
        _ if first.contains(&0) => {
            ("binary data, with a zero byte near its beginning", "give text, or remove the zero bytes")
        }
        _ => return Ok(()),
    };
    Err(CorpusError::WrongContents { path: path.to_owned(), found, fix })
}
