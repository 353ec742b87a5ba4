//! How a unit's tokens are cut into windows.

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
    /// Whether [`Self::bos`] precedes a stretch of text. If it is the end-of-text token, the second record of a user
    /// follows that of the first record.
    pub(super) fn starts_with_bos(self, begins_record: bool, begins_unit: bool) -> bool {
        (begins_record || self.marks_pieces) && (begins_unit || self.bos != self.eos) && self.overlaps
    }

    /// Returns the beginning of the window in which a unit's token at `place` is a target. If
    /// windows overlap, the first token of a unit is not a target.
    pub fn window_begin(self, place: usize) -> usize {
        place.saturating_sub(usize::from(self.overlaps)) / self.length * self.length
    }

    /// Whether the end-of-text token follows a stretch of text.
    pub(super) fn ends_with_eos(self, ends_record: bool) -> bool {
        ends_record || self.marks_pieces
    }
}
