//! A corpus in blocks of whole lines, which threads process in parallel.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use memchr::{memchr, memchr_iter, memrchr};

#[cfg(not(target_arch = "wasm32"))]
use super::ShareRecords;
use super::files::{MAX_BLANK_LINES, OpenFile, check_files, open_file, parse_line};
use super::{CorpusError, Files, Format, MAX_LINE_BYTES, Record, Source, clinical};

/// The length of a block in bytes, unless one line is longer.
const BLOCK_BYTES: usize = 256 << 10;
/// The most records in a block that is no lines.
const BLOCK_RECORDS: usize = 512;

/// Consecutive records.
pub(crate) struct Block {
    /// The number of the block, counted from 0 over the corpus.
    pub(crate) number: u64,
    content: Content,
}

enum Content {
    Lines { bytes: Vec<u8>, first_line: u64, path: Arc<PathBuf>, format: Format, files: Arc<Files> },
    Records(Vec<Record>),
}

/// Statistics of a processed block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) records: u64,
    /// The number of lines in which invalid UTF-8 was replaced. Private if the corpus is.
    pub(crate) replaced_lines: u64,
}

impl Block {
    /// Calls `take` with the records in order.
    pub(crate) fn each_record<E: From<CorpusError>>(
        &self,
        mut take: impl FnMut(Record) -> Result<(), E>,
    ) -> Result<Taken, E> {
        let mut taken = Taken::default();
        match &self.content {
            Content::Records(records) => {
                for record in records {
                    taken.records += 1;
                    take(record.clone())?;
                }
            }
            Content::Lines { bytes, first_line, path, format, files } => {
                let mut rest = bytes.as_slice();
                let mut line = *first_line;
                while !rest.is_empty() {
                    let end = memchr(b'\n', rest);
                    let bytes = &rest[..end.unwrap_or(rest.len())];
                    let bytes = bytes.strip_suffix(b"\r").filter(|_| end.is_some()).unwrap_or(bytes);
                    let parsed = parse_line(bytes, line == 1, *format, files);
                    let (record, replaced) = parsed.map_err(|fault| fault.at(path, *format, line))?;
                    taken.replaced_lines += u64::from(replaced);
                    if let Some(record) = record {
                        taken.records += 1;
                        take(record)?;
                    }
                    rest = end.map_or(&[], |at| &rest[at + 1..]);
                    line += 1;
                }
            }
        }
        Ok(taken)
    }
}

/// The blocks of a share of the files in order.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) struct ShareBlocks<'a> {
    /// `None` after the last record of the share.
    records: Option<ShareRecords<'a>>,
    /// The error that follows the last block.
    error: Option<CorpusError>,
    number: u64,
}

#[cfg(not(target_arch = "wasm32"))]
impl<'a> ShareBlocks<'a> {
    pub(crate) fn new(records: ShareRecords<'a>) -> Self {
        Self { records: Some(records), error: None, number: 0 }
    }

    fn record(&mut self) -> Option<Record> {
        let records = self.records.as_mut()?;
        match records.next().filter(|_| records.is_in_share()) {
            Some(Ok((_, record))) => return Some(record),
            Some(Err(error)) => self.error = Some(error),
            None => {}
        }
        self.records = None;
        None
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Iterator for ShareBlocks<'_> {
    type Item = Result<Block, CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        while records.len() < BLOCK_RECORDS && bytes < BLOCK_BYTES {
            let Some(record) = self.record() else { break };
            bytes += record.text.len();
            records.push(record);
        }
        if records.is_empty() {
            return self.error.take().map(Err);
        }
        self.number += 1;
        Some(Ok(Block { number: self.number - 1, content: Content::Records(records) }))
    }
}

/// The blocks of a corpus in order. Their bounds depend on the corpus alone.
pub(crate) struct Blocks {
    inner: Inner,
    number: u64,
}

enum Inner {
    Files(Box<FileBlocks>),
    Notes(Box<clinical::Notes>),
    Done,
}

struct FileBlocks {
    files: Arc<Files>,
    next_file: usize,
    current: Option<(OpenFile, Arc<PathBuf>)>,
    /// The beginning of a line whose end has not been read yet.
    begun: Vec<u8>,
    /// The number of lines of blocks without text since the last block with text.
    blank_lines: u64,
}

impl Blocks {
    pub(crate) fn open(source: &Source) -> Result<Self, CorpusError> {
        let inner = match source {
            Source::Files(files) => {
                check_files(files)?;
                let files = Arc::new(files.clone());
                Inner::Files(Box::new(FileBlocks {
                    files,
                    next_file: 0,
                    current: None,
                    begun: Vec::new(),
                    blank_lines: 0,
                }))
            }
            Source::Embedded { records, seed } => {
                Inner::Notes(Box::new(clinical::Notes::new(*records, *seed)))
            }
        };
        Ok(Self { inner, number: 0 })
    }
}

