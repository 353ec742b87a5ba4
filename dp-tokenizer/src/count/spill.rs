//! Buffers that move from memory to a temporary file when memory runs out. No other process can open the file.

#[cfg(not(target_arch = "wasm32"))]
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::unit::UnitError;

/// The number of bytes written at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// A temporary file for data that exceeds the memory. It contains private text.
///
/// The file has no name and mode 0600. The system frees it when the process ends, for whatever reason.
#[derive(Debug)]
pub(super) struct SpillFile {
    folder: PathBuf,
    file: Mutex<Option<(File, u64)>>,
    /// Files of other processes, which are only read. Each is opened for every read: there may be more than a process
    /// can hold open.
    others: Vec<PathBuf>,
}

/// The file of a chunk: the temporary one, or one of the files of other processes by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "a page reads no files of other processes"))]
pub(super) enum InFile {
    Temporary,
    Other(usize),
}

impl SpillFile {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder: folder.unwrap_or_else(default_folder), file: Mutex::new(None), others: Vec::new() }
    }

    /// Returns a temporary file beside files of other processes.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn beside(folder: Option<PathBuf>, others: Vec<PathBuf>) -> Self {
        Self { others, ..Self::new(folder) }
    }

    /// Appends bytes and returns their offset.
    fn store(&self, bytes: &[u8]) -> Result<u64, UnitError> {
        let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, end) = match &mut *guard {
            Some(open) => open,
            none => none.insert((unnamed_file(&self.folder).map_err(|e| self.failed(&e))?, 0)),
        };
        let at = *end;
        file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(bytes)).map_err(|e| self.failed(&e))?;
        *end += bytes.len() as u64;
        Ok(at)
    }

    fn load(&self, file: InFile, at: u64, bytes: &mut [u8]) -> Result<(), UnitError> {
        if let InFile::Other(index) = file {
            let path = self.others.get(index).ok_or_else(damaged)?;
            let read = File::open(path).and_then(|mut file| {
                file.seek(SeekFrom::Start(at))?;
                file.read_exact(bytes)
            });
            return read.map_err(|error| UnitError::Run { path: path.clone(), reason: error.to_string() });
        }
        let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((file, _)) = &mut *guard else { return Err(damaged()) };
        file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(bytes)).map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &std::io::Error) -> UnitError {
        UnitError::Spill { folder: self.folder.clone(), reason: error.to_string() }
    }

    #[cfg(test)]
    pub(super) fn is_used(&self) -> bool {
        self.file.lock().unwrap().is_some()
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn default_folder() -> PathBuf {
    std::env::temp_dir()
}

#[cfg(target_arch = "wasm32")]
fn default_folder() -> PathBuf {
    PathBuf::new()
}

#[cfg(not(target_arch = "wasm32"))]
fn unnamed_file(folder: &std::path::Path) -> std::io::Result<File> {
    let file = tempfile::tempfile_in(folder)?;
    durable::for_the_owner_alone(&file)?;
    Ok(file)
}

#[cfg(target_arch = "wasm32")]
fn unnamed_file(_: &std::path::Path) -> std::io::Result<File> {
    Err(std::io::Error::other("a page has no temporary files"))
}

/// Returns the error for data that differ from those written.
pub(super) fn damaged() -> UnitError {
    UnitError::Spill { folder: PathBuf::new(), reason: "data read back are damaged".to_owned() }
}

/// A list of bytes that is written once from front to back, and then read any number of times.
#[derive(Debug)]
pub(super) struct SpillBuffer {
    chunks: Vec<Chunk>,
    open: Vec<u8>,
    chunk_bytes: usize,
    held: usize,
    length: u64,
}

#[derive(Debug)]
enum Chunk {
    Held(Vec<u8>),
    Stored { file: InFile, at: u64, length: u64 },
}

#[cfg(not(target_arch = "wasm32"))]
impl Chunk {
    fn length(&self) -> u64 {
        match self {
            Self::Held(bytes) => bytes.len() as u64,
            Self::Stored { length, .. } => *length,
        }
    }

    /// Returns the first `length` bytes, and the rest if the chunk is longer.
    fn split(self, length: u64) -> (Self, Option<Self>) {
        if self.length() <= length {
            return (self, None);
        }
        match self {
            Self::Held(mut bytes) => {
                let rest = bytes.split_off(length as usize);
                (Self::Held(bytes), Some(Self::Held(rest)))
            }
            Self::Stored { file, at, length: whole } => {
                let rest = Self::Stored { file, at: at + length, length: whole - length };
                (Self::Stored { file, at, length }, Some(rest))
            }
        }
    }
}

impl Default for SpillBuffer {
    fn default() -> Self {
        Self::of_chunks(CHUNK_BYTES)
    }
}

impl SpillBuffer {
    /// Returns a buffer with chunks of this many bytes.
    pub(super) fn of_chunks(chunk_bytes: usize) -> Self {
        let chunk_bytes = chunk_bytes.clamp(1 << 10, CHUNK_BYTES);
        Self { chunks: Vec::new(), open: Vec::new(), chunk_bytes, held: 0, length: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.open.len() + bytes.len() > self.chunk_bytes && !self.open.is_empty() {
            self.held += self.open.len();
            self.chunks.push(Chunk::Held(std::mem::take(&mut self.open)));
        }
        if self.open.capacity() == 0 && !self.chunks.is_empty() {
            self.open.reserve_exact(self.chunk_bytes.max(bytes.len()));
        }
        self.open.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
    }

    /// Returns the number of bytes in memory.
    pub(super) fn held(&self) -> usize {
        self.held + self.open.capacity()
    }

    /// Returns the number of bytes in memory and on disk.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Moves the data in memory to disk.
    pub(super) fn store(&mut self, spill: &SpillFile) -> Result<(), UnitError> {
        if !self.open.is_empty() {
            self.chunks.push(Chunk::Held(std::mem::take(&mut self.open)));
        }
        for chunk in &mut self.chunks {
            if let Chunk::Held(bytes) = chunk {
                let (file, length) = (InFile::Temporary, bytes.len() as u64);
                *chunk = Chunk::Stored { file, at: spill.store(bytes)?, length };
            }
        }
        self.held = 0;
        Ok(())
    }

    /// Returns a reader from the front, with at most `buffer` bytes of memory for data on disk.
    pub(super) fn reader<'a>(&'a self, spill: &'a SpillFile, buffer: usize) -> SpillReader<'a> {
        let buffer_bytes = buffer.clamp(1 << 10, CHUNK_BYTES);
        SpillReader { buffer: self, spill, chunk: 0, offset: 0, loaded: Vec::new(), at: 0, buffer_bytes }
    }
}

/// Data of other processes.
#[cfg(not(target_arch = "wasm32"))]
impl SpillBuffer {
    /// Returns a buffer over the bytes `part` of the other process's file number `index`.
    pub(super) fn of_file(index: usize, part: std::ops::Range<u64>) -> Self {
        let length = part.end - part.start;
        let stored = Chunk::Stored { file: InFile::Other(index), at: part.start, length };
        Self { chunks: vec![stored], length, ..Self::default() }
    }

    /// Divides the data into parts of these lengths, which make up all of it.
    pub(super) fn divide(self, lengths: impl IntoIterator<Item = u64>) -> Result<Vec<Self>, UnitError> {
        let mut chunks: VecDeque<Chunk> = self
            .chunks
            .into_iter()
            .chain([Chunk::Held(self.open)])
            .filter(|chunk| chunk.length() > 0)
            .collect();
        let mut next = |length: u64| -> Result<Self, UnitError> {
            let mut part = Self::of_chunks(self.chunk_bytes);
            while part.length < length {
                let (chunk, rest) = chunks.pop_front().ok_or_else(damaged)?.split(length - part.length);
                if let Some(rest) = rest {
                    chunks.push_front(rest);
                }
                part.add(chunk);
            }
            Ok(part)
        };
        let parts = lengths.into_iter().map(&mut next).collect::<Result<Vec<Self>, UnitError>>()?;
        if chunks.is_empty() { Ok(parts) } else { Err(damaged()) }
    }

    /// Returns a buffer over `before` and then this data.
    pub(super) fn after(self, before: Vec<u8>) -> Self {
        let mut all = Self::of_chunks(self.chunk_bytes);
        [Chunk::Held(before)].into_iter().chain(self.chunks).for_each(|chunk| all.add(chunk));
        all.push(&self.open);
        all
    }

    fn add(&mut self, chunk: Chunk) {
        self.length += chunk.length();
        if let Chunk::Held(bytes) = &chunk {
            self.held += bytes.len();
        }
        self.chunks.push(chunk);
    }
}

/// Reads a buffer from front to back.
pub(super) struct SpillReader<'a> {
    buffer: &'a SpillBuffer,
    spill: &'a SpillFile,
    /// The chunk, and in `offset` the place in it, of the data to load next; for a chunk in memory, of the data to read
    /// next.
    chunk: usize,
    offset: usize,
    loaded: Vec<u8>,
    at: usize,
    buffer_bytes: usize,
}

impl SpillReader<'_> {
    /// Returns the data available at once; empty at the end.
    fn available(&mut self) -> Result<&[u8], UnitError> {
        while self.at == self.loaded.len() {
            match self.buffer.chunks.get(self.chunk) {
                Some(Chunk::Held(bytes)) if self.offset < bytes.len() => return Ok(&bytes[self.offset..]),
                Some(&Chunk::Stored { file, at, length }) if (self.offset as u64) < length => {
                    let left = length - self.offset as u64;
                    let size = self.buffer_bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.loaded.resize(size, 0);
                    self.spill.load(file, at + self.offset as u64, &mut self.loaded)?;
                    self.offset += size;
                    self.at = 0;
                }
                Some(_) => (self.chunk, self.offset) = (self.chunk + 1, 0),
                None => return Ok(self.buffer.open.get(self.offset..).unwrap_or(&[])),
            }
        }
        Ok(&self.loaded[self.at..])
    }

    fn consume(&mut self, count: usize) {
        if self.at < self.loaded.len() { self.at += count } else { self.offset += count }
    }

    /// Returns the next byte; `None` at the end.
    fn byte(&mut self) -> Result<Option<u8>, UnitError> {
        let byte = self.available()?.first().copied();
        self.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    pub(super) fn is_at_end(&mut self) -> Result<bool, UnitError> {
        Ok(self.available()?.is_empty())
    }

    /// Hands all data to `take`, piece by piece.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn each_piece(
        mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), UnitError>,
    ) -> Result<(), UnitError> {
        loop {
            let available = self.available()?;
            if available.is_empty() {
                return Ok(());
            }
            take(available)?;
            let count = available.len();
            self.consume(count);
        }
    }

    /// Reads exactly as many bytes as `bytes` holds.
    pub(super) fn fill(&mut self, mut bytes: &mut [u8]) -> Result<(), UnitError> {
        while !bytes.is_empty() {
            let available = self.available()?;
            if available.is_empty() {
                return Err(damaged());
            }
            let count = available.len().min(bytes.len());
            bytes[..count].copy_from_slice(&available[..count]);
            self.consume(count);
            bytes = &mut bytes[count..];
        }
        Ok(())
    }

    /// Returns the next number; `None` at the end.
    pub(super) fn number(&mut self) -> Result<Option<u64>, UnitError> {
        // Nearly always the whole number is loaded.
        if let Some((value, length)) = read_number(self.available()?) {
            self.consume(length);
            return Ok(Some(value));
        }
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let Some(byte) = self.byte()? else { return if shift == 0 { Ok(None) } else { Err(damaged()) } };
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(Some(value));
            }
        }
        Err(damaged())
    }

    /// Returns the next number, or an error at the end.
    pub(super) fn expect(&mut self) -> Result<u64, UnitError> {
        self.number()?.ok_or_else(damaged)
    }
}

