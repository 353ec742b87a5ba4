//! Sentences with a tag for each word, as in CoNLL's tasks: a word and its tag a line, a blank line after a sentence.

use std::io::{BufRead, Result};
#[cfg(not(target_arch = "wasm32"))]
use std::io::{Seek, SeekFrom};

use super::Files;
use super::lines::{Line, MAX_LINE_BYTES, read_line};
use super::rows::{RowFault, Rows, push_json_string};

/// The sentences of a file. The first column holds the words, the last one the tags.
pub(super) struct Sentences<R> {
    input: R,
    text_field: String,
    /// Whether the text is asked for as a list of words.
    as_list: bool,
    /// The fields that get the tags.
    tag_fields: Vec<String>,
    /// The number of lines read so far.
    line: u64,
    /// The number of bytes read so far, and of those before the last sentence.
    offset: u64,
    start: u64,
}

impl<R: BufRead> Sentences<R> {
    pub(super) fn open(input: R, files: &Files) -> Self {
        let text_field = files.text_field.clone();
        let as_list = files.further.contains(&text_field);
        let tag_fields = files.field_names().filter(|name| *name != text_field).map(str::to_owned).collect();
        Self { input, text_field, as_list, tag_fields, line: 0, offset: 0, start: 0 }
    }

    /// Returns the word and the tag of a line.
    fn columns<'a>(&self, line: &'a [u8]) -> Result<[&'a [u8]; 2]> {
        let by_tabs = line.contains(&b'\t');
        let ends = |byte: &u8| if by_tabs { *byte == b'\t' } else { *byte == b' ' };
        let mut columns = line.split(ends).filter(|column| by_tabs || !column.is_empty());
        match (columns.next(), columns.next_back()) {
            (Some(word), Some(tag)) if !word.is_empty() && !tag.is_empty() => Ok([word, tag]),
            _ => Err(RowFault::error(
                self.line,
                "not a word and its tag; allowed: columns separated by tabs or blanks, and a blank line between sentences",
            )),
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl<R: BufRead + Seek> Sentences<R> {
    /// Appends the sentence that begins after `offset` bytes. Returns false at the end of the file.
    pub(super) fn sentence_at(&mut self, offset: u64, out: &mut Vec<u8>) -> Result<bool> {
        self.input.seek(SeekFrom::Start(offset))?;
        // Only the first line may begin with a byte order mark.
        self.line = u64::from(offset > 0);
        self.next_row(out)
    }
}

impl<R: BufRead> Rows for Sentences<R> {
    fn next_row(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let (mut words, mut tags): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
        let (mut line, mut lines) = (Vec::new(), 0);
        self.start = self.offset;
        loop {
            match read_line(&mut self.input, &mut line, MAX_LINE_BYTES)? {
                Line::Read(bytes) => {
                    self.line += 1;
                    self.offset += bytes as u64;
                }
                Line::End if lines == 0 => return Ok(false),
                Line::End => break,
                Line::TooLong => return Err(RowFault::error(self.line + 1, "longer than a word can be")),
            }
            lines += 1;
            let own =
                if self.line == 1 { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line) } else { &line };
            if own.trim_ascii().is_empty() {
                break;
            }
            let [word, tag] = self.columns(own)?;
            words.push(word.to_vec());
            tags.push(tag.to_vec());
        }
        // CoNLL's mark between documents is no sentence.
        if !words.is_empty() && words != [b"-DOCSTART-"] {
            out.push(b'{');
            push_json_string(out, self.text_field.as_bytes());
            out.push(b':');
            if self.as_list {
                push_json_list(out, &words);
            } else {
                push_json_string(out, &words.join(&b' '));
            }
            for name in &self.tag_fields {
                out.push(b',');
                push_json_string(out, name.as_bytes());
                out.push(b':');
                push_json_list(out, &tags);
            }
            out.push(b'}');
        }
        out.extend((0..lines).map(|_| b'\n'));
        Ok(true)
    }

    fn start(&self) -> u64 {
        self.start
    }
}

fn push_json_list(out: &mut Vec<u8>, values: &[Vec<u8>]) {
    out.push(b'[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_json_string(out, value);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::super::{CorpusError, Files, Record, Source, open};

    fn read(text: &str, further: &[&str]) -> Result<Vec<Record>, CorpusError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mentions.iob");
        std::fs::write(&path, text).unwrap();
        let further = further.iter().map(|name| (*name).to_owned()).collect();
        open(&Source::Files(Files { further, ..Files::of([path]) }))?.collect()
    }

    #[test]
    fn sentences_are_records_of_words_and_tags() {
        let text = "-DOCSTART- -X- O O\n\nAspirin\tNN\tB-Drug\n\"\tO\r\n\n\n a  b O \nlast O";
        let got = read(text, &["text", "tags"]).unwrap();
        let of = |words: &[&str], tags: &[&str]| Record {
            further: [words, tags].map(|list| list.iter().map(|one| (*one).to_owned()).collect()).to_vec(),
            ..Record::of_text(words.join(" "))
        };
        assert_eq!(got, [of(&["Aspirin", "\""], &["B-Drug", "O"]), of(&["a", "last"], &["O", "O"])]);
        assert_eq!(read(text, &[]).unwrap()[0].text, "Aspirin \"", "a text without further fields");
    }

    #[test]
    fn a_word_without_a_tag_is_refused_by_its_line_and_not_quoted() {
        for text in ["a O\n\nSecret\n", "a O\n\nSecret\t\n", "a O\n\n\tO\n"] {
            let message = read(text, &["tags"]).unwrap_err().to_string();
            assert!(
                message.contains("line 3: not a word and its tag") && !message.contains("Secret"),
                "{message}"
            );
        }
    }
}
