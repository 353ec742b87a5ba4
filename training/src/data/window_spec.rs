//! The way in which a unit's tokens are cut into windows.

/// The way in which a unit's tokens are cut into windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpec {
    /// The token before a text; the end-of-text token where the tokenizer has no other.
    pub bos: u32,
    /// The end-of-text token.
    pub eos: u32,
    /// Tokens of a window that no other window has.
    pub length: usize,
    /// Whether a window begins with the last token of the one before it, from which its first own token is predicted.
    pub overlaps: bool,
    /// Whether each piece of a divided record has its own end-of-text tokens, as if it were a record. Required where pieces
    /// are the privacy units: a mark that depends on whether another piece follows would change when that one is removed.
    pub marks_pieces: bool,
}

impl WindowSpec {
    /// Returns whether [`Self::bos`] precedes a stretch of text. If it is the end-of-text token, the second record of a
    /// user follows that of the first record.
    pub(super) fn starts_with_bos(self, begins_record: bool, begins_unit: bool) -> bool {
        (begins_record || self.marks_pieces) && (begins_unit || self.bos != self.eos) && self.overlaps
    }

    /// Returns the number of windows of a unit with so many tokens. If windows overlap, the first token of a unit is
    /// not a target.
    pub fn windows(self, tokens: usize) -> usize {
        tokens.saturating_sub(usize::from(self.overlaps)).div_ceil(self.length)
    }

    /// Returns where a window that training reads begins. Windows begin at even distances, so that all windows of a
    /// unit that has more than one are full. A last window that held only the rest of the unit would be drawn as often
    /// as the others, for a few tokens.
    pub fn training_begin(self, tokens: usize, window: usize) -> usize {
        let room = tokens.saturating_sub(usize::from(self.overlaps) + self.length) as u128;
        let last = self.windows(tokens).saturating_sub(1).max(1) as u128;
        (window as u128 * room / last) as usize
    }

    /// Returns whether the end-of-text token follows a stretch of text.
    pub(super) fn ends_with_eos(self, ends_record: bool) -> bool {
        ends_record || self.marks_pieces
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For every objective, windows are full, differ, and leave out no target.
        #[test]
        fn windows_of_training_are_full_and_cover_a_unit(
            tokens in 0_usize..200, length in 1_usize..20, overlaps in any::<bool>()
        ) {
            let spec = WindowSpec { bos: 0, eos: 0, length, overlaps, marks_pieces: false };
            let targets = tokens.saturating_sub(usize::from(overlaps));
            let begins: Vec<usize> = (0..spec.windows(tokens)).map(|at| spec.training_begin(tokens, at)).collect();
            prop_assert_eq!(begins.len(), targets.div_ceil(length));
            let Some((first, last)) = begins.first().zip(begins.last()) else { return Ok(()) };
            prop_assert_eq!((*first, last + length.min(targets)), (0, targets));
            prop_assert!(begins.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= length));
        }
    }
}
