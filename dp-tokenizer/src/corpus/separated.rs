//! Tables with a separator: CSV with quotation marks (RFC 4180), and TSV without.
//!
//! Spreadsheets write CSV with the list separator of their language. A header line without commas, but with one kind of the other
//! separators, tells which.

use std::borrow::Cow;
use std::io::{BufRead, Result};
#[cfg(not(target_arch = "wasm32"))]
use std::io::{Seek, SeekFrom};

use super::Files;
use super::lines::{Line, MAX_LINE_BYTES, read_line};
use super::rows::{RowFault, Rows, push_json_string};
use crate::survey::usual_names::{TEXTS, USERS, last_name};

/// The character between fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// A comma, or the separator that the header line has in its place. A field in quotation marks may hold commas,
    /// line ends and doubled quotation marks.
    Comma,
    /// A tab. Quotation marks are text.
    Tab,
}

impl Separator {
    fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Tab => b'\t',
        }
    }

    /// Returns the byte between the names of a header line.
    fn byte_of(self, header: &[u8]) -> u8 {
        let mut is_quoted = false;
        let outside = |byte: &&u8| {
            is_quoted ^= **byte == b'"';
            !is_quoted
        };
        let found: Vec<u8> =
            header.iter().filter(outside).copied().filter(|byte| SEPARATORS.contains(byte)).collect();
        match found.first() {
            Some(first) if self == Self::Comma && found.iter().all(|byte| byte == first) => *first,
            _ => self.byte(),
        }
    }
}

/// The most columns that a message lists.
const MOST_LISTED: usize = 50;

/// The separators of CSV files.
const SEPARATORS: [u8; 4] = *b",;\t|";

/// Lists the columns for a message, if they are given, or the first line has a usual name of a field: else it may be of private cells.
fn listed(names: &[Vec<u8>], are_given: bool) -> String {
    let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
    let is_usual = |name: &str| [TEXTS, USERS].concat().contains(&last_name(name).as_str());
    if !are_given && !names.iter().any(|name| is_usual(name)) {
        return String::new();
    }
    let shown: Vec<&str> = names.iter().take(MOST_LISTED).map(|name| &**name).collect();
    let more = if names.len() > MOST_LISTED { " and more" } else { "" };
    format!(", which has {}{more}", shown.join(", "))
}

/// The rows of a table. Only the columns that are asked for are handed on.
pub(super) struct Separated<R> {
    input: R,
    separator: Separator,
    byte: u8,
    /// The place and the name of each column that is asked for.
    columns: Vec<(usize, String)>,
    /// The number of fields of every row.
    width: usize,
    /// The number of lines read so far.
    line: u64,
    /// The number of header lines that were not handed on as blank lines yet.
    header_lines: u64,
    row: Vec<u8>,
    /// The number of bytes read so far, and of those before the last row.
    offset: u64,
    start: u64,
}

impl<R: BufRead> Separated<R> {
    /// Reads the header line, unless the names of the columns are given.
    pub(super) fn open(input: R, separator: Separator, files: &Files) -> Result<Self> {
        let mut table = Self::new(input, separator);
        let names: Vec<Vec<u8>> = match &files.columns {
            Some(names) => names.iter().map(|name| name.as_bytes().to_vec()).collect(),
            None => table.read_names()?,
        };
        table.width = names.len();
        for wanted in files.field_names() {
            let mut places = (0..).zip(&names).filter(|(_, name)| name.as_slice() == wanted.as_bytes());
            match (places.next(), places.next()) {
                (Some((place, _)), None) => table.columns.push((place, wanted.to_owned())),
                (Some(_), Some(_)) => {
                    let reason = format!("two columns are named {wanted:?}; rename one");
                    return Err(RowFault::error(table.line.max(1), reason));
                }
                (None, _) => {
                    let given =
                        if files.columns.is_some() { "among the given ones" } else { "in the header line" };
                    let listed = listed(&names, files.columns.is_some());
                    let reason = format!(
                        "no column {wanted:?} {given}{listed}; name a column of the file (--text-field, or data.text_field in a plan), or give the names of all columns \
                         if the file has no header line (in a plan data.columns)"
                    );
                    return Err(RowFault::error(table.line.max(1), reason));
                }
            }
        }
        Ok(table)
    }

