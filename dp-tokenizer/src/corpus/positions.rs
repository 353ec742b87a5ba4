//! Records read by position, without those before them.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::files::{Compression, FileRecords, Position, STDIN, named_format, parse_line};
use super::folder::{self, Texts};
use super::iob::Sentences;
use super::json_array::JsonArray;
use super::lines::{Line, MAX_LINE_BYTES, read_line};
use super::rows::Rows;
use super::separated::{Separated, Separator};
use super::{CorpusError, Files, Format, Record, Source};

/// Files of which any record can be read without those before it: uncompressed files, and folders of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFiles {
    files: Files,
    layouts: Vec<Layout>,
}

/// The layout of a path among the files.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Layout {
    File(Format),
    /// The texts of a folder, in order.
    Folder(Vec<PathBuf>),
}

impl Layout {
    fn of(path: &Path, files: &Files) -> Option<Self> {
        // Places in a text are those of its UTF-8.
        if path.as_os_str() == STDIN || !files.encoding.is_utf8() {
            return None;
        }
        if path.is_dir() {
            let texts = (files.format == Format::Auto).then(|| folder::list(path).ok())?;
            return texts.map(Self::Folder);
        }
        match named_format(path, files.format) {
            Ok((Format::Parquet, _)) if cfg!(not(feature = "parquet")) => None,
            Ok((format, Compression::None)) => Some(Self::File(format)),
            _ => None,
        }
    }
}

impl LineFiles {
    /// Returns the files of a source; `None` if one of them has another layout.
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
        let layouts = files.paths.iter().map(|path| Layout::of(path, files)).collect::<Option<Vec<_>>>()?;
        Some(Self { files: files.clone(), layouts })
    }

    /// Returns all records in order, each with its position.
    ///
    /// # Errors
    /// [`CorpusError`] if a file is missing or unreadable; the items carry errors of their lines.
    pub fn records(
        &self,
    ) -> Result<impl Iterator<Item = Result<(Position, Record), CorpusError>>, CorpusError> {
        let mut records = FileRecords::open(self.files.clone())?;
        let mut starts: Option<Starts> = None;
        Ok(std::iter::from_fn(move || {
            let record = records.next()?;
            Some(record.and_then(|record| Ok((self.position(&records, &mut starts)?, record))))
        }))
    }

    /// Returns the records from the first on, of which some may be left out. The records of owners are not bounded.
    ///
    /// # Errors
    /// As [`Self::records`].
    pub fn some_records(&self) -> Result<SomeRecords, CorpusError> {
        let files = Files { progress: self.files.progress.fresh(), owners: None, ..self.files.clone() };
        FileRecords::open(files).map(SomeRecords)
    }

    /// Returns the position of the last record.
    fn position(&self, records: &FileRecords, starts: &mut Option<Starts>) -> Result<Position, CorpusError> {
        let (position, line) = (records.position(), records.line());
        let place = position.file as usize;
        let offset = match &self.layouts[place] {
            Layout::File(Format::Text | Format::Jsonl) => return Ok(position),
            Layout::File(Format::Parquet) | Layout::Folder(_) => line.saturating_sub(1),
            // These formats become JSON lines, which are numbered by the file's own lines, or by the elements of its
            // array.
            Layout::File(format) => {
                let path = &self.files.paths[place];
                let start = match starts {
                    Some(starts) if starts.file == place => starts.of(line),
                    _ => Starts::open(place, path, *format, &self.files)
                        .and_then(|opened| starts.insert(opened).of(line)),
                };
                start.map_err(|error| CorpusError::of_reading(path, line, &error))?
            }
        };
        Ok(Position { length: 0, offset, ..position })
    }

    /// Returns the record at a position. The file is opened for it alone, so that any number of files needs one
    /// descriptor.
    ///
    /// # Errors
    /// [`CorpusError`] if the file cannot be read or no longer has the record.
    pub fn read(&self, position: Position) -> Result<Record, CorpusError> {
        let place = position.file as usize;
        let path = &self.files.paths[place];
        let unreadable = |reason: String| CorpusError::Unreadable { path: path.clone(), reason };
        let (format, read) = match &self.layouts[place] {
            Layout::File(format @ (Format::Text | Format::Jsonl)) => {
                (*format, line_at(path, position).map_err(|error| error.to_string()))
            }
            layout => (Format::Jsonl, row_at(layout, path, position.offset, &self.files)),
        };
        let bytes = read.map_err(unreadable)?;
        let changed = || {
            let unit = match &self.layouts[place] {
                Layout::File(Format::Parquet) => "row",
                Layout::Folder(_) => "file",
                Layout::File(_) => "byte",
            };
            unreadable(format!("no record at {unit} {} any more; restore it and resume", position.offset))
        };
        let is_first = position.length > 0 && position.offset == 0;
        let parsed = parse_line(&bytes, is_first, format, &self.files);
        parsed.ok().and_then(|(record, _)| record).ok_or_else(changed)
    }
}

