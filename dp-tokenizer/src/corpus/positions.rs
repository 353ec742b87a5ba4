//! Records read by position, from files whose lines or rows are records.

/// Where a record lies in the files of a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The file, counted from 0.
    pub(super) file: u32,
    /// Bytes of the line, without its end; 0 for a row of a table.
    pub(super) length: u32,
    /// Bytes before the line or row.
    pub(super) offset: u64,
}

#[cfg(not(target_arch = "wasm32"))]
pub use files::LineFiles;

#[cfg(not(target_arch = "wasm32"))]
mod files {
    use std::fs::File;
    use std::io::{self, BufReader, Read, Seek, SeekFrom};
    use std::path::Path;

    use super::Position;
    use crate::corpus::files::{Compression, FileRecords, STDIN, named_format, parse_line};
    use crate::corpus::lines::{Line, MAX_LINE_BYTES, read_line};
    use crate::corpus::separated::{Separated, Separator};
    use crate::corpus::{CorpusError, Files, Format, Record, Source};

    /// Files of which any record can be read without those before it: uncompressed text, JSON Lines, CSV and TSV.
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
                Ok((
                    format @ (Format::Text | Format::JsonLines | Format::Csv | Format::Tsv),
                    Compression::None,
                )) if path.as_os_str() != STDIN && !path.is_dir() => Some(format),
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
            let mut lines: Option<LineStarts> = None;
            Ok(std::iter::from_fn(move || {
                let record = records.next()?;
                Some(record.and_then(|record| Ok((self.position(&records, &mut lines)?, record))))
            }))
        }

        /// Where the last record lies.
        fn position(
            &self,
            records: &FileRecords,
            lines: &mut Option<LineStarts>,
        ) -> Result<Position, CorpusError> {
            let position = records.position();
            let place = position.file as usize;
            if separator(self.formats[place]).is_none() {
                return Ok(position);
            }
            // Rows are read as JSON lines, which have the numbers of the file's own.
            let path = &self.files.paths[place];
            let offset = match lines {
                Some(lines) if lines.file == place => lines.start_of(records.line()),
                _ => LineStarts::open(place, path)
                    .and_then(|opened| lines.insert(opened).start_of(records.line())),
            };
            let offset = offset.map_err(|error| CorpusError::of_reading(path, records.line(), &error))?;
            Ok(Position { length: 0, offset, ..position })
        }

        /// The record at a position. The file is opened for it alone, so that any number of files needs one descriptor.
        ///
        /// # Errors
        /// [`CorpusError`] if the file cannot be read or no longer has the record.
        pub fn read(&self, position: Position) -> Result<Record, CorpusError> {
            let place = position.file as usize;
            let (path, format) = (&self.files.paths[place], self.formats[place]);
            let unreadable = |reason: String| CorpusError::Unreadable { path: path.clone(), reason };
            let read = match separator(format) {
                None => line_at(path, position),
                Some(separator) => row_at(path, position, separator, &self.files),
            };
            let bytes = read.map_err(|error| unreadable(error.to_string()))?;
            let changed = || {
                unreadable(format!(
                    "no record at byte {} any more; restore the file and resume",
                    position.offset
                ))
            };
            // A row has become a JSON line.
            let (is_first, format) = match format {
                Format::Text | Format::JsonLines => (position.offset == 0, format),
                _ => (false, Format::JsonLines),
            };
            let parsed = parse_line(&bytes, is_first, format, &self.files);
            parsed.ok().and_then(|(record, _)| record).ok_or_else(changed)
        }
    }

    fn separator(format: Format) -> Option<Separator> {
        match format {
            Format::Csv => Some(Separator::Comma),
            Format::Tsv => Some(Separator::Tab),
            _ => None,
        }
    }

    fn line_at(path: &Path, position: Position) -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let mut bytes = vec![0; position.length as usize];
        file.seek(SeekFrom::Start(position.offset))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// The row of a table, as a JSON line.
    fn row_at(path: &Path, position: Position, separator: Separator, files: &Files) -> io::Result<Vec<u8>> {
        let mut table = Separated::open(BufReader::new(File::open(path)?), separator, files)?;
        let mut row = table.row_at(position.offset)?;
        row.truncate(row.iter().position(|&byte| byte == b'\n').unwrap_or(row.len()));
        Ok(row)
    }

    /// Where the lines of a file begin.
    struct LineStarts {
        /// The file, counted from 0.
        file: usize,
        reader: BufReader<File>,
        buffer: Vec<u8>,
        /// Lines before the offset.
        lines: u64,
        offset: u64,
    }

    impl LineStarts {
        fn open(file: usize, path: &Path) -> io::Result<Self> {
            let reader = BufReader::with_capacity(1 << 20, File::open(path)?);
            Ok(Self { file, reader, buffer: Vec::new(), lines: 0, offset: 0 })
        }

        /// Bytes before a line, counted from 1. Lines are asked for in their order.
        fn start_of(&mut self, line: u64) -> io::Result<u64> {
            while self.lines + 1 < line {
                match read_line(&mut self.reader, &mut self.buffer, MAX_LINE_BYTES)? {
                    Line::Read(bytes) => self.offset += bytes as u64,
                    Line::End | Line::TooLong => break,
                }
                self.lines += 1;
            }
            Ok(self.offset)
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
            // A field of three lines, blank lines between rows, and a header of two lines.
            std::fs::write(
                path("d.csv"),
                "\u{FEFF}id,\"text\",who,\"of\ntwo lines\"\r\n1,\"a, \"\"b\"\"\n\nc\",u,\r\n\r\n2,plain,v,x\n\n3,é,w,",
            )
            .unwrap();
            std::fs::write(path("e.tsv"), "who\ttext\nu\t\"it\nv\tis\" fun\n").unwrap();
            let mut tables = Files::of([path("d.csv"), path("e.tsv")]);
            tables.user_field = Some("who".to_owned());
            std::fs::write(path("f.csv"), "u,one\nv,\"t\nwo\"\n").unwrap();
            let mut headless = Files::of([path("f.csv")]);
            headless.columns = Some(vec!["who".to_owned(), "text".to_owned()]);
            for (source, count) in [
                (texts, 4),
                (Source::Files(lines), 2),
                (Source::Files(tables), 5),
                (Source::Files(headless), 2),
            ] {
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
            for name in ["a.txt.gz", "a.csv.zst", "a.iob", "a.json", "-", "."] {
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