fn read_number(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().take(9).enumerate() {
        value |= u64::from(byte & 0x7F) << (7 * at);
        if byte < 0x80 {
            return Some((value, at + 1));
        }
    }
    None
}

/// Appends a number in LEB128: seven bits per byte, low bits first.
#[inline]
pub(super) fn push_number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_written_is_read_back_from_memory_and_from_disk(
            numbers in prop::collection::vec((any::<u64>(), 0_u32..64), 0..2000),
            stored_after in 0_usize..2000,
            read_bytes in 1_usize..5000,
        ) {
            let numbers: Vec<u64> = numbers.into_iter().map(|(n, shift)| n >> shift).collect();
            let spill = SpillFile::new(None);
            let mut buffer = SpillBuffer::of_chunks(1 << 10);
            let mut bytes = Vec::new();
            for (place, &n) in numbers.iter().enumerate() {
                bytes.clear();
                push_number(&mut bytes, n);
                buffer.push(&bytes);
                if place == stored_after {
                    buffer.store(&spill).unwrap();
                    prop_assert!(buffer.held() == 0);
                }
            }
            for _ in 0..2 {
                let mut reader = buffer.reader(&spill, read_bytes);
                for &n in &numbers {
                    prop_assert_eq!(reader.expect().unwrap(), n);
                }
                prop_assert_eq!(reader.number().unwrap(), None);
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_file_has_no_name_and_is_open_to_its_owner_alone() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let spill = SpillFile::new(Some(folder.path().to_owned()));
        spill.store(b"private").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let guard = spill.file.lock().unwrap();
        let metadata = guard.as_ref().unwrap().0.metadata().unwrap();
        assert_eq!((metadata.mode() & 0o777, metadata.nlink()), (0o600, 0));
    }

    #[test]
    fn a_folder_that_is_not_there_is_refused_by_name() {
        let spill = SpillFile::new(Some(PathBuf::from("no-such-folder")));
        let error = spill.store(b"x").unwrap_err().to_string();
        assert!(error.contains("no-such-folder"), "{error}");
    }
}