/// Records of files from the first, of which some may be left out at less cost than reading them.
pub struct SomeRecords(FileRecords);

impl SomeRecords {
    /// Leaves out the next record. Returns whether there was one.
    ///
    /// # Errors
    /// [`CorpusError`] if a file can no longer be read.
    pub fn pass_over(&mut self) -> Result<bool, CorpusError> {
        self.0.pass_over()
    }
}

impl Iterator for SomeRecords {
    type Item = Result<Record, CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

fn separator(format: Format) -> Separator {
    if format == Format::Tsv { Separator::Tab } else { Separator::Comma }
}

fn line_at(path: &Path, position: Position) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; position.length as usize];
    file.seek(SeekFrom::Start(position.offset))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Returns a record that is no line, as a JSON line.
fn row_at(layout: &Layout, path: &Path, offset: u64, files: &Files) -> Result<Vec<u8>, String> {
    let file = || File::open(path).map(BufReader::new);
    let mut row = Vec::new();
    let read = match layout {
        #[cfg(feature = "parquet")]
        Layout::File(Format::Parquet) => return super::parquet::row_at(path, files, offset),
        Layout::File(Format::Iob) => {
            file().and_then(|file| Sentences::open(file, files).sentence_at(offset, &mut row))
        }
        Layout::File(Format::Json) => {
            file().and_then(|file| JsonArray::open(file, files).element_at(offset, &mut row))
        }
        Layout::File(format) => {
            file().and_then(|file| Separated::open(file, separator(*format), files)?.row_at(offset, &mut row))
        }
        Layout::Folder(texts) => {
            let text = texts.get(offset as usize).cloned();
            Texts::of(text.into_iter().collect(), files).next_row(&mut row)
        }
    };
    read.map_err(|error| error.to_string())?;
    row.truncate(row.iter().position(|&byte| byte == b'\n').unwrap_or(row.len()));
    Ok(row)
}

/// Finds where records begin in a file whose records are no lines. They are asked for in their order.
struct Starts {
    /// The number of the file, from 0.
    file: usize,
    inner: Inner,
}

enum Inner {
    Lines(LineStarts),
    Elements(JsonArray<BufReader<File>>, u64),
}

impl Starts {
    fn open(file: usize, path: &Path, format: Format, files: &Files) -> io::Result<Self> {
        let reader = BufReader::with_capacity(1 << 20, File::open(path)?);
        let inner = match format {
            Format::Json => Inner::Elements(JsonArray::open(reader, files), 0),
            _ => Inner::Lines(LineStarts { reader, buffer: Vec::new(), lines: 0, offset: 0 }),
        };
        Ok(Self { file, inner })
    }

    /// Returns the number of bytes before a line or element, which is counted from 1.
    fn of(&mut self, number: u64) -> io::Result<u64> {
        match &mut self.inner {
            Inner::Lines(lines) => lines.start_of(number),
            Inner::Elements(array, passed) => loop {
                *passed += 1;
                let start = array.pass_element()?;
                if *passed >= number {
                    return Ok(start);
                }
            },
        }
    }
}

/// Finds where the lines of a file begin.
struct LineStarts {
    reader: BufReader<File>,
    buffer: Vec<u8>,
    /// The number of lines before the offset.
    lines: u64,
    offset: u64,
}

impl LineStarts {
    /// Returns the number of bytes before a line, which is counted from 1.
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
        // This table has a field of three lines, blank lines between rows, and a header of two lines.
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
        // These files have sentences of words and tags, with a mark between documents, and elements on one line and on
        // several.
        std::fs::write(path("g.iob"), "\u{FEFF}One O\ntwo B\n\n-DOCSTART- O\n\n\nthree I\r\n").unwrap();
        std::fs::write(
            path("h.json"),
            "\u{FEFF}[ {\"text\":\"a]\",\n\"tags\": [\"x\"]} ,{\"text\":\"é\",\"tags\":\"y\"}\n,\n{\"tags\":\"z\",\"text\":\"c\"}]\n",
        )
        .unwrap();
        let mut tagged = Files::of([path("g.iob"), path("h.json")]);
        tagged.further = vec!["tags".to_owned()];
        for (name, text) in [("2.txt", "two\nlines\n"), ("b/1.txt", "\u{FEFF}first"), ("blank.txt", "\n")] {
            std::fs::create_dir_all(path("notes/b")).unwrap();
            std::fs::write(path("notes").join(name), text).unwrap();
        }
        let notes = Source::files([path("notes"), path("a.txt")]);
        for (source, count) in [
            (Source::Files(tagged), 5),
            (notes, 5),
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
        for name in ["a.txt.gz", "a.csv.zst", "a.json.gz", "a.pdf", "-", "."] {
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
