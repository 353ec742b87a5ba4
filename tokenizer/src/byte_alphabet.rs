//! GPT-2's printable alphabet of bytes.

/// The printable character for `byte` in GPT-2's vocabulary files.
///
/// Printable Latin-1 bytes map to themselves, the others to U+0100 onwards in order.
#[must_use]
pub fn byte_to_char(byte: u8) -> char {
    let shifted = |rank: u8| char::from_u32(0x100 + u32::from(rank)).unwrap_or(char::REPLACEMENT_CHARACTER);
    match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
        0..=b' ' => shifted(byte),
        0x7F..=0xA0 => shifted(byte - 0x7F + 33),
        0xAD => shifted(67),
    }
}

/// Returns `text` with each byte as its printable character.
pub(crate) fn spell_bytes(text: &str) -> String {
    text.bytes().map(byte_to_char).collect()
}

/// The byte for `c` in GPT-2's vocabulary files, if there is one.
pub(crate) fn char_to_byte(c: char) -> Option<u8> {
    match c as u32 {
        code @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => u8::try_from(code).ok(),
        code @ 0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        code @ 0x121..=0x142 => u8::try_from(code - 0x121 + 0x7F).ok(),
        0x143 => Some(0xAD),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_printable_characters_and_back() {
        assert_eq!((byte_to_char(b' '), char_to_byte('Ċ')), ('Ġ', Some(b'\n')));
    }

    #[test]
    fn byte_alphabet_is_one_to_one_and_printable() {
        let alphabet: Vec<char> = (0..=255).map(byte_to_char).collect();
        for (byte, c) in (0..=255u8).zip(&alphabet) {
            assert_eq!(char_to_byte(*c), Some(byte));
            assert!(!c.is_whitespace() && !c.is_control());
        }
        let mapped = ('\0'..=char::MAX).filter(|c| char_to_byte(*c).is_some()).count();
        assert_eq!(mapped, 256, "no two characters for one byte");
    }
}
