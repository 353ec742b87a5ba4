//! Lines of bytes of limited length.

use std::io::{self, BufRead};

/// Longest accepted line, in bytes. A longer one is refused before it is in memory.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;

/// The result of reading a line.
pub(crate) enum Line {
    /// A line is in the buffer, without its end (`\n` or `\r\n`). The number is that of the bytes read.
    Read(usize),
    /// The end of the input.
    End,
    /// The line is longer than the cap.
    TooLong,
}

/// Reads the next line into `buffer`, which never holds more than `cap` bytes.
pub(crate) fn read_line(reader: &mut impl BufRead, buffer: &mut Vec<u8>, cap: usize) -> io::Result<Line> {
    buffer.clear();
    let mut consumed = 0;
    loop {
        let available = match reader.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(if buffer.is_empty() { Line::End } else { Line::Read(consumed) });
        }
        let end = available.iter().position(|&b| b == b'\n');
        let part = end.unwrap_or(available.len());
        if buffer.len() + part > cap {
            return Ok(Line::TooLong);
        }
        buffer.extend_from_slice(&available[..part]);
        let whole = end.map_or(part, |at| at + 1);
        reader.consume(whole);
        consumed += whole;
        if end.is_some() {
            if buffer.last() == Some(&b'\r') {
                buffer.pop();
            }
            return Ok(Line::Read(consumed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], cap: usize) -> Vec<Option<Vec<u8>>> {
        // With a buffer of 3 bytes, every line crosses a refill.
        let mut reader = io::BufReader::with_capacity(3, bytes);
        let (mut buffer, mut out) = (Vec::new(), Vec::new());
        loop {
            match read_line(&mut reader, &mut buffer, cap).unwrap() {
                Line::Read(_) => out.push(Some(buffer.clone())),
                Line::TooLong => {
                    out.push(None);
                    return out;
                }
                Line::End => return out,
            }
        }
    }

    #[test]
    fn ends_of_line_are_cut_and_a_last_line_needs_none() {
        let got = lines(b"one\r\n\ntwo\rx\nthree", 100);
        let want: Vec<_> =
            [&b"one"[..], b"", b"two\rx", b"three"].into_iter().map(|l| Some(l.to_vec())).collect();
        assert_eq!(got, want);
        assert!(lines(b"", 10).is_empty());
    }

    #[test]
    fn a_line_beyond_the_cap_is_refused_and_never_held() {
        assert_eq!(lines(b"12345\n123456\n", 5), [Some(b"12345".to_vec()), None]);
        let mut endless = io::BufReader::new(io::repeat(b'x'));
        let mut buffer = Vec::new();
        assert!(matches!(read_line(&mut endless, &mut buffer, 1 << 20), Ok(Line::TooLong)));
        assert!(buffer.capacity() <= 4 << 20);
    }
}
