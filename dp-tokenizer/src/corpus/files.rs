//! Records of files, one file after the other.

use std::borrow::Cow;
use std::fs::File;
#[cfg(any(feature = "parquet", not(target_arch = "wasm32")))]
use std::io::Seek;
#[cfg(not(target_arch = "wasm32"))]
use std::io::SeekFrom;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::encoding::{Decoded, NotText};
#[cfg(not(target_arch = "wasm32"))]
use super::folder;
use super::folder::Texts;
use super::iob::Sentences;
use super::json_array::JsonArray;
use super::lines::{Line, MAX_LINE_BYTES, read_line};
use super::owners::KeptRecords;
use super::rows::{JsonLines, RowStarts};
use super::separated::{Separated, Separator};
use super::{BadUtf8, CorpusError, Encoding, Files, Format, Record, json_line, recognize};

const BUFFER_BYTES: usize = 1 << 20;

/// The number of bytes that are read at a time where a share of the files is read: a reader reads on behind its share by as many.
const SHARE_BUFFER_BYTES: usize = 1 << 16;

/// The number of bytes that are read of a file to see what it holds.
const LOOK_BYTES: usize = 1 << 12;

/// The most blank lines in a row. A file with more is refused, as without text.
pub(super) const MAX_BLANK_LINES: u64 = 1 << 25;

pub(super) struct FileRecords {
    files: Files,
    next_file: usize,
    current: Option<OpenFile>,
    buffer: Vec<u8>,
    replaced_lines: u64,
    /// The number of blank lines since the last record.
    blank_lines: u64,
    failed: bool,
    /// The records that each owner has so far, if these are bounded.
    owners: Option<KeptRecords>,
    /// The place of the last record.
    position: Position,
    /// Whether the places of records that are no lines are asked for.
    has_places: bool,
}

/// The place of a record in the files of a corpus. Places are in the order of the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The number of the file, from 0.
    pub file: u32,
    /// The number of bytes before the record. In parquet files and folders, the number of records before it.
    pub offset: u64,
}

pub(super) struct OpenFile {
    pub(super) path: PathBuf,
    pub(super) format: Format,
    pub(super) reader: BufReader<Box<dyn Read + Send>>,
    pub(super) line: u64,
    /// The number of bytes in the lines that were read.
    offset: u64,
    /// Where the rows begin of which the lines were made, if that is asked for.
    starts: Option<RowStarts>,
}

impl FileRecords {
    /// Returns the records of a text that is no file. The one path of `files` is its name.
    pub(super) fn of_opened(text: OpenFile, files: Files) -> Result<Self, CorpusError> {
        Ok(Self { current: Some(text), next_file: 1, ..Self::open(Files { paths: Vec::new(), ..files })? })
    }

    pub(super) fn open(files: Files) -> Result<Self, CorpusError> {
        // All files are checked now: a missing last file should not come to light hours into a run.
        check_files(&files)?;
        let (buffer, current) = (Vec::new(), None);
        let owners = files.owners.as_ref().map(KeptRecords::new);
        Ok(Self {
            files,
            next_file: 0,
            current,
            buffer,
            replaced_lines: 0,
            blank_lines: 0,
            failed: false,
            owners,
            position: Position::default(),
            has_places: false,
        })
    }

    /// Opens the files at a place; in a file of lines, at the first line that begins there or after it. Lines before it are not
    /// counted in [`Self::line`].
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn open_at(files: Files, start: Position) -> Result<Self, CorpusError> {
        let mut records = Self { next_file: start.file as usize, has_places: true, ..Self::open(files)? };
        if let Some(path) = records.files.paths.get(records.next_file)
            && start.offset > 0
        {
            records.current = Some(open_within(path, start.offset, &records.files)?);
            records.next_file += 1;
        }
        Ok(records)
    }

