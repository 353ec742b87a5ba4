//! The mark that stands for a space, and the search for the next one.

use std::ops::Range;

use crate::short_key::{MARK, SHORT_BYTES};

/// The mark for a space: U+2581 LOWER ONE EIGHTH BLOCK.
pub(crate) const METASPACE: char = '\u{2581}';

/// Returns the position of the next `▁` from `at` on.
pub(crate) fn next_mark(text: &str, at: usize) -> usize {
    next(text, at, |bytes| memchr::memchr(MARK, bytes))
}

/// Returns the position of the next blank or literal `▁` from `at` on.
pub(crate) fn next_blank(text: &str, at: usize) -> usize {
    next(text, at, |bytes| memchr::memchr2(b' ', MARK, bytes))
}

#[inline(always)]
fn next(text: &str, mut at: usize, find: impl Fn(&[u8]) -> Option<usize>) -> usize {
    while let Some(found) = find(&text.as_bytes()[at..]) {
        at += found;
        if text[at..].starts_with([METASPACE, ' ']) {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// The marks before which a text may be cut without a change of its tokens: those that no merge of the model joins to the
/// character before them. Marks in a row stay together, since many models merge them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarkCuts {
    /// A bit for each ASCII character to which a merge joins a mark.
    joined: u128,
}

impl MarkCuts {
    /// Forbids cuts between `c` and a mark. False if `c` is not ASCII, for which there is no bit.
    fn forbid_after(&mut self, c: char) -> bool {
        if c.is_ascii() {
            self.joined |= 1 << u32::from(c);
        }
        c.is_ascii()
    }

    /// Forbids the cuts that would divide a token; `None` if there is no bit for one of them.
    pub(crate) fn without_those_inside(mut self, token: &str) -> Option<Self> {
        for (at, _) in token.match_indices(METASPACE) {
            let last = token[..at].chars().next_back().filter(|last| *last != METASPACE);
            if last.is_some_and(|last| !self.forbid_after(last)) {
                return None;
            }
        }
        Some(self)
    }

    /// Hands the parts of the text at `place` to `take`: the shortest that the cuts allow, of more than a few bytes. Without
    /// `cuts`, the text stays whole.
    #[inline]
    pub(crate) fn each_part(
        cuts: Option<Self>,
        text: &str,
        place: Range<usize>,
        mut take: impl FnMut(Range<usize>),
    ) {
        let (mut from, end) = (place.start, place.end);
        if let Some(cuts) = cuts {
            while end - from > SHORT_BYTES {
                let next = cuts.end(&text[..end], from, &[METASPACE], next_mark);
                take(from..next);
                from = next;
            }
        }
        if from < end {
            take(from..end);
        }
    }

    /// Whether the text may be cut between a character that ends with this byte and a mark.
    #[inline]
    pub(crate) fn allow_after(self, byte: u8) -> bool {
        // Most models join no mark to anything.
        self.joined == 0 || !byte.is_ascii() || self.joined >> byte & 1 == 0
    }

    /// Returns the end of the part of `text` that starts at `from`: its opening marks, and what follows up to the next
    /// mark before which the text may be cut. `marks` stand for a mark, and `next` finds the first of them from a place
    /// on.
    #[inline(always)]
    pub(crate) fn end(
        self,
        text: &str,
        from: usize,
        marks: &[char],
        next: impl Fn(&str, usize) -> usize,
    ) -> usize {
        let mut at = from;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let opening = rest.len() - rest.trim_start_matches(marks).len();
            at = next(text, at + opening);
            if text.as_bytes()[..at].last().is_none_or(|byte| self.allow_after(*byte)) {
                break;
            }
        }
        at
    }
}
