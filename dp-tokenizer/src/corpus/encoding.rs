//! Text in other encodings than UTF-8, read as UTF-8.
//!
//! Both are small enough to be read here: libraries for encodings bring the tables of some forty, also to the page.

use std::io::{BufRead, Read, Result};

use mechanisms::Encoding;

/// A byte that UTF-8 never has. It stands for what an encoding does not define, and is treated as invalid UTF-8 is.
const INVALID: u8 = 0xFF;

/// Windows-1252 from byte 0x80 to 0x9F; 0 where it defines nothing. The other bytes are those of Latin-1.
///
/// # References
/// Unicode's mapping table `VENDORS/MICSFT/WINDOWS/CP1252.TXT`.
const WINDOWS_1252: [u16; 32] = [
    0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,
    0x017D, 0, 0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A,
    0x0153, 0, 0x017E, 0x0178,
];

/// Returns the encoding that the first bytes of a text tell by their marks, if it is not UTF-8.
pub(super) fn marked(first: &[u8]) -> Option<Encoding> {
    is_little_endian(first).map(|_| Encoding::Utf16)
}

/// The encoding that bytes are not in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotText {
    /// They are neither UTF-8 nor Windows-1252.
    #[error(
        "not valid UTF-8; convert the file from its encoding, for example with iconv -f WINDOWS-1250 -t UTF-8"
    )]
    Utf8,
    /// They are not UTF-8, but may be Windows-1252.
    #[error(
        "not valid UTF-8; if it is Windows-1252, as programs of Windows write it, name that (--encoding windows-1252; in a plan \
         data.encoding), else convert the file from its encoding, for example with iconv -f WINDOWS-1250 -t UTF-8"
    )]
    PerhapsWindows1252,
    /// They are UTF-8 but for surrogates.
    #[error(
        "not valid UTF-8: surrogates are written as characters (bytes ED A0 to ED BF), as Java and some databases write emoji (CESU-8); \
         convert the file, for example with uconv -f CESU-8 -t UTF-8"
    )]
    Surrogates,
    /// They are not in the encoding that was named.
    #[error("not valid {}; name the encoding of the file (--encoding; in a plan data.encoding)", .0.name())]
    Named(Encoding),
}

impl NotText {
    pub(super) fn of(bytes: &[u8], encoding: Encoding) -> Self {
        match encoding {
            Encoding::Utf8 if has_surrogates(bytes) => Self::Surrogates,
            Encoding::Utf8 if may_be_windows_1252(bytes) => Self::PerhapsWindows1252,
            Encoding::Utf8 => Self::Utf8,
            named => Self::Named(named),
        }
    }
}

/// Whether bytes that are no UTF-8 may be Windows-1252, as those of other encodings may be, too.
pub(super) fn may_be_windows_1252(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| character(*byte) != Some(0))
}

/// Whether bytes that are no UTF-8 would be but for surrogates, each written as three bytes: CESU-8, or UTF-8 with lone surrogates.
pub(super) fn has_surrogates(bytes: &[u8]) -> bool {
    let is_surrogate = |three: &[u8]| matches!(three, [0xED, 0xA0..=0xBF, 0x80..=0xBF]);
    let (mut rest, mut found) = (bytes, false);
    while let Err(error) = std::str::from_utf8(rest) {
        let at = error.valid_up_to();
        let Some(three) = rest.get(at..at + 3).filter(|three| is_surrogate(three)) else { return false };
        found = true;
        rest = &rest[at + three.len()..];
    }
    found
}

/// Returns what Windows-1252 writes by a byte from 0x80 to 0x9F.
fn character(byte: u8) -> Option<u16> {
    WINDOWS_1252.get(usize::from(byte.wrapping_sub(0x80))).copied()
}

