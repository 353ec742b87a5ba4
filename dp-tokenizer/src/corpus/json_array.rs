//! Reads the elements of a JSON array one at a time: the array may be larger than the memory.

use std::io::{BufRead, ErrorKind, Result};
#[cfg(not(target_arch = "wasm32"))]
use std::io::{Seek, SeekFrom};

use super::Files;
use super::lines::MAX_LINE_BYTES;
use super::rows::{RowFault, Rows, push_json_string};

/// The part of the array that may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The bracket that opens it.
    Start,
    /// The first element, or the bracket that closes the array.
    First,
    /// A comma, or the bracket that closes the array.
    Further,
    /// Nothing: the array has ended.
    End,
}

/// The elements of a file that is one array. Each is a line, without the line ends between its values.
pub(super) struct JsonArray<R> {
    input: R,
    text_field: String,
    next: Next,
    /// The line of the file, from 1.
    line: u64,
    /// The number of bytes read so far, and of those before the last element.
    offset: u64,
    start: u64,
}

impl<R: BufRead> JsonArray<R> {
    pub(super) fn open(input: R, files: &Files) -> Self {
        Self { input, text_field: files.text_field.clone(), next: Next::Start, line: 1, offset: 0, start: 0 }
    }

    fn fault(&self, reason: &str) -> std::io::Error {
        RowFault::error(self.line, reason)
    }

    fn consume(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.offset += bytes as u64;
    }

