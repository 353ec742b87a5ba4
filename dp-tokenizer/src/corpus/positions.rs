//! Records read by position, without those before them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::files::{Compression, FileRecords, Position, STDIN, named_format, parse_line};
use super::folder::{self, Texts};
use super::iob::Sentences;
use super::json_array::JsonArray;
use super::lines::{Line, MAX_LINE_BYTES, read_line};
use super::rows::Rows;
use super::separated::{Separated, Separator};
use super::{CorpusError, Files, Format, Record, Source, source_name};

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

    /// Whether records begin at line ends, so that a process that begins anywhere in the file finds the next one.
    fn has_lines(&self) -> bool {
        matches!(self, Self::File(Format::Text | Format::Jsonl))
    }
}

/// The size that a text in a folder is taken to have when the folder is divided.
const FOLDER_TEXT_BYTES: u64 = 4096;

/// The number of places at which processes compare their files, and the number of bytes at each.
const SAMPLES: u64 = 64;
const SAMPLE_BYTES: u64 = 1024;

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
    pub fn records(&self) -> Result<ShareRecords<'_>, CorpusError> {
        self.share_of(&self.sizes()?, 0, 1)
    }

    /// Returns the records from the beginning of share `number` of `shares` on. Every record is in one share, and shares have about
    /// the same number of bytes: a file of lines and a folder are cut anywhere, and another file is in one share. If the records of
    /// owners are bounded, all are in the first share, because which are kept depends on those before them. `sizes` are
    /// [`Self::sizes`]; processes that divide a text need the same.
    ///
    /// # Errors
    /// As [`Self::records`].
    pub fn share_of(&self, sizes: &[u64], number: u64, shares: u64) -> Result<ShareRecords<'_>, CorpusError> {
        let [start, end] = [number, number + 1].map(|number| self.cut(sizes, number, shares));
        let records = FileRecords::open_at(self.files.clone(), start)?;
        Ok(ShareRecords { files: self, records, start, end, last: start })
    }

    /// Returns these files for a further reading of all records, which is not counted as progress and does not bound the records of
    /// owners.
    #[must_use]
    pub fn again(&self) -> Self {
        let files = Files { progress: self.files.progress.fresh(), owners: None, ..self.files.clone() };
        Self { files, layouts: self.layouts.clone() }
    }

    /// Returns the size of each file in bytes; for folders, an estimate.
    ///
    /// # Errors
    /// [`CorpusError::Unreadable`] for a missing file.
    pub fn sizes(&self) -> Result<Vec<u64>, CorpusError> {
        let size = |(path, layout): (&PathBuf, &Layout)| match layout {
            Layout::Folder(texts) => Ok(texts.len() as u64 * FOLDER_TEXT_BYTES),
            Layout::File(_) => path
                .metadata()
                .map(|file| file.len())
                .map_err(|error| CorpusError::Unreadable { path: path.clone(), reason: error.to_string() }),
        };
        self.files.paths.iter().zip(&self.layouts).map(size).collect()
    }

    /// Returns bytes from places all over the files, by which processes notice that they have other files. They are as private as
    /// the text.
    ///
    /// # Errors
    /// [`CorpusError`] for a file that cannot be read.
    pub fn sample(&self, sizes: &[u64]) -> Result<Vec<u8>, CorpusError> {
        let total: u64 = sizes.iter().sum();
        let mut bytes = Vec::new();
        for number in 0..SAMPLES {
            let place = (u128::from(total) * u128::from(number) / u128::from(SAMPLES)) as u64;
            let (file, offset) = place_in(sizes, place);
            let Some(path) = self.files.paths.get(file) else { continue };
            let path = match &self.layouts[file] {
                Layout::File(_) => path,
                Layout::Folder(texts) => match texts.get((offset / FOLDER_TEXT_BYTES) as usize) {
                    Some(text) => text,
                    None => continue,
                },
            };
            let offset = if path == &self.files.paths[file] { offset } else { 0 };
            let read = File::open(path).and_then(|mut file| {
                file.seek(SeekFrom::Start(offset))?;
                file.take(SAMPLE_BYTES).read_to_end(&mut bytes)
            });
            read.map_err(|error| CorpusError::Unreadable { path: path.clone(), reason: error.to_string() })?;
        }
        Ok(bytes)
    }

    /// Returns the error of files without any record.
    #[must_use]
    pub fn without_records(&self) -> CorpusError {
        CorpusError::Empty { source_name: source_name(&Source::Files(self.files.clone())) }
    }

    /// Returns the place at which a share begins.
    fn cut(&self, sizes: &[u64], number: u64, shares: u64) -> Position {
        let behind = Position { file: self.layouts.len() as u32, offset: 0 };
        if number == 0 {
            return Position::default();
        }
        if number >= shares || self.files.owners.is_some() {
            return behind;
        }
        let total: u64 = sizes.iter().sum();
        let place = (u128::from(total) * u128::from(number) / u128::from(shares)) as u64;
        let (file, offset) = place_in(sizes, place);
        let next = Position { file: file as u32 + 1, offset: 0 };
        match self.layouts.get(file) {
            None => behind,
            Some(layout) if layout.has_lines() => Position { file: file as u32, offset },
            Some(Layout::Folder(texts)) => match offset.div_ceil(FOLDER_TEXT_BYTES) {
                text if text < texts.len() as u64 => Position { file: file as u32, offset: text },
                _ => next,
            },
            Some(_) if offset == 0 => Position { file: file as u32, offset: 0 },
            Some(_) => next,
        }
    }

    /// Returns the position of the last record.
    fn position(&self, records: &FileRecords) -> Position {
        let position = records.position();
        match self.layouts[position.file as usize] {
            Layout::File(Format::Parquet) => {
                Position { offset: records.line().saturating_sub(1), ..position }
            }
            _ => position,
        }
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
        let is_first = self.layouts[place].has_lines() && position.offset == 0;
        let parsed = parse_line(&bytes, is_first, format, &self.files);
        parsed.ok().and_then(|(record, _)| record).ok_or_else(changed)
    }
}

