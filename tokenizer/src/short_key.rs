//! Short byte strings as integers, which are compared at once and hashed with one multiplication.

/// Length of the longest string that fits: fifteen bytes, with their number in the sixteenth.
pub const SHORT_BYTES: usize = 15;

/// The first byte of U+2581 and of other characters.
pub(crate) const MARK: u8 = 0xE2;

/// Returns the `length` bytes at `from`, low bytes first, with `length` in the highest byte. The key is 0 only if
/// `length` is 0.
#[inline]
pub fn short_key(bytes: &[u8], from: usize, length: usize) -> u128 {
    let content = match bytes.get(from..from + 16) {
        Some(whole) => {
            let mut sixteen = [0; 16];
            sixteen.copy_from_slice(whole);
            u128::from_le_bytes(sixteen) & ((1 << (8 * length)) - 1)
        }
        None => near_the_end(&bytes[from..from + length]),
    };
    content | (length as u128) << 120
}

/// Returns the length and key of the first word of `text`, up to the next space, if it is short and contains no byte
/// [`MARK`], which may begin a mark that stands for a space.
#[inline]
pub(crate) fn short_word(text: &[u8; 16]) -> Option<(usize, u128)> {
    const EACH: u128 = u128::from_le_bytes([1; 16]);
    let text = u128::from_le_bytes(*text);
    // Finds the lowest zero byte; bytes above it may be false positives.
    let zero = |bytes: u128| bytes.wrapping_sub(EACH) & !bytes & (0x80 * EACH);
    // A leading space belongs to the word.
    let spaces = zero((text ^ (u128::from(b' ') * EACH)) | 0xFF);
    let marks = zero(text ^ (u128::from(MARK) * EACH));
    let length = spaces.trailing_zeros() / 8;
    if length as usize > SHORT_BYTES || marks.trailing_zeros() / 8 < length {
        return None;
    }
    Some((length as usize, text & ((1 << (8 * length)) - 1) | u128::from(length) << 120))
}

/// Reads bytes near the end of the text: from the front and from the back, overlapping in the middle.
#[inline]
fn near_the_end(bytes: &[u8]) -> u128 {
    let length = bytes.len();
    if let (Some(front), Some(back)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        return u128::from(u64::from_le_bytes(*front))
            | u128::from(u64::from_le_bytes(*back)) << (8 * (length - 8));
    }
    if let (Some(front), Some(back)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return u128::from(u32::from_le_bytes(*front))
            | u128::from(u32::from_le_bytes(*back)) << (8 * (length - 4));
    }
    bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u128::from(byte))
}

/// Returns a hash of the key: both halves, multiplied and folded. Chosen collisions only slow down the counting of that
/// text.
#[inline]
pub fn short_hash(key: u128) -> u64 {
    let (low, high) = (key as u64 ^ 0x9E37_79B9_7F4A_7C15, (key >> 64) as u64 ^ 0xD6E8_FEB8_6659_FD93);
    let product = u128::from(low) * u128::from(high);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_opens_a_text_is_found_by_its_definition() {
        let parts = [" ", "!", "a", "\u{1F}", "\u{21}", "é", "\u{2581}", "\u{2019}", "bcdefgh", "\0"];
        let mut text = Vec::new();
        let mut state = 1_u32;
        while text.len() < 40_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.extend(parts[(state >> 16) as usize % parts.len()].bytes());
        }
        for (from, sixteen) in text.windows(16).enumerate() {
            let length = sixteen[1..].iter().position(|byte| *byte == b' ').map(|at| at + 1);
            let word = length.filter(|length| !sixteen[..*length].contains(&MARK));
            let want = word.map(|length| (length, short_key(&text, from, length)));
            assert_eq!(short_word(sixteen.try_into().unwrap()), want, "{from}");
        }
    }

    #[test]
    fn a_key_holds_the_bytes_and_their_number_wherever_they_stand() {
        let text: Vec<u8> = (1..=40).collect();
        for from in 0..text.len() {
            for length in 0..=SHORT_BYTES.min(text.len() - from) {
                let mut want = [0; 16];
                want[..length].copy_from_slice(&text[from..from + length]);
                want[15] = length as u8;
                assert_eq!(short_key(&text, from, length).to_le_bytes(), want, "{from} {length}");
            }
        }
    }
}
