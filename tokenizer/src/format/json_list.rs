//! Reads the long lists of a `tokenizer.json` from valid JSON: a value for each of a million entries would take most of the time
//! and memory of loading.

use std::borrow::Cow;

/// A reader of JSON that was found valid.
pub(super) struct JsonList<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonList<'a> {
    /// Returns a reader inside the list or the object that `text` is.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 1 }
    }

    /// Returns the first byte of the next value or the closing bracket, without taking it.
    pub(super) fn next(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let skipped =
            rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',' | b':'))?;
        self.at += skipped;
        Some(rest[skipped])
    }

    /// Takes a bracket, if it comes next.
    pub(super) fn bracket(&mut self, bracket: u8) -> Option<()> {
        (self.next()? == bracket).then(|| self.at += 1)
    }

    /// Takes a string, if one comes next.
    pub(super) fn string(&mut self) -> Option<Cow<'a, str>> {
        self.bracket(b'"')?;
        let (start, bytes) = (self.at, self.text.as_bytes());
        let mut is_escaped = false;
        loop {
            self.at += bytes[self.at..].iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            if bytes[self.at] == b'"' {
                break;
            }
            is_escaped = true;
            self.at += 2;
        }
        self.at += 1;
        match is_escaped {
            false => Some(Cow::Borrowed(&self.text[start..self.at - 1])),
            true => serde_json::from_str(&self.text[start - 1..self.at]).ok().map(Cow::Owned),
        }
    }

    /// Takes an id, if one comes next.
    pub(super) fn id(&mut self) -> Option<u32> {
        self.next()?;
        let rest = &self.text[self.at..];
        let end = rest.find([',', '}', ']', ' ', '\n', '\r', '\t'])?;
        self.at += end;
        rest[..end].parse().ok().filter(|_| rest.as_bytes()[0].is_ascii_digit())
    }
}