impl Iterator for Blocks {
    type Item = Result<Block, CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        let content = match &mut self.inner {
            Inner::Files(files) => files.advance().transpose(),
            Inner::Notes(notes) => {
                let records: Vec<Record> = notes.by_ref().take(BLOCK_RECORDS).collect();
                (!records.is_empty()).then_some(Ok(Content::Records(records)))
            }
            Inner::Done => None,
        };
        if !matches!(content, Some(Ok(_))) {
            self.inner = Inner::Done;
        }
        self.number += 1;
        content.map(|content| content.map(|content| Block { number: self.number - 1, content }))
    }
}

impl FileBlocks {
    fn advance(&mut self) -> Result<Option<Content>, CorpusError> {
        loop {
            let Some((file, path)) = &mut self.current else {
                let Some(path) = self.files.paths.get(self.next_file) else { return Ok(None) };
                let mut file = open_file(path, &self.files)?;
                file.line = 1;
                self.current = Some((file, Arc::new(path.clone())));
                self.next_file += 1;
                continue;
            };
            let bytes = read_block(file, &mut self.begun)?;
            if bytes.is_empty() {
                self.current = None;
                continue;
            }
            if self.files.progress.is_stopped() {
                return Err(CorpusError::Stopped);
            }
            let (first_line, lines) = (file.line, memchr_iter(b'\n', &bytes).count() as u64);
            file.line += lines;
            self.blank_lines =
                if bytes.iter().all(u8::is_ascii_whitespace) { self.blank_lines + lines } else { 0 };
            if self.blank_lines > MAX_BLANK_LINES {
                let (path, line) = (file.path.clone(), file.line);
                return Err(CorpusError::TooManyBlankLines { path, line, most: MAX_BLANK_LINES });
            }
            let (path, format, files) = (path.clone(), file.format, self.files.clone());
            return Ok(Some(Content::Lines { bytes, first_line, path, format, files }));
        }
    }
}

/// Returns the next whole lines, or nothing at the end of the file.
fn read_block(file: &mut OpenFile, begun: &mut Vec<u8>) -> Result<Vec<u8>, CorpusError> {
    let mut bytes = Vec::with_capacity(begun.len() + BLOCK_BYTES);
    bytes.append(begun);
    loop {
        let before = bytes.len();
        let read =
            file.reader.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut bytes).map_err(|error| {
                // This is the number of the last complete line, as when lines are read one by one.
                let whole = memchr_iter(b'\n', &bytes).count() as u64;
                CorpusError::of_reading(&file.path, file.line - 1 + whole, &error)
            })?;
        let last_end = memrchr(b'\n', &bytes[before..]).map(|at| before + at + 1);
        let first_line = match last_end {
            Some(_) => memchr(b'\n', &bytes).unwrap_or(bytes.len()),
            None => bytes.len(),
        };
        if first_line > MAX_LINE_BYTES {
            return Err(CorpusError::LineTooLong {
                path: file.path.clone(),
                line: file.line,
                cap: MAX_LINE_BYTES,
            });
        }
        if let Some(end) = last_end {
            begun.extend_from_slice(&bytes[end..]);
            bytes.truncate(end);
            return Ok(bytes);
        }
        if read == 0 {
            return Ok(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::open;
    use super::*;

    #[test]
    fn blocks_hold_the_records_that_lines_hold() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        // This text has lines of many lengths around the block size. The last one has no line end.
        let mut text = String::from("\u{FEFF}first\r\n\n");
        for length in [1, 300, BLOCK_BYTES - 1, BLOCK_BYTES, 3 * BLOCK_BYTES + 1, 7, 0, 100_000, 200_000] {
            text.push_str(&"é".repeat(length / 2));
            text.push_str("x\r\n");
        }
        text.push_str("last\r");
        std::fs::write(&path, &text).unwrap();
        for source in [
            Source::files([path.clone()]),
            Source::files([path.clone(), path]),
            Source::Embedded { records: 1300, seed: 3 },
        ] {
            let want: Vec<Record> = open(&source).unwrap().map(Result::unwrap).collect();
            let mut got = Vec::new();
            let mut records = 0;
            for (place, block) in Blocks::open(&source).unwrap().enumerate() {
                let block = block.unwrap();
                assert_eq!(block.number, place as u64);
                let taken = block.each_record(|record| -> Result<(), CorpusError> {
                    got.push(record);
                    Ok(())
                });
                records += taken.unwrap().records;
            }
            assert!(got == want && records == want.len() as u64);
        }
    }
}
