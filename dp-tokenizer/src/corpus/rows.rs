//! Turns rows of other formats into JSON lines, for all code that reads lines.

use std::io::Read;

/// The rows of a file.
pub(super) trait Rows {
    /// Appends the next row as a JSON line, and a blank line for each further line that it takes in the file, so that
    /// lines keep their numbers. Returns false at the end.
    fn next_row(&mut self, out: &mut Vec<u8>) -> std::io::Result<bool>;
}

/// The JSON lines of rows.
pub(super) struct JsonLines<R> {
    rows: R,
    /// The row that is being handed out, and the number of its bytes that were taken.
    line: Vec<u8>,
    taken: usize,
}

impl<R: Rows> JsonLines<R> {
    pub(super) fn new(rows: R) -> Self {
        Self { rows, line: Vec::new(), taken: 0 }
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
