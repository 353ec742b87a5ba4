//! Words of ASCII letters, alone or behind one other character, which are found without a step for each letter.

use crate::short_key::SHORT_BYTES;

/// How a pre-tokenizer finds words of ASCII letters.
#[derive(Clone, Debug)]
pub(crate) struct AsciiWords {
    /// For each byte, 1 if it may open a word, else 0.
    pub(crate) opens: [u8; 256],
    /// Whether a word certainly ends before a byte.
    pub(crate) ends: [bool; 256],
    /// Whether a capital behind a small letter opens the next word.
    pub(crate) cuts_before_capitals: bool,
}

/// A byte of 1 for each of sixteen.
const EACH: u128 = u128::from_le_bytes([1; 16]);

/// Returns the highest bit of each byte that is not from `first` to `first` + 25, an ASCII letter.
#[inline]
fn outside(text: u128, first: u8) -> u128 {
    let low = text & (EACH * 0x7F);
    let (from_first, above_last) =
        (low + EACH * u128::from(0x80 - first), low + EACH * u128::from(0x80 - 26 - first));
    (!from_first | above_last | text) & (EACH * 0x80)
}

impl AsciiWords {
    /// Returns the length and [`crate::short_key::short_key`] of the word that opens `text`, if it is such a word and short.
    #[inline]
    pub(crate) fn short(&self, text: &[u8; 16]) -> Option<(usize, u128)> {
        let opened = self.opens[usize::from(text[0])];
        let word = u128::from_le_bytes(*text);
        let letters = |others: u128| (others & !(0x80 * u128::from(opened))).trailing_zeros() as usize / 8;
        let length = if self.cuts_before_capitals {
            let capitals = letters(outside(word, b'A'));
            let others = outside(word, b'a').checked_shr(8 * capitals as u32)?;
            let opened = if capitals == 0 { u128::from(opened) } else { 0 };
            capitals + (others & !(0x80 * opened)).trailing_zeros() as usize / 8
        } else {
            letters(outside(word | (EACH * 0x20), b'a'))
        };
        if length > SHORT_BYTES || length <= usize::from(opened) || !self.ends[usize::from(text[length])] {
            return None;
        }
        Some((length, word & ((1 << (8 * length)) - 1) | (length as u128) << 120))
    }

    /// Returns the end of the word at `from`, if it is such a word.
    #[inline]
    pub(crate) fn end(&self, text: &[u8], from: usize) -> Option<usize> {
        let start = from + usize::from(self.opens[usize::from(*text.get(from)?)]);
        let mut end = start;
        if self.cuts_before_capitals {
            end += text[start..].iter().take_while(|byte| byte.is_ascii_uppercase()).count();
            end += letters(&text[end..], 0);
        } else {
            end += letters(&text[start..], 0x20);
        }
        let is_end = text.get(end).is_none_or(|next| self.ends[usize::from(*next)]);
        (end > start && is_end).then_some(end)
    }
}

/// Returns the number of small letters at the start of a text. With `fold` = 0x20, capitals count too.
#[inline]
pub(crate) fn letters(text: &[u8], fold: u8) -> usize {
    let mut count = 0;
    while let Some(some) = text[count..].first_chunk() {
        let others = outside(u128::from_le_bytes(*some) | (EACH * u128::from(fold)), b'a');
        count += others.trailing_zeros() as usize / 8;
        if others != 0 {
            return count;
        }
    }
    count + text[count..].iter().take_while(|byte| (**byte | fold).is_ascii_lowercase()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::short_key::short_key;

    #[test]
    fn letters_are_counted_up_to_the_first_other_byte() {
        for length in 0..36 {
            for other in 0..=255_u8 {
                let text = [&b"zabcyXYZAklmnopqrstuzabcyXYZAklmnopqrstu"[..length], &[other], b"a"].concat();
                for fold in [0, 0x20] {
                    let want = text.iter().take_while(|byte| (**byte | fold).is_ascii_lowercase()).count();
                    assert_eq!(letters(&text, fold), want, "{length} {other} {fold}");
                }
            }
        }
    }

    #[test]
    fn short_words_are_the_words_that_end_within_sixteen_bytes() {
        let mut state = 1_u32;
        let mut text = Vec::new();
        while text.len() < 100_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let bytes = b"  azAZ@[`{.'\n\x00\x7F\xC3\xA9gkQRgkQRgkQRgkQRgkQRgkQR";
            text.push(bytes[(state >> 16) as usize % bytes.len()]);
        }
        let mut found = 0;
        for cuts_before_capitals in [false, true] {
            let mut words = AsciiWords { opens: [0; 256], ends: [false; 256], cuts_before_capitals };
            for byte in 0..128_u8 {
                words.opens[usize::from(byte)] = u8::from(b" .".contains(&byte));
                words.ends[usize::from(byte)] = !byte.is_ascii_alphabetic() && byte != 0
                    || byte.is_ascii_uppercase() && cuts_before_capitals;
            }
            for (from, sixteen) in text.windows(16).enumerate() {
                let want = words.end(&text, from).filter(|end| *end < from + 16);
                let want = want.map(|end| (end - from, short_key(&text, from, end - from)));
                assert_eq!(words.short(sixteen.try_into().unwrap()), want, "{from} {cuts_before_capitals}");
                found += usize::from(want.is_some());
            }
        }
        assert!(found > 50_000, "{found}");
    }
}
