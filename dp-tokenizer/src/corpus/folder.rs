//! A folder of texts: each `.txt` file in it, and in the folders below it, is a record.

use std::io::{Read, Result};
use std::path::{Path, PathBuf};

use super::encoding::{self, Decoded, NotText};
use super::lines::MAX_LINE_BYTES;
use super::rows::{RowFault, Rows, push_json_string};
use super::{BadUtf8, Files};

/// The texts of a folder, in the order of their names.
pub(super) struct Texts {
    paths: std::vec::IntoIter<PathBuf>,
    files: Files,
    /// The number of files read so far.
    place: u64,
}

impl Texts {
    /// Lists the folder.
    pub(super) fn open(folder: &Path, files: &Files) -> std::result::Result<Self, String> {
        Ok(Self::of(list(folder)?, 0, files))
    }

    /// Returns the texts of a folder with these paths, from the one at `place` on.
    pub(super) fn of(mut paths: Vec<PathBuf>, place: usize, files: &Files) -> Self {
        let paths = paths.split_off(place.min(paths.len()));
        Self { paths: paths.into_iter(), files: files.clone(), place: place as u64 }
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let fault = |reason: &str| RowFault::error(self.place, format!("{}: {reason}", path.display()));
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|error| fault(&error.to_string()))?;
        file.take(MAX_LINE_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| fault(&error.to_string()))?;
        if bytes.len() > MAX_LINE_BYTES {
            return Err(fault(&format!("longer than {MAX_LINE_BYTES} bytes; divide it into shorter texts")));
        }
        let encoding = self.files.encoding;
        let given = bytes.len() as u64;
        if !encoding.is_utf8() {
            let read = Decoded::new(bytes.as_slice(), encoding)?;
            let mut decoded = read.map_err(|found| {
                fault(&format!("it holds {found}; name its encoding (--encoding; in a plan data.encoding)"))
            })?;
            let mut text = Vec::new();
            decoded.read_to_end(&mut text)?;
            bytes = text;
        } else if encoding::marked(&bytes).is_some() {
            return Err(fault(
                "it holds UTF-16 text; name that (--encoding utf-16; in a plan data.encoding)",
            ));
        }
        if self.files.bad_utf8 == BadUtf8::Refuse && std::str::from_utf8(&bytes).is_err() {
            return Err(fault(&NotText::of(&bytes, encoding).to_string()));
        }
        if bytes.contains(&0) {
            return Err(fault("binary data; give text, or remove the zero bytes"));
        }
        self.files.progress.add(given);
        Ok(bytes)
    }
}

/// Returns the texts of a folder, in the order of their names. Hidden files are left out.
pub(super) fn list(folder: &Path) -> std::result::Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    if paths.is_empty() {
        return Err("is a folder without .txt files; name a file, or a folder whose .txt files are records"
            .to_owned());
    }
    paths.sort_unstable();
    Ok(paths)
}

/// Collects the `.txt` files. Other files are refused, so that no text is silently left out. Links to folders are not followed.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> std::result::Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&path, paths)?;
        } else if path.is_file()
            && path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("txt"))
        {
            paths.push(path);
        } else {
            return Err(
                "is a folder with files that are not .txt; move them elsewhere, or name the files to read, such as FOLDER/*.parquet"
                    .to_owned(),
            );
        }
    }
    Ok(())
}

impl Rows for Texts {
    fn next_row(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let Some(path) = self.paths.next() else { return Ok(false) };
        self.place += 1;
        let bytes = self.read(&path)?;
        let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes).trim_ascii_end();
        if !text.is_empty() {
            out.push(b'{');
            push_json_string(out, self.files.text_field.as_bytes());
            out.push(b':');
            push_json_string(out, text);
            out.push(b'}');
        }
        out.push(b'\n');
        Ok(true)
    }

    fn start(&self) -> u64 {
        self.place - 1
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CorpusError, Record, Source, open};
    use super::*;

    fn read(folder: &Path) -> std::result::Result<Vec<String>, CorpusError> {
        let files = Files { bad_utf8: BadUtf8::Refuse, ..Files::of([folder.to_owned()]) };
        let texts = open(&Source::Files(files))?.map(|record| record.map(|record: Record| record.text));
        texts.collect()
    }

    #[test]
    fn each_text_file_is_a_record_whatever_its_lines() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert!(read(folder.path()).unwrap_err().to_string().contains("without .txt files"));
        write("b.txt", b"two\nlines \"quoted\"\r\n\n");
        write("a/1.TXT", b"\xEF\xBB\xBFfirst");
        write("a/blank.txt", b" \n");
        write(".hidden", b"\0");
        assert_eq!(read(folder.path()).unwrap(), ["first", "two\nlines \"quoted\""]);
        write("c.txt", b"\xFF");
        let refused = read(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("c.txt: not valid UTF-8"), "{refused}");
        std::fs::remove_file(folder.path().join("c.txt")).unwrap();
        write("scan.pdf", b"%PDF");
        let refused = read(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("not .txt") && !refused.contains("scan"), "{refused}");
    }
}
