//! Records of a text that arrives in slices instead of from a file.

use std::cell::Cell;
use std::io::BufRead;
use std::path::PathBuf;
use std::rc::Rc;

use crate::corpus::lines::{Line, MAX_LINE_BYTES, read_line};
use crate::corpus::{CorpusError, NotText, Record, json_line};

/// The name of the text in errors.
const NAME: &str = "the text";

/// Records, line by line.
pub(super) struct Lines<R> {
    reader: R,
    text_field: Option<String>,
    user_field: Option<String>,
    buffer: Vec<u8>,
    line: u64,
    failed: bool,
    seen: Seen,
}

/// Findings during reading; can be read while the lines are being read.
#[derive(Clone, Default)]
pub(super) struct Seen {
    binary: Rc<Cell<bool>>,
    replaced: Rc<Cell<u64>>,
}

impl Seen {
    /// Whether the text contains a zero byte.
    pub(super) fn binary(&self) -> bool {
        self.binary.get()
    }

    /// Returns the number of lines in which invalid UTF-8 was replaced.
    pub(super) fn replaced_lines(&self) -> u64 {
        self.replaced.get()
    }
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R, text_field: Option<String>, user_field: Option<String>) -> Self {
        let (buffer, seen) = (Vec::new(), Seen::default());
        Self { reader, text_field, user_field, buffer, line: 0, failed: false, seen }
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.clone()
    }

    fn advance(&mut self) -> Result<Option<Record>, CorpusError> {
        loop {
            let path = PathBuf::from(NAME);
            let read = read_line(&mut self.reader, &mut self.buffer, MAX_LINE_BYTES)
                .map_err(|error| CorpusError::of_reading(&path, self.line, &error))?;
            self.line += 1;
            match read {
                Line::End => return Ok(None),
                Line::TooLong => {
                    return Err(CorpusError::LineTooLong { path, line: self.line, cap: MAX_LINE_BYTES });
                }
                Line::Read(_) => {}
            }
            if self.buffer.contains(&0) {
                self.seen.binary.set(true);
                return Err(CorpusError::NotText { path, line: self.line, fault: NotText::Utf8 });
            }
            let text = match std::str::from_utf8(&self.buffer) {
                Ok(text) => text.to_owned(),
                Err(_) => {
                    self.seen.replaced.set(self.seen.replaced.get() + 1);
                    String::from_utf8_lossy(&self.buffer).into_owned()
                }
            };
            if text.trim().is_empty() {
                continue;
            }
            let Some(field) = &self.text_field else { return Ok(Some(Record::of_text(text))) };
            let names = json_line::FieldNames::of_text(field, self.user_field.as_deref());
            let record = json_line::parse(&text, names);
            return record.map(Some).map_err(|reason| CorpusError::BadJson { path, line: self.line, reason });
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Record, CorpusError>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.advance().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}