    /// Returns the place of the last record.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Returns the line of the last record, from 1.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn line(&self) -> u64 {
        self.current.as_ref().map_or(0, |file| file.line)
    }

    pub(super) fn replaced_lines(&self) -> u64 {
        self.replaced_lines
    }

    fn try_next(&mut self) -> Result<Option<Record>, CorpusError> {
        while let Some(record) = self.next_record()? {
            if self.owners.as_mut().is_none_or(|owners| owners.keep(&record.owners)) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Returns the record of the next line that is not blank.
    fn next_record(&mut self) -> Result<Option<Record>, CorpusError> {
        loop {
            let Some(file) = &mut self.current else {
                let Some(path) = self.files.paths.get(self.next_file) else { return Ok(None) };
                let is_lines = !path.is_dir()
                    && matches!(named_format(path, self.files.format)?.0, Format::Text | Format::Jsonl);
                let starts = (self.has_places && !is_lines).then(RowStarts::default);
                let buffer = if self.has_places { SHARE_BUFFER_BYTES } else { BUFFER_BYTES };
                self.current = Some(open_file_with(path, &self.files, buffer, starts)?);
                self.next_file += 1;
                continue;
            };
            if self.files.progress.is_stopped() {
                return Err(CorpusError::Stopped);
            }
            let read = read_line(&mut file.reader, &mut self.buffer, MAX_LINE_BYTES)
                .map_err(|error| CorpusError::of_reading(&file.path, file.line, &error))?;
            file.line += 1;
            match read {
                Line::End => self.current = None,
                Line::TooLong => {
                    return Err(CorpusError::LineTooLong {
                        path: file.path.clone(),
                        line: file.line,
                        cap: MAX_LINE_BYTES,
                    });
                }
                Line::Read(bytes) => {
                    let offset =
                        file.starts.as_ref().map_or(file.offset, |starts| starts.of_line(file.offset));
                    file.offset += bytes as u64;
                    self.position = Position { file: self.next_file as u32 - 1, offset };
                    if let Some(record) = self.record()? {
                        self.blank_lines = 0;
                        return Ok(Some(record));
                    }
                    self.note_blank_line()?;
                }
            }
        }
    }

    /// Counts a blank line, and refuses too many: a compressed file of a few megabytes can hold blank lines for hours.
    fn note_blank_line(&mut self) -> Result<(), CorpusError> {
        self.blank_lines += 1;
        match &self.current {
            Some(file) if self.blank_lines > MAX_BLANK_LINES => Err(CorpusError::TooManyBlankLines {
                path: file.path.clone(),
                line: file.line,
                most: MAX_BLANK_LINES,
            }),
            _ => Ok(()),
        }
    }

    /// Returns the record of the line in the buffer; `None` for a blank line.
    fn record(&mut self) -> Result<Option<Record>, CorpusError> {
        let Some(file) = &self.current else { return Ok(None) };
        match parse_line(&self.buffer, file.line == 1, file.format, &self.files) {
            Ok((record, replaced)) => {
                self.replaced_lines += u64::from(replaced);
                Ok(record)
            }
            Err(fault) => Err(fault.at(&file.path, file.format, file.line)),
        }
    }
}

/// The reason why a line is refused.
pub(super) enum LineFault {
    NotText(NotText),
    BadJson(String),
}

impl LineFault {
    /// Returns the error of a line, or of an element of an array, which is handed on as a line of its own.
    pub(super) fn at(self, path: &Path, format: Format, line: u64) -> CorpusError {
        let path = path.to_owned();
        match (self, format) {
            (Self::NotText(fault), Format::Json) => {
                CorpusError::BadElement { path, element: line, reason: fault.to_string() }
            }
            (Self::BadJson(reason), Format::Json) => CorpusError::BadElement { path, element: line, reason },
            (Self::NotText(fault), _) => CorpusError::NotText { path, line, fault },
            (Self::BadJson(reason), _) => CorpusError::BadJson { path, line, reason },
        }
    }
}

/// Returns the record of a line, `None` for a blank one, and whether invalid UTF-8 was replaced.
pub(super) fn parse_line(
    bytes: &[u8],
    is_first: bool,
    format: Format,
    files: &Files,
) -> Result<(Option<Record>, bool), LineFault> {
    const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(bytes);
    let (text, replaced) = match (std::str::from_utf8(bytes), files.bad_utf8) {
        (Ok(text), _) => (Cow::Borrowed(text), false),
        (Err(_), BadUtf8::Replace) => (String::from_utf8_lossy(bytes), true),
        (Err(_), BadUtf8::Refuse) => return Err(LineFault::NotText(NotText::of(bytes, files.encoding))),
    };
    let keep_blank = files.blank_lines && format == Format::Text;
    if text.trim_start().is_empty() && !keep_blank {
        return Ok((None, replaced));
    }
    if format == Format::Text {
        return Ok((Some(Record::of_text(text)), replaced));
    }
    match json_line::parse(&text, files.json_fields()) {
        Ok(record) => Ok((Some(record), replaced)),
        Err(reason) => match (json_line::lone_surrogates(&text), files.bad_utf8) {
            (None, _) => Err(LineFault::BadJson(reason)),
            (Some(lone), BadUtf8::Refuse) => Err(LineFault::BadJson(format!(
                "half of a surrogate pair at column {}, which is no character; correct it, or read it as U+FFFD (dp-tokenizer: \
                 --invalid-utf8 replace)",
                lone.column
            ))),
            (Some(lone), BadUtf8::Replace) => match json_line::parse(&lone.replaced, files.json_fields()) {
                Ok(record) => Ok((Some(record), true)),
                Err(reason) => Err(LineFault::BadJson(reason)),
            },
        },
    }
}

impl Iterator for FileRecords {
    type Item = Result<Record, CorpusError>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.try_next().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

/// Checks that all files can be opened, before any is read.
pub(super) fn check_files(files: &Files) -> Result<(), CorpusError> {
    let mut is_taken = false;
    for path in &files.paths {
        if path.as_os_str() != STDIN {
            open_file_with(path, files, LOOK_BYTES, None)?;
        } else if std::mem::replace(&mut is_taken, true) {
            let reason = "standard input is named twice".to_owned();
            return Err(CorpusError::Unreadable { path: path.clone(), reason });
        }
    }
    Ok(())
}

/// The path of standard input.
pub(super) const STDIN: &str = "-";

/// Returns the format of a file by its name, and its compression.
pub(super) fn named_format(path: &Path, wanted: Format) -> Result<(Format, Compression), CorpusError> {
    if path.as_os_str() == STDIN {
        let format = recognize::format_of(path, "", wanted)?;
        return Ok((format, Compression::None));
    }
    if wanted == Format::Auto && path.is_dir() {
        return Ok((Format::Text, Compression::None));
    }
    let lower = path.to_string_lossy().to_lowercase();
    let (stem, compression) = match (lower.strip_suffix(".gz"), lower.strip_suffix(".zst")) {
        (Some(stem), _) => (stem, Compression::Gzip),
        (_, Some(stem)) => (stem, Compression::Zstd),
        _ => (lower.as_str(), Compression::None),
    };
    let extension = Path::new(stem).extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    Ok((recognize::format_of(path, &extension, wanted)?, compression))
}

pub(super) fn open_file(path: &Path, files: &Files) -> Result<OpenFile, CorpusError> {
    open_file_with(path, files, BUFFER_BYTES, None)
}

/// Opens a file, of which `buffer` bytes are read at a time.
fn open_file_with(
    path: &Path,
    files: &Files,
    buffer: usize,
    starts: Option<RowStarts>,
) -> Result<OpenFile, CorpusError> {
    let unreadable = |reason: String| CorpusError::Unreadable { path: path.to_owned(), reason };
    let is_stdin = path.as_os_str() == STDIN;
    if files.format == Format::Auto && path.is_dir() {
        let texts = Texts::open(path, files).map_err(unreadable)?;
        let lines = Box::new(JsonLines::new(texts, starts.clone()));
        return opened(path, Format::Jsonl, lines, files, buffer, starts);
    }
    if let Some(reason) = recognize::unreadable_kind(path).filter(|_| !is_stdin) {
        return Err(unreadable(reason));
    }
    if is_stdin {
        return open_bytes(path, Box::new(std::io::stdin()), files, buffer, None);
    }
    // A browser has no files on disk, and its module for other texts is smaller without this.
    #[cfg(all(feature = "parquet", not(target_arch = "wasm32")))]
    if named_format(path, files.format)?.0 == Format::Parquet {
        if !files.encoding.is_utf8() {
            return Err(unreadable("a parquet file tells its encoding; name none for it".to_owned()));
        }
        let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
        let lines = super::parquet::json_lines(file, files).map_err(unreadable)?;
        return opened(path, Format::Jsonl, Box::new(lines), files, buffer, None);
    }
    // An unknown format is refused before the file is opened.
    named_format(path, files.format)?;
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    open_bytes(path, Box::new(file), files, buffer, starts)
}

/// Opens a file of lines at the first that begins after `offset` bytes or later, or a folder at the text of this number.
#[cfg(not(target_arch = "wasm32"))]
fn open_within(path: &Path, offset: u64, files: &Files) -> Result<OpenFile, CorpusError> {
    let unreadable = |reason: String| CorpusError::Unreadable { path: path.to_owned(), reason };
    if path.is_dir() {
        let texts = Texts::of(folder::list(path).map_err(unreadable)?, offset as usize, files);
        let starts = Some(RowStarts::default());
        let lines = Box::new(JsonLines::new(texts, starts.clone()));
        let file = opened(path, Format::Jsonl, lines, files, BUFFER_BYTES, starts)?;
        return Ok(OpenFile { line: offset, ..file });
    }
    let (format, _) = named_format(path, files.format)?;
    let opened = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(offset - 1))?;
        let mut reader = BufReader::with_capacity(SHARE_BUFFER_BYTES, files.tracked(file));
        let skipped = skip_line(&mut reader)?;
        Ok((reader, offset - 1 + skipped))
    });
    let (reader, offset) = opened.map_err(|error| CorpusError::of_reading(path, 0, &error))?;
    // The first line of a file is another one.
    Ok(OpenFile { path: path.to_owned(), format, reader, line: 1, offset, starts: None })
}

