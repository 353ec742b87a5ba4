//! Records read by position, from files whose lines are records.

/// Where a record lies in the files of a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The file, counted from 0.
    pub(super) file: u32,
    /// Bytes of the line, without its end.
    pub(super) length: u32,
    /// Bytes before the line.
    pub(super) offset: u64,
}

#[cfg(not(target_arch = "wasm32"))]
pub use files::LineFiles;

#[cfg(not(target_arch = "wasm32"))]
mod files {
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom};

    use super::Position;
    use crate::corpus::files::{Compression, FileRecords, STDIN, named_format, parse_line};
    use crate::corpus::{CorpusError, Files, Format, Record, Source};

    /// Files of which any record can be read without those before it: uncompressed text and JSON Lines.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LineFiles {
        files: Files,
        formats: Vec<Format>,
    }

    impl LineFiles {
        /// The files of a source; `None` if one of them is of another kind.
        ///
        /// ```
        /// use dp_tokenizer::corpus::{LineFiles, Source};
        /// let folder = tempfile::tempdir()?;
        /// let path = folder.path().join("notes.txt");
        /// std::fs::write(&path, "one\n\ntwo\n")?;
        /// let files = LineFiles::of(&Source::files([path])).expect("lines of text are records");
        /// let (position, record) = files.records()?.last().expect("two records")?;
        /// assert_eq!(record.text, "two");
        /// assert_eq!(files.read(position)?, record);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[must_use]
        pub fn of(source: &Source) -> Option<Self> {
            let Source::Files(files) = source else { return None };
            let format = |path: &std::path::PathBuf| match named_format(path, files.format) {
                Ok((format @ (Format::Text | Format::JsonLines), Compression::None))
                    if path.as_os_str() != STDIN && !path.is_dir() =>
                {
                    Some(format)
                }
                _ => None,
            };
            let formats = files.paths.iter().map(format).collect::<Option<Vec<_>>>()?;
            Some(Self { files: files.clone(), formats })
        }

        /// All records in order, each with its position.
        ///
        /// # Errors
        /// [`CorpusError`] if a file is missing or unreadable; the items carry errors of their lines.
        pub fn records(
            &self,
        ) -> Result<impl Iterator<Item = Result<(Position, Record), CorpusError>>, CorpusError> {
            let mut records = FileRecords::open(self.files.clone())?;
            Ok(std::iter::from_fn(move || {
                let record = records.next()?;
                Some(record.map(|record| (records.position(), record)))
            }))
        }

        /// The record at a position. The file is opened for it alone, so that any number of files needs one descriptor.
        ///
        /// # Errors
        /// [`CorpusError`] if the file cannot be read or no longer has the record.
        pub fn read(&self, position: Position) -> Result<Record, CorpusError> {
            let place = position.file as usize;
            let (path, format) = (&self.files.paths[place], self.formats[place]);
            let unreadable = |reason: String| CorpusError::Unreadable { path: path.clone(), reason };
            let mut bytes = vec![0; position.length as usize];
            let read = File::open(path).and_then(|mut file| {
                file.seek(SeekFrom::Start(position.offset))?;
                file.read_exact(&mut bytes)
            });
            read.map_err(|error| unreadable(error.to_string()))?;
            let changed = || {
                unreadable(format!(
                    "no record at byte {} any more; restore the file and resume",
                    position.offset
                ))
            };
            let parsed = parse_line(&bytes, position.offset == 0, format, &self.files);
            parsed.ok().and_then(|(record, _)| record).ok_or_else(changed)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::corpus::open;

        #[test]
        fn every_record_is_read_alone_as_in_order() {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            std::fs::write(path("a.txt"), "\u{FEFF}first\r\n\n  \né two\rx\r\nlast").unwrap();
            std::fs::write(path("b.txt"), "\u{FEFF}alone\n").unwrap();
            std::fs::write(
                path("c.jsonl"),
                "{\"text\":\"one\",\"who\":\"u\"}\n\n{\"text\":\"t\\nwo\",\"who\":\"v\"}",
            )
            .unwrap();
            let texts = Source::files([path("a.txt"), path("b.txt")]);
            let mut lines = Files::of([path("c.jsonl")]);
            lines.user_field = Some("who".to_owned());
            for (source, count) in [(texts, 4), (Source::Files(lines), 2)] {
                let files = LineFiles::of(&source).unwrap();
                let want: Vec<Record> = open(&source).unwrap().map(Result::unwrap).collect();
                let found: Vec<(Position, Record)> = files.records().unwrap().map(Result::unwrap).collect();
                assert_eq!(found.len(), count);
                for ((position, record), want) in found.iter().zip(&want).rev() {
                    assert_eq!((record, &files.read(*position).unwrap()), (want, want));
                }
            }
        }

        #[test]
        fn files_of_other_kinds_have_no_positions_and_a_cut_file_is_refused() {
            let folder = tempfile::tempdir().unwrap();
            for name in ["a.txt.gz", "a.csv", "a.json", "-", "."] {
                assert!(LineFiles::of(&Source::files([folder.path().join(name)])).is_none(), "{name}");
            }
            let stdin = Source::Files(Files { format: Format::Text, ..Files::of(["-".into()]) });
            assert!(LineFiles::of(&stdin).is_none());
            assert!(LineFiles::of(&Source::Embedded { records: 1, seed: 1 }).is_none());
            let path = folder.path().join("a.txt");
            std::fs::write(&path, "one\nsecond\n").unwrap();
            let files = LineFiles::of(&Source::files([path.clone()])).unwrap();
            let (position, _) = files.records().unwrap().last().unwrap().unwrap();
            for (text, part) in [("one\nsec", "fill"), ("one\n\n\n\n\n\n\n\n", "no record at byte 4")] {
                std::fs::write(&path, text).unwrap();
                let refused = files.read(position).unwrap_err().to_string();
                assert!(refused.contains(part), "{refused}");
            }
        }
    }
}