    /// Returns the bytes at hand; none at the end of the file.
    fn available(&mut self) -> Result<&[u8]> {
        loop {
            match self.input.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A second call, because the borrow of the first would last.
                Ok(_) => return self.input.fill_buf(),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the next byte that is not white space, which stays in the input.
    fn peek(&mut self) -> Result<Option<u8>> {
        let mut skipped = 0;
        loop {
            let available = self.available()?;
            let blanks = available.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
            let found = available.get(blanks).copied();
            let is_end = available.is_empty();
            self.line += memchr::memchr_iter(b'\n', &available[..blanks]).count() as u64;
            self.consume(blanks);
            skipped += blanks;
            if found.is_some() || is_end {
                return Ok(found);
            }
            // A compressed file of a few megabytes can hold white space for hours.
            if skipped > MAX_LINE_BYTES {
                return Err(
                    self.fault(&format!("more than {MAX_LINE_BYTES} bytes of white space; remove them"))
                );
            }
        }
    }

    fn open_array(&mut self) -> Result<()> {
        if self.available()?.starts_with(b"\xEF\xBB\xBF") {
            self.consume(3);
        }
        match self.peek()? {
            Some(b'[') => self.consume(1),
            None => return Ok(()),
            Some(_) => {
                return Err(self.fault(
                    "not a JSON array; for an object a line, declare jsonl; for an array inside an object, take it out, \
                     for example with jq -c '.records'",
                ));
            }
        }
        self.next = Next::First;
        Ok(())
    }

    /// Moves to the next element. Returns false after the last one.
    fn advance(&mut self) -> Result<bool> {
        if self.next == Next::Start {
            self.open_array()?;
        }
        let found = self.peek()?;
        match (self.next, found) {
            (Next::Start | Next::End, None) => return Ok(false),
            (Next::First | Next::Further, Some(b']')) => {
                self.consume(1);
                self.next = Next::End;
                return self.advance();
            }
            (Next::First, Some(_)) => {}
            (Next::Further, Some(b',')) => {
                self.consume(1);
                self.peek()?;
            }
            (Next::Further, Some(_)) => return Err(self.fault("no comma between two elements; add it")),
            (_, None) => return Err(self.fault("the array is cut off; close it with ]")),
            (_, Some(_)) => return Err(self.fault("text after the array; a file is one array")),
        }
        self.next = Next::Further;
        Ok(true)
    }

    /// Appends the element that comes next, which is an object or a string.
    fn copy_element(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let (mut depth, mut in_string, mut is_escaped) = (0_u64, false, false);
        loop {
            let line = self.line;
            let available = self.available()?;
            if available.is_empty() {
                return Err(self.fault("the array is cut off in an element; fetch the file again"));
            }
            let (mut taken, mut lines, mut ended) = (0, 0, false);
            for &byte in available {
                taken += 1;
                if byte == b'\n' && in_string {
                    return Err(RowFault::error(line + lines, "a line end inside a string; write it as \\n"));
                }
                lines += u64::from(byte == b'\n');
                out.push(if byte == b'\n' { b' ' } else { byte });
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' if in_string => is_escaped = true,
                    b'"' => in_string = !in_string,
                    b'{' | b'[' if !in_string => depth += 1,
                    b'}' | b']' if !in_string => depth -= 1,
                    _ => {}
                }
                ended = depth == 0 && !in_string;
                if ended {
                    break;
                }
            }
            self.consume(taken);
            self.line += lines;
            if ended {
                return Ok(());
            }
            if out.len() - start > MAX_LINE_BYTES {
                return Err(self.fault(&format!(
                    "an element of more than {MAX_LINE_BYTES} bytes; break the text into shorter ones"
                )));
            }
        }
    }

    /// Appends the element that comes next, as a JSON line.
    fn copy_row(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let first = self.peek()?;
        self.start = self.offset;
        match first {
            Some(b'{') => self.copy_element(out)?,
            Some(b'"') => {
                out.push(b'{');
                push_json_string(out, self.text_field.as_bytes());
                out.push(b':');
                self.copy_element(out)?;
                out.push(b'}');
            }
            _ => {
                return Err(self.fault("an element that is neither an object nor a string; allowed: these"));
            }
        }
        out.push(b'\n');
        Ok(())
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl<R: BufRead + Seek> JsonArray<R> {
    /// Appends the element that begins after `offset` bytes.
    pub(super) fn element_at(&mut self, offset: u64, out: &mut Vec<u8>) -> Result<bool> {
        self.input.seek(SeekFrom::Start(offset))?;
        self.copy_row(out).map(|()| true)
    }
}

impl<R: BufRead> Rows for JsonArray<R> {
    fn next_row(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        if !self.advance()? {
            return Ok(false);
        }
        self.copy_row(out).map(|()| true)
    }

    fn start(&self) -> u64 {
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CorpusError, Files, Record, Source, open};

    fn read(text: &str) -> Result<Vec<Record>, CorpusError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, text).unwrap();
        open(&Source::Files(Files::of([path])))?.collect()
    }

    /// Oracle: Python's `json.loads` gives the same texts.
    #[test]
    fn elements_are_records_whatever_stands_between_them() {
        let text = "\u{feff} [\n{\"text\": \"a \\\"}]\\n\", \"n\":\n{\"b\": [1, \"[\"]}} ,{\"text\":\"é\"}\r\n,\n\"plain \\u00e9\"\n]\n ";
        let want = ["a \"}]\n", "é", "plain é"].map(Record::of_text);
        assert_eq!(read(text).unwrap(), want);
        let many = format!("[{}]", vec!["{\"text\":\"x\"}"; 200_000].join(","));
        assert_eq!(read(&many).unwrap().len(), 200_000);
    }

    #[test]
    fn what_is_no_array_of_records_is_refused_by_its_place_and_not_quoted() {
        for (text, want) in [
            ("[]", "no record found"),
            ("", "no record found"),
            ("{\"text\":\"Secret\"}\n", "line 1: not a JSON array"),
            ("[\n{\"text\":\"a\"}\n{\"text\":\"Secret\"}]", "line 3: no comma"),
            ("[{\"text\":\"a\"},]", "line 1: an element that is neither"),
            ("[\"Secret\",\n5]", "line 2: an element that is neither"),
            ("[[\"Secret\"]]", "neither an object nor a string"),
            ("[{\"text\":\"a\"}", "the array is cut off"),
            ("[{\"text\":\"Secret", "cut off in an element"),
            ("[{\"text\":\"Secret\n\"}]", "line 1: a line end inside a string"),
            ("[\"a\"]\nSecret", "line 2: text after the array"),
            ("[\"a\", {\"body\":\"Secret\"}]", "element 2: no field \"text\""),
            ("[\"a\", {\"text\":\"Secret\"]]", "element 2: not JSON"),
            ("[\"a\", {\"text\":7}]", "element 2: the text is a number"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(want) && !message.contains("Secret"), "{text}: {message}");
        }
    }
}