/// Returns the file that has a byte of all files together, and the number of its bytes before that.
fn place_in(sizes: &[u64], place: u64) -> (usize, u64) {
    let mut rest = place;
    for (file, size) in sizes.iter().enumerate() {
        match rest.checked_sub(*size) {
            Some(after) => rest = after,
            None => return (file, rest),
        }
    }
    (sizes.len(), 0)
}

/// The records from the beginning of a share on, each with its position.
pub struct ShareRecords<'a> {
    files: &'a LineFiles,
    records: FileRecords,
    start: Position,
    end: Position,
    last: Position,
}

impl ShareRecords<'_> {
    /// Whether the last record is in the share.
    #[must_use]
    pub fn is_in_share(&self) -> bool {
        self.last < self.end
    }

    /// Returns an error with the line of the file, of which the lines before the share were not read.
    fn in_file(&self, error: CorpusError) -> CorpusError {
        let path = self.files.files.paths.get(self.start.file as usize);
        let layout = self.files.layouts.get(self.start.file as usize);
        let (Some(path), Some(layout)) = (path, layout) else { return error };
        if self.start.offset == 0 || !layout.has_lines() {
            return error;
        }
        // The first line of the share is the first that begins at its start or after it.
        match lines_begun(path, self.start.offset) {
            Ok(before) => error.after_lines(path, before.saturating_sub(1)),
            Err(_) => error,
        }
    }
}

impl Iterator for ShareRecords<'_> {
    type Item = Result<(Position, Record), CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.next()?;
        self.last = self.files.position(&self.records);
        Some(match record {
            Ok(record) => Ok((self.last, record)),
            Err(error) => Err(self.in_file(error)),
        })
    }
}

/// Returns the number of lines that begin before a place in a file.
fn lines_begun(path: &Path, place: u64) -> io::Result<u64> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?.take(place.saturating_sub(1)));
    let mut lines = u64::from(place > 0);
    loop {
        let available = reader.fill_buf()?;
        let bytes = available.len();
        if bytes == 0 {
            return Ok(lines);
        }
        lines += memchr::memchr_iter(b'\n', available).count() as u64;
        reader.consume(bytes);
    }
}

fn separator(format: Format) -> Separator {
    if format == Format::Tsv { Separator::Tab } else { Separator::Comma }
}

fn line_at(path: &Path, position: Position) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::new(File::open(path)?);
    reader.seek(SeekFrom::Start(position.offset))?;
    let mut bytes = Vec::new();
    match read_line(&mut reader, &mut bytes, MAX_LINE_BYTES)? {
        Line::Read(_) => Ok(bytes),
        Line::End | Line::TooLong => Err(io::ErrorKind::UnexpectedEof.into()),
    }
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
            Texts::of(text.into_iter().collect(), 0, files).next_row(&mut row)
        }
    };
    read.map_err(|error| error.to_string())?;
    row.truncate(row.iter().position(|&byte| byte == b'\n').unwrap_or(row.len()));
    Ok(row)
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
            check_shares(&files, &found);
        }
    }

    /// Every record is in one share.
    fn check_shares(files: &LineFiles, whole: &[(Position, Record)]) {
        let sizes = files.sizes().unwrap();
        for shares in 1..60 {
            let mut of_shares = Vec::new();
            for number in 0..shares {
                let mut share = files.share_of(&sizes, number, shares).unwrap();
                while let Some(record) = share.next().filter(|_| share.is_in_share()) {
                    of_shares.push(record.unwrap());
                }
            }
            assert!(of_shares == whole, "{shares} shares: {of_shares:?}");
        }
    }

    /// A process that begins within a file names the lines of the file, as one that reads all of it.
    #[test]
    fn a_refused_line_is_named_whatever_share_it_is_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let line = |n: usize| if n == 80 { "{".to_owned() } else { format!("{{\"text\":\"{n}\"}}\n") };
        let text: String = (1..100).map(|n| line(n) + "\n").collect();
        std::fs::write(&path, text).unwrap();
        let files = LineFiles::of(&Source::files([path])).unwrap();
        let sizes = files.sizes().unwrap();
        let first_error = |number, shares| {
            let mut share = files.share_of(&sizes, number, shares).unwrap();
            let found = share.find_map(|record| record.err().map(|error| error.to_string()));
            found.filter(|_| share.is_in_share())
        };
        let whole = first_error(0, 1).unwrap();
        assert!(whole.contains("line 159:"), "{whole}");
        for shares in [2, 7, 50, 500] {
            let found: Vec<String> = (0..shares).filter_map(|number| first_error(number, shares)).collect();
            assert_eq!(found, std::slice::from_ref(&whole), "{shares} shares");
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
        for (text, part) in [("one\n", "end of file"), ("one\n\n\n\n\n\n\n\n", "no record at byte 4")] {
            std::fs::write(&path, text).unwrap();
            let refused = files.read(position).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
    }
}
