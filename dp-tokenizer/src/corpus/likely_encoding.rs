//! Finds out the encoding of a text from its bytes.

use std::io::{BufRead, Read};
use std::path::Path;

use mechanisms::Encoding;

use super::CorpusError;
use super::encoding::marked;
#[cfg(not(target_arch = "wasm32"))]
use super::encoding::{has_surrogates, may_be_windows_1252};
#[cfg(not(target_arch = "wasm32"))]
use super::lines::{Line, MAX_LINE_BYTES, read_line};
#[cfg(not(target_arch = "wasm32"))]
use super::{files, folder};

/// What the bytes of a file tell of its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikelyEncoding {
    /// It is this one: its marks tell, or all bytes are UTF-8. Text of which nothing tells has UTF-8, too.
    Certain(Encoding),
    /// The bytes are not UTF-8, but may be Windows-1252.
    PerhapsWindows1252,
}

/// Reads a whole file, or all texts of a folder, and returns what its bytes tell of its encoding.
///
/// ```
/// use dp_tokenizer::corpus::{LikelyEncoding, likely_encoding};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("notes.txt");
/// std::fs::write(&path, b"caf\xE9\n").unwrap();
/// assert_eq!(likely_encoding(&path).unwrap(), LikelyEncoding::PerhapsWindows1252);
/// ```
///
/// # Errors
/// [`CorpusError`] if a file cannot be read or its name does not tell the format.
#[cfg(not(target_arch = "wasm32"))]
pub fn likely_encoding(path: &Path) -> Result<LikelyEncoding, CorpusError> {
    let unknown = LikelyEncoding::Certain(Encoding::Utf8);
    let unreadable = |reason: String| CorpusError::Unreadable { path: path.to_owned(), reason };
    if !path.exists() {
        // Whoever reads the file says what is wrong with its name.
        return Ok(unknown);
    }
    if path.is_dir() {
        for text in folder::list(path).map_err(unreadable)? {
            match likely_encoding(&text)? {
                found if found == unknown => {}
                found => return Ok(found),
            }
        }
        return Ok(unknown);
    }
    let Some(mut input) = files::plain_bytes(path)? else { return Ok(unknown) };
    let failed = |error: std::io::Error| CorpusError::of_reading(path, 0, &error);
    if let Some(marked) = marked(input.fill_buf().map_err(failed)?) {
        return Ok(LikelyEncoding::Certain(marked));
    }
    let (mut line, mut is_utf8, mut may_be_other) = (Vec::new(), true, true);
    while let Line::Read(_) = read_line(&mut input, &mut line, MAX_LINE_BYTES).map_err(failed)? {
        is_utf8 &= std::str::from_utf8(&line).is_ok();
        may_be_other &= may_be_windows_1252(&line) && !has_surrogates(&line);
    }
    Ok(if !is_utf8 && may_be_other { LikelyEncoding::PerhapsWindows1252 } else { unknown })
}

/// Returns the encoding that the first bytes of a text that is no file tell, and the text.
pub(crate) fn marked_stream(
    name: &Path,
    text: impl Read + Send + 'static,
) -> Result<(Encoding, impl Read + Send + 'static), CorpusError> {
    let mut text = std::io::BufReader::new(text);
    let first = text.fill_buf().map_err(|error| CorpusError::of_reading(name, 0, &error))?;
    Ok((marked(first).unwrap_or_default(), text))
}