/// Reads on to the end of a line, and returns the number of bytes up to there.
#[cfg(not(target_arch = "wasm32"))]
fn skip_line(reader: &mut impl BufRead) -> std::io::Result<u64> {
    let mut skipped = 0;
    loop {
        let available = reader.fill_buf()?;
        let end = memchr::memchr(b'\n', available).map(|at| at + 1);
        let bytes = end.unwrap_or(available.len());
        let is_last = available.is_empty();
        reader.consume(bytes);
        skipped += bytes as u64;
        if end.is_some() || is_last {
            return Ok(skipped);
        }
    }
}

/// Opens a table in parquet that is no file on disk.
#[cfg(feature = "parquet")]
pub(super) fn open_parquet(
    name: &Path,
    table: impl Read + Seek + Send + 'static,
    files: &Files,
) -> Result<OpenFile, CorpusError> {
    let unreadable = |reason: String| CorpusError::Unreadable { path: name.to_owned(), reason };
    let lines = super::parquet::json_lines(table, files).map_err(unreadable)?;
    opened(name, Format::Jsonl, Box::new(lines), files, BUFFER_BYTES, None)
}

/// Returns the bytes of a text file without their compression; `None` for standard input and Parquet.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn plain_bytes(path: &Path) -> Result<Option<impl BufRead>, CorpusError> {
    let unreadable = |reason: String| CorpusError::Unreadable { path: path.to_owned(), reason };
    let (format, compression) = named_format(path, Format::Auto)?;
    if path.as_os_str() == STDIN || format == Format::Parquet {
        return Ok(None);
    }
    if let Some(reason) = recognize::unreadable_kind(path) {
        return Err(unreadable(reason));
    }
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let input = BufReader::with_capacity(BUFFER_BYTES, Box::new(file) as Box<dyn Read + Send>);
    Ok(Some(BufReader::with_capacity(BUFFER_BYTES, decompress(input, compression))))
}