/// Whether UTF-16 puts the low byte first, by its byte-order mark or by the zero bytes of a Latin script; `None` if the text is not in
/// UTF-16.
fn is_little_endian(first: &[u8]) -> Option<bool> {
    match first {
        [0xFF, 0xFE, ..] => return Some(true),
        [0xFE, 0xFF, ..] => return Some(false),
        _ => {}
    }
    let first = &first[..first.len().min(512) & !1];
    let zeros = |at: usize| first.iter().skip(at).step_by(2).filter(|&&byte| byte == 0).count() * 10;
    let pairs = first.len() / 2;
    let (even, odd) = (zeros(0), zeros(1));
    let is_mostly = |most: usize, least: usize| pairs >= 4 && most >= 8 * pairs && least <= pairs;
    match (is_mostly(odd, even), is_mostly(even, odd)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// The bytes of a text as UTF-8.
pub(super) struct Decoded<R> {
    input: R,
    decoder: Decoder,
    out: Vec<u8>,
    /// The bytes of `out` that were handed on.
    taken: usize,
}

impl<R: BufRead> Decoded<R> {
    /// Returns the text of `input`; `Err` with what tells that it is in another encoding.
    pub(super) fn new(mut input: R, encoding: Encoding) -> Result<std::result::Result<Self, &'static str>> {
        let first = input.fill_buf()?;
        let decoder = match (encoding, is_little_endian(first)) {
            (Encoding::Utf8, _) => Decoder::Utf8,
            (Encoding::Utf16, None) => return Ok(Err("text without the marks of UTF-16")),
            (Encoding::Windows1252, Some(_)) => return Ok(Err("UTF-16 text")),
            (Encoding::Windows1252, None) if first.starts_with(b"\xEF\xBB\xBF") => {
                return Ok(Err("UTF-8 text"));
            }
            (Encoding::Windows1252, None) => Decoder::Windows1252,
            (Encoding::Utf16, Some(is_little_endian)) => {
                let has_mark = matches!(first, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
                input.consume(if has_mark { 2 } else { 0 });
                Decoder::Utf16 { is_little_endian, byte: None, high: None }
            }
        };
        Ok(Ok(Self { input, decoder, out: Vec::new(), taken: 0 }))
    }
}

impl<R: BufRead> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while self.taken == self.out.len() {
            (self.taken, self.out) = (0, std::mem::take(&mut self.out));
            self.out.clear();
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                self.decoder.finish(&mut self.out);
                if self.out.is_empty() {
                    return Ok(0);
                }
            }
            for byte in bytes {
                self.decoder.push(*byte, &mut self.out);
            }
            let count = bytes.len();
            self.input.consume(count);
        }
        let count = buffer.len().min(self.out.len() - self.taken);
        buffer[..count].copy_from_slice(&self.out[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

enum Decoder {
    Utf8,
    Windows1252,
    Utf16 {
        is_little_endian: bool,
        /// The first byte of a unit.
        byte: Option<u8>,
        /// The first half of a surrogate pair.
        high: Option<u16>,
    },
}

impl Decoder {
    fn push(&mut self, next: u8, out: &mut Vec<u8>) {
        match self {
            Self::Utf8 => out.push(next),
            Self::Windows1252 => match character(next) {
                Some(0) => out.push(INVALID),
                Some(code) => push(out, u32::from(code)),
                None => push(out, u32::from(next)),
            },
            Self::Utf16 { is_little_endian, byte, high } => {
                let Some(first) = byte.take() else {
                    *byte = Some(next);
                    return;
                };
                let unit = match is_little_endian {
                    true => u16::from_le_bytes([first, next]),
                    false => u16::from_be_bytes([first, next]),
                };
                match (high.take(), unit) {
                    (Some(high), 0xDC00..=0xDFFF) => {
                        push(out, 0x1_0000 + (u32::from(high & 0x3FF) << 10 | u32::from(unit & 0x3FF)));
                        return;
                    }
                    (Some(_), _) => out.push(INVALID),
                    (None, _) => {}
                }
                match unit {
                    0xD800..=0xDBFF => *high = Some(unit),
                    _ => push(out, u32::from(unit)),
                }
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if let Self::Utf16 { byte, high, .. } = self
            && (byte.take().is_some() | high.take().is_some())
        {
            out.push(INVALID);
        }
    }
}

fn push(out: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(c) => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        None => out.push(INVALID),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], encoding: Encoding) -> std::result::Result<Vec<u8>, &'static str> {
        // A buffer of 3 bytes divides units and pairs.
        let input = std::io::BufReader::with_capacity(3, bytes);
        let input = Box::new(input) as Box<dyn BufRead>;
        Decoded::new(std::io::BufReader::with_capacity(8, input), encoding).unwrap().map(|mut decoded| {
            let mut out = Vec::new();
            decoded.read_to_end(&mut out).unwrap();
            out
        })
    }

    /// Oracle: `encode_utf16` of the standard library.
    #[test]
    fn utf_16_is_read_in_both_orders_of_bytes() {
        let text = "\u{FEFF}é\r\n😀\u{FFFD}漢";
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for bytes in [little, big] {
            assert_eq!(read(&bytes, Encoding::Utf16).unwrap(), &text.as_bytes()[3..]);
        }
        let bare: Vec<u8> = "plain".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(read(&bare, Encoding::Utf16).unwrap(), b"plain");
        assert_eq!(read(b"plain text", Encoding::Utf16), Err("text without the marks of UTF-16"));
    }

    #[test]
    fn what_an_encoding_does_not_define_is_no_utf_8() {
        for (bytes, want) in [
            (&b"\xFF\xFEa\0\x00\xD8b\0"[..], &b"a\xFFb"[..]),
            (b"\xFF\xFE\x00\xDCb\0", b"\xFFb"),
            (b"\xFF\xFEa\0\x00\xD8\x00\xD8", b"a\xFF\xFF"),
            (b"\xFF\xFEa\0b", b"a\xFF"),
        ] {
            assert_eq!(read(bytes, Encoding::Utf16).unwrap(), want);
        }
        assert_eq!(read(b"a\x81b", Encoding::Windows1252).unwrap(), b"a\xFFb");
        let surrogates = b"caf\xC3\xA9 \xED\xA0\xBD\xED\xB8\x80 \xED\xB8\x80";
        assert_eq!(NotText::of(surrogates, Encoding::Utf8), NotText::Surrogates);
        for other in [&b"\xED\xA0"[..], b"\xED\xA0\xBD \xE9", b"caf\xE9"] {
            assert_eq!(NotText::of(other, Encoding::Utf8), NotText::PerhapsWindows1252);
        }
        assert!(!may_be_windows_1252(b"a\x81b") && may_be_windows_1252(b"caf\xE9 \x80"));
    }

    /// Oracle: Python's codec cp1252, over all of its bytes.
    #[test]
    fn windows_1252_is_read_as_python_reads_it() {
        let bytes: Vec<u8> = (0x80..=0xFF).filter(|byte| character(*byte) != Some(0)).collect();
        let want = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ";
        assert_eq!(read(&bytes, Encoding::Windows1252).unwrap(), want.as_bytes());
        assert_eq!(read(b"\xEF\xBB\xBFa", Encoding::Windows1252), Err("UTF-8 text"));
    }
}
