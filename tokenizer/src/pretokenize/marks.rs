//! The mark that stands for a space, and where the next one is.

use crate::short_key::MARK;

/// The mark for a space: U+2581 LOWER ONE EIGHTH BLOCK.
pub(crate) const METASPACE: char = '\u{2581}';

/// The position of the next `▁` from `at` on.
pub(crate) fn next_mark(text: &str, at: usize) -> usize {
    next(text, at, |bytes| memchr::memchr(MARK, bytes))
}

/// The position of the next blank or literal `▁` from `at` on.
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
