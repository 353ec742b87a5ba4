//! Turns rows of other formats into JSON lines, for all code that reads lines.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

/// The rows of a file.
pub(super) trait Rows {
    /// Appends the next row as a JSON line, and a blank line for each further line that it takes in the file, so that
    /// lines keep their numbers. Returns false at the end.
    fn next_row(&mut self, out: &mut Vec<u8>) -> std::io::Result<bool>;

    /// Returns the number of bytes before the last row; in a folder, the number of texts before it.
    fn start(&self) -> u64;
}

/// Where rows begin in their file, for the code that reads them as JSON lines.
#[derive(Clone, Debug, Default)]
pub(super) struct RowStarts(Arc<Mutex<VecDeque<RowStart>>>);

#[derive(Debug)]
struct RowStart {
    /// The number of bytes of all JSON lines up to the end of the row.
    end: u64,
    /// See [`Rows::start`].
    start: u64,
}

impl RowStarts {
    fn push(&self, row: RowStart) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(row);
    }

    /// Returns the start of the row that is the JSON line after `offset` bytes of JSON lines, and forgets the rows before it.
    pub(super) fn of_line(&self, offset: u64) -> u64 {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while rows.front().is_some_and(|row| row.end <= offset) {
            rows.pop_front();
        }
        rows.front().map_or(0, |row| row.start)
    }
}

/// The JSON lines of rows.
pub(super) struct JsonLines<R> {
    rows: R,
    /// The row that is being handed out, and the number of its bytes that were taken.
    line: Vec<u8>,
    taken: usize,
    /// The number of bytes of all rows so far.
    made: u64,
    starts: Option<RowStarts>,
}

impl<R: Rows> JsonLines<R> {
    pub(super) fn new(rows: R, starts: Option<RowStarts>) -> Self {
        Self { rows, line: Vec::new(), taken: 0, made: 0, starts }
    }
}

impl<R: Rows> Read for JsonLines<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.taken == self.line.len() {
            self.line.clear();
            self.taken = 0;
            if !self.rows.next_row(&mut self.line)? {
                return Ok(0);
            }
            self.made += self.line.len() as u64;
            if let Some(starts) = &self.starts {
                starts.push(RowStart { end: self.made, start: self.rows.start() });
            }
        }
        let count = out.len().min(self.line.len() - self.taken);
        out[..count].copy_from_slice(&self.line[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

/// A row that is not as announced. The reason does not quote it.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(super) struct RowFault {
    /// The line of the file, from 1.
    pub(super) line: u64,
    pub(super) reason: String,
}

impl RowFault {
    pub(super) fn error(line: u64, reason: impl Into<String>) -> std::io::Error {
        std::io::Error::other(Self { line, reason: reason.into() })
    }
}

/// Appends a JSON string. Bytes that are not UTF-8 stay as they are: the code that reads the line replaces or refuses
/// them.
pub(super) fn push_json_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            0..0x20 => out.extend(format!("\\u{byte:04x}").bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