    /// Returns the names in the header line.
    pub(super) fn header(input: R, separator: Separator) -> Result<Vec<String>> {
        let mut table = Self::new(input, separator);
        let names = table.read_names()?;
        Ok(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    fn new(input: R, separator: Separator) -> Self {
        let (columns, row) = (Vec::new(), Vec::new());
        Self {
            input,
            separator,
            byte: separator.byte(),
            columns,
            width: 0,
            line: 0,
            header_lines: 0,
            row,
            offset: 0,
            start: 0,
        }
    }

    /// Reads the fields of the header line.
    fn read_names(&mut self) -> Result<Vec<Vec<u8>>> {
        self.header_lines = self.read_row()?;
        let header = std::mem::take(&mut self.row);
        let header = header.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&header);
        self.byte = self.separator.byte_of(header);
        Ok(self.fields(header)?.into_iter().map(Cow::into_owned).collect())
    }

    /// Reads a row into the buffer and returns how many lines it takes; 0 at the end.
    fn read_row(&mut self) -> Result<u64> {
        self.row.clear();
        self.start = self.offset;
        let (mut line, mut lines) = (Vec::new(), 0);
        let mut is_quoted = false;
        loop {
            match read_line(&mut self.input, &mut line, MAX_LINE_BYTES)? {
                Line::End if lines == 0 => return Ok(0),
                Line::End => {
                    let reason =
                        "a quotation mark is opened and never closed; close it, or double it inside a field";
                    return Err(RowFault::error(self.line + 1 - lines, reason));
                }
                Line::Read(bytes) if self.row.len() + line.len() < MAX_LINE_BYTES => {
                    self.offset += bytes as u64;
                }
                Line::Read(_) | Line::TooLong => {
                    let reason =
                        format!("longer than {MAX_LINE_BYTES} bytes; break the text into shorter rows");
                    return Err(RowFault::error(self.line + 1, reason));
                }
            }
            if lines > 0 {
                self.row.push(b'\n');
            }
            self.row.extend_from_slice(&line);
            self.line += 1;
            lines += 1;
            is_quoted ^= !memchr::memchr_iter(b'"', &line).count().is_multiple_of(2);
            if self.separator == Separator::Tab || !is_quoted {
                return Ok(lines);
            }
        }
    }

    /// Returns the fields of a row.
    fn fields<'a>(&self, row: &'a [u8]) -> Result<Vec<Cow<'a, [u8]>>> {
        let separator = self.byte;
        if self.separator == Separator::Tab || !row.contains(&b'"') {
            return Ok(row.split(|&byte| byte == separator).map(Cow::Borrowed).collect());
        }
        let (mut fields, mut rest) = (Vec::new(), row);
        loop {
            let (field, after) = match rest.strip_prefix(b"\"") {
                Some(quoted) => self.quoted(quoted)?,
                None => {
                    let end = memchr::memchr(separator, rest).unwrap_or(rest.len());
                    (Cow::Borrowed(&rest[..end]), &rest[end..])
                }
            };
            fields.push(field);
            match after.split_first() {
                None => return Ok(fields),
                Some((&byte, after)) if byte == separator => rest = after,
                Some(_) => {
                    let reason = "text after a closing quotation mark; double the marks inside a field";
                    return Err(RowFault::error(self.line, reason));
                }
            }
        }
    }

    /// Returns a field after its opening quotation mark, and the text after the closing one.
    fn quoted<'a>(&self, text: &'a [u8]) -> Result<(Cow<'a, [u8]>, &'a [u8])> {
        let (mut field, mut rest) = (Vec::new(), text);
        while let Some(at) = memchr::memchr(b'"', rest) {
            field.extend_from_slice(&rest[..at]);
            rest = &rest[at + 1..];
            match rest.strip_prefix(b"\"") {
                Some(after) => {
                    field.push(b'"');
                    rest = after;
                }
                None => return Ok((Cow::Owned(field), rest)),
            }
        }
        Err(RowFault::error(self.line, "a quotation mark is opened and never closed; close it"))
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl<R: BufRead + Seek> Separated<R> {
    /// Appends the row that begins after `offset` bytes, as a JSON line. Returns false at the end of the file.
    pub(super) fn row_at(&mut self, offset: u64, out: &mut Vec<u8>) -> Result<bool> {
        self.input.seek(SeekFrom::Start(offset))?;
        self.header_lines = 0;
        self.next_row(out)
    }
}

impl<R: BufRead> Rows for Separated<R> {
    fn next_row(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        // The lines of the header become blank lines, so that the rows keep their numbers.
        out.extend((0..std::mem::take(&mut self.header_lines)).map(|_| b'\n'));
        let first = self.line;
        let lines = self.read_row()?;
        if lines == 0 {
            return Ok(false);
        }
        let row = std::mem::take(&mut self.row);
        if !row.is_empty() {
            let fields = self.fields(&row)?;
            if fields.len() != self.width {
                let reason = format!(
                    "{} fields, but the table has {} columns; give each row as many",
                    fields.len(),
                    self.width
                );
                return Err(RowFault::error(first + 1, reason));
            }
            for (index, (place, name)) in self.columns.iter().enumerate() {
                out.push(if index == 0 { b'{' } else { b',' });
                push_json_string(out, name.as_bytes());
                out.push(b':');
                push_json_string(out, &fields[*place]);
            }
            out.push(b'}');
        }
        out.extend((0..lines).map(|_| b'\n'));
        self.row = row;
        Ok(true)
    }

    fn start(&self) -> u64 {
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CorpusError, Format, Record, Source, open};
    use super::*;

    fn read(
        name: &str,
        text: &[u8],
        columns: Option<&[&str]>,
    ) -> std::result::Result<Vec<Record>, CorpusError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let columns = columns.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let further = vec!["label".to_owned()];
        open(&Source::Files(Files { columns, further, format: Format::Auto, ..Files::of([path]) }))?.collect()
    }

    fn record(text: &str, label: &str) -> Record {
        Record { further: vec![vec![label.to_owned()]], ..Record::of_text(text) }
    }

    /// Oracle: Python's csv module reads the same rows.
    #[test]
    fn quoted_fields_hold_commas_line_ends_and_quotation_marks() {
        let text = "\u{feff}id,text,label\r\n1,\"a, \"\"b\"\"\nc\",yes\r\n\r\n2,plain\u{1},\"\"\n3,,no";
        let got = read("a.csv", text.as_bytes(), None).unwrap();
        assert_eq!(got, [record("a, \"b\"\nc", "yes"), record("plain\u{1}", ""), record("", "no")]);
    }

    #[test]
    fn the_header_line_tells_the_separator_of_a_spreadsheet() {
        let want = [record("a; \"b\", c", "yes"), record("d", "no")];
        for separator in [",", ";", "\t", "|"] {
            let text = "id;text;\"label\"\n1;\"a; \"\"b\"\", c\";yes\n2;d;no\n";
            let text = text
                .replace("1;", &format!("1{separator}"))
                .replace("2;d;", &format!("2{separator}d{separator}"));
            let text = text.replace("\";yes", &format!("\"{separator}yes"));
            let text = text.replace("id;text;", &format!("id{separator}text{separator}"));
            assert_eq!(read("a.csv", text.as_bytes(), None).unwrap(), want, "{separator:?}");
        }
        // If the header has two kinds of separators, commas separate.
        let got = read("a.csv", b"a;b,text,label\n1;2,t,l\n", None).unwrap();
        assert_eq!(got, [record("t", "l")]);
        // If the names of the columns are given, commas separate.
        let got = read("a.csv", b"1;2,t,l\n", Some(&["id", "text", "label"])).unwrap();
        assert_eq!(got, [record("t", "l")]);
    }

    /// Each line is looked at once: a row that was searched again with every line would take minutes.
    #[test]
    fn a_field_of_very_many_lines_is_one_row() {
        let field = "some words of it\n".repeat(300_000);
        let got = read("a.csv", format!("text,label\n\"{field}\",yes\n").as_bytes(), None).unwrap();
        assert_eq!(got, [record(&field, "yes")]);
    }

    #[test]
    fn tabs_separate_and_quotation_marks_are_text() {
        let got = read("a.tsv", b"\"it\tx\tyes\nis\" fun\ty\tno\n", Some(&["text", "", "label"])).unwrap();
        assert_eq!(got, [record("\"it", "yes"), record("is\" fun", "no")]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_without_the_text() {
        let header = "text,label\n";
        for (rows, want) in [
            ("ok,yes\n\"two\nlines\",no\nSecret\n", "line 5: 1 fields, but the table has 2 columns"),
            ("ok,yes\n\"Secret\nend", "line 3: a quotation mark is opened and never closed"),
            ("\"ok\"Secret\",yes\"\n", "line 2: text after a closing quotation mark"),
            ("ok,yes\nSecret \u{fe},no\n", ""),
        ] {
            let text = format!("{header}{rows}").into_bytes();
            match read("a.csv", &text, None) {
                Err(error) => {
                    let message = error.to_string();
                    assert!(message.contains(want) && !message.contains("Secret"), "{message}");
                }
                Ok(records) => assert!(want.is_empty() && records.len() == 2, "{rows}: {records:?}"),
            }
        }
        let message = read("a.csv", b"Secret,label\n", None).unwrap_err().to_string();
        assert!(
            message.contains("no column \"text\" in the header line") && !message.contains("Secret"),
            "{message}"
        );
        let message = read("a.csv", b"id;note;label\n1;Secret;x\n", None).unwrap_err().to_string();
        assert!(
            message.contains("in the header line, which has id, note, label; name a column"),
            "{message}"
        );
        let message = read("a.csv", b"text,text,label\n", None).unwrap_err().to_string();
        assert!(message.contains("two columns are named \"text\""), "{message}");
        let message = read("a.csv", b"text,label\nok,\xFF\n", None).map(|all| all.len());
        assert_eq!(message.unwrap(), 1, "bytes that are not UTF-8 are replaced where the caller says so");
    }
}