/// Opens the bytes of a text. Its name tells whether they are compressed; those of standard input tell it themselves.
pub(super) fn open_input(
    path: &Path,
    input: Box<dyn Read + Send>,
    files: &Files,
) -> Result<OpenFile, CorpusError> {
    open_bytes(path, input, files, BUFFER_BYTES, None)
}

fn open_bytes(
    path: &Path,
    input: Box<dyn Read + Send>,
    files: &Files,
    buffer: usize,
    starts: Option<RowStarts>,
) -> Result<OpenFile, CorpusError> {
    let unreadable = |reason: String| CorpusError::Unreadable { path: path.to_owned(), reason };
    let (format, by_name) = named_format(path, files.format)?;
    let mut input = BufReader::with_capacity(buffer, files.tracked(input));
    let compression = if path.as_os_str() == STDIN {
        match input.fill_buf().map_err(|error| unreadable(error.to_string()))? {
            [0x1F, 0x8B, ..] => Compression::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    } else {
        by_name
    };
    let mut input = BufReader::new(decompress(input, compression));
    let first = input.fill_buf().map_err(|error| CorpusError::of_reading(path, 0, &error))?;
    if files.encoding != Encoding::Utf16 {
        recognize::check_contents(path, first)?;
    }
    if files.encoding.is_utf8() {
        return opened(path, format, Box::new(input), files, buffer, starts);
    }
    match Decoded::new(input, files.encoding).map_err(|error| CorpusError::of_reading(path, 0, &error))? {
        Ok(decoded) => opened(path, format, Box::new(decoded), files, buffer, starts),
        Err(found) => Err(CorpusError::WrongContents {
            path: path.to_owned(),
            found,
            fix: "name its encoding (--encoding; in a plan data.encoding), or convert it, for example with iconv -f UTF-16LE -t UTF-8",
        }),
    }
}

/// Returns the bytes of text or of JSON lines. Other formats become JSON lines.
fn opened(
    path: &Path,
    format: Format,
    reader: Box<dyn Read + Send>,
    files: &Files,
    buffer: usize,
    starts: Option<RowStarts>,
) -> Result<OpenFile, CorpusError> {
    let table = |reader, separator| {
        let reader = BufReader::with_capacity(buffer, reader);
        let table = Separated::open(reader, separator, files);
        let table = table.map_err(|error| CorpusError::of_reading(path, 0, &error))?;
        Ok(Box::new(JsonLines::new(table, starts.clone())) as Box<dyn Read + Send>)
    };
    if format == Format::Text && files.owners.is_some() {
        let reason =
            "plain text names no owners of its records; give JSON lines with a list of owners".to_owned();
        return Err(CorpusError::Unreadable { path: path.to_owned(), reason });
    }
    let (format, reader) = match format {
        Format::Csv => (Format::Jsonl, table(reader, Separator::Comma)?),
        Format::Tsv => (Format::Jsonl, table(reader, Separator::Tab)?),
        Format::Iob => {
            let sentences = Sentences::open(BufReader::with_capacity(buffer, reader), files);
            (Format::Jsonl, Box::new(JsonLines::new(sentences, starts.clone())) as Box<dyn Read + Send>)
        }
        Format::Json => {
            let elements = JsonArray::open(BufReader::with_capacity(buffer, reader), files);
            (Format::Json, Box::new(JsonLines::new(elements, starts.clone())) as Box<dyn Read + Send>)
        }
        Format::Parquet => {
            let reason = "a table in parquet cannot be read from a stream; name its file".to_owned();
            return Err(CorpusError::Unreadable { path: path.to_owned(), reason });
        }
        Format::Auto | Format::Text | Format::Jsonl => (format, reader),
    };
    let reader = BufReader::with_capacity(buffer, reader);
    Ok(OpenFile { path: path.to_owned(), format, reader, line: 0, offset: 0, starts })
}

/// The bytes of the file on disk.
type Input = BufReader<Box<dyn Read + Send>>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
}

fn decompress(input: Input, compression: Compression) -> Box<dyn Read + Send> {
    match compression {
        Compression::None => Box::new(input),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
        Compression::Zstd => Box::new(ZstdFrames::new(input)),
    }
}

/// Reads all frames of a zstd file; the decoder itself stops after the first.
struct ZstdFrames {
    input: Option<Input>,
    frame: Option<Box<ruzstd::decoding::StreamingDecoder<Input, ruzstd::decoding::FrameDecoder>>>,
}

impl ZstdFrames {
    fn new(input: Input) -> Self {
        Self { input: Some(input), frame: None }
    }
}

impl Read for ZstdFrames {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        use std::io::Error;
        loop {
            if let Some(frame) = &mut self.frame {
                let n = frame.read(out)?;
                if n > 0 || out.is_empty() {
                    return Ok(n);
                }
                self.input = self.frame.take().map(|frame| frame.into_inner());
            }
            let Some(mut input) = self.input.take() else { return Ok(0) };
            if input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame = ruzstd::decoding::StreamingDecoder::new(input)
                .map_err(|_| Error::other("it is no zstd data"))?;
            self.frame = Some(Box::new(frame));
        }
    }
}
