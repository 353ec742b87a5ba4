//! Short byte strings as integers: compared at once, hashed with one multiplication.

/// Longest string that fits: fifteen bytes, and their number in the sixteenth.
pub(crate) const SHORT_BYTES: usize = 15;

/// The `length` bytes at `from`, low ones first, and `length` in the highest byte: never 0 unless `length` is.
#[inline]
pub(crate) fn short_key(bytes: &[u8], from: usize, length: usize) -> u128 {
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

/// Where sixteen bytes would reach beyond the end: from the front and from the back, overlapping in the middle.
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

/// Both halves multiplied and folded. Whoever chooses collisions slows down the counting of their own text, no more.
#[inline]
pub(crate) fn short_hash(key: u128) -> u64 {
    let (low, high) = (key as u64 ^ 0x9E37_79B9_7F4A_7C15, (key >> 64) as u64 ^ 0xD6E8_FEB8_6659_FD93);
    let product = u128::from(low) * u128::from(high);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

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
