//! Normalized text with the span of the original that each byte comes from.
//!
//! The rules are those of `NormalizedString` in Hugging Face tokenizers, so that offsets agree. A text is rewritten as
//! characters with a change each: 0 replaces the next character; 1 inserts one with the span of the previous character; -n
//! replaces the next character and drops the n after it.

use std::ops::Range;

use crate::byte_alphabet::{byte_to_char, spell_bytes};
use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible,
};

/// A range of bytes of the original.
pub(crate) type Span = (usize, usize);

/// A character and how it changes the text.
pub(crate) type Change = (char, isize);

/// A text with a span of the original for each byte.
#[derive(Clone, Debug)]
pub(crate) struct AlignedText {
    pub(crate) text: String,
    /// For each byte of the text, the range of the original that it comes from.
    pub(crate) spans: Vec<Span>,
    /// The start of the text in the original.
    origin: usize,
}

impl AlignedText {
    /// Returns a part of the original that starts at `origin`.
    pub(crate) fn new(text: &str, origin: usize) -> Self {
        let spans = text.char_indices().flat_map(|(at, c)| {
            let span = (origin + at, origin + at + c.len_utf8());
            std::iter::repeat_n(span, c.len_utf8())
        });
        Self { text: text.to_owned(), spans: spans.collect(), origin }
    }

    /// Returns a text whose bytes come from `spans`.
    pub(crate) fn from_spans(text: String, spans: Vec<Span>) -> Self {
        let origin = spans.first().map_or(0, |span| span.0);
        Self { text, spans, origin }
    }

    /// Returns a part of the text with its spans.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        Self::from_spans(self.text[range.clone()].to_owned(), self.spans[range].to_vec())
    }

    /// Returns the span of a part of the text.
    pub(crate) fn span(&self, range: Range<usize>) -> Span {
        let start = self.spans.get(range.start).map_or(self.origin, |first| first.0);
        match self.spans.get(range) {
            Some([.., last]) => (start, last.1),
            _ => (start, start),
        }
    }

    /// Rewrites the text by `changes`, after dropping its first `skipped` characters.
    pub(crate) fn change(&mut self, changes: impl IntoIterator<Item = Change>, skipped: usize) {
        let mut chars = self.text.chars().map(char::len_utf8);
        let mut at: usize = chars.by_ref().take(skipped).sum();
        let (mut text, mut spans) = (String::with_capacity(self.text.len()), Vec::with_capacity(at));
        let nowhere = (self.origin, self.origin);
        for (c, change) in changes {
            let place = if change > 0 { at.checked_sub(1) } else { Some(at) };
            let span = place.and_then(|place| self.spans.get(place)).copied().unwrap_or(nowhere);
            if change <= 0 {
                at += chars.by_ref().take(1 + change.unsigned_abs()).sum::<usize>();
            }
            text.push(c);
            spans.extend(std::iter::repeat_n(span, c.len_utf8()));
        }
        (self.text, self.spans) = (text, spans);
    }

    /// Replaces each character by another.
    pub(crate) fn map(&mut self, map: impl Fn(char) -> char) {
        let changes: Vec<Change> = self.text.chars().map(|c| (map(c), 0)).collect();
        self.change(changes, 0);
    }

    /// Replaces each character by those that `write` appends for it.
    pub(crate) fn expand(&mut self, mut write: impl FnMut(char, &mut Vec<Change>)) {
        let mut changes = Vec::with_capacity(self.text.len());
        self.text.chars().for_each(|c| write(c, &mut changes));
        self.change(changes, 0);
    }

    /// Keeps only the characters for which `keep` holds.
    pub(crate) fn filter(&mut self, keep: impl Fn(char) -> bool) {
        let (mut changes, mut skipped): (Vec<Change>, usize) = (Vec::new(), 0);
        for c in self.text.chars() {
            match (keep(c), changes.last_mut()) {
                (true, _) => changes.push((c, 0)),
                (false, Some(last)) => last.1 -= 1,
                (false, None) => skipped += 1,
            }
        }
        self.change(changes, skipped);
    }

    /// Converts to lower case, character by character.
    pub(crate) fn lowercase(&mut self) {
        self.expand(|c, out| out.extend(c.to_lowercase().zip([0, 1, 1])));
    }

    /// Inserts `text` before this one, with the span of the first character.
    pub(crate) fn prepend(&mut self, text: &str) {
        if let Some(first) = self.spans.first().copied() {
            self.text.insert_str(0, text);
            self.spans.splice(0..0, std::iter::repeat_n(first, text.len()));
        }
    }

    /// Keeps only a part of the text.
    pub(crate) fn keep(&mut self, range: Range<usize>) {
        self.text = self.text[range.clone()].to_owned();
        self.spans = self.spans[range].to_vec();
    }

    /// Puts `content` in place of each range, with the span of the last character before the end of the range.
    pub(crate) fn replace(&mut self, ranges: &[Range<usize>], content: &str) {
        let (mut text, mut spans) = (String::with_capacity(self.text.len()), Vec::new());
        let mut last = 0;
        for range in ranges {
            text.push_str(&self.text[last..range.start]);
            spans.extend_from_slice(&self.spans[last..range.start]);
            let before = range.end.checked_sub(1).and_then(|at| self.spans.get(at)).copied();
            text.push_str(content);
            spans.extend(std::iter::repeat_n(before.unwrap_or((self.origin, self.origin)), content.len()));
            last = range.end;
        }
        text.push_str(&self.text[last..]);
        spans.extend_from_slice(&self.spans[last..]);
        (self.text, self.spans) = (text, spans);
    }

    /// Spells each byte as GPT-2's printable character.
    pub(crate) fn spell_bytes(&mut self) {
        let spans = self.text.bytes().zip(&self.spans);
        self.spans =
            spans.flat_map(|(b, span)| std::iter::repeat_n(*span, byte_to_char(b).len_utf8())).collect();
        self.text = spell_bytes(&self.text);
    }

    /// Applies a Unicode normalization form: with or without compatibility forms, composed or decomposed.
    pub(crate) fn unicode(&mut self, is_compatible: bool, is_composed: bool) {
        if self.text.is_ascii() {
            return;
        }
        let mut changes: Vec<Change> = Vec::with_capacity(self.text.len());
        let mut start_of_marks = 0;
        for c in self.text.chars() {
            let mut change = 0;
            let push = |part: char| {
                if canonical_combining_class(part) == 0 {
                    order(&mut changes[start_of_marks..]);
                    start_of_marks = changes.len() + 1;
                }
                changes.push((part, change));
                change = 1;
            };
            if is_compatible { decompose_compatible(c, push) } else { decompose_canonical(c, push) }
        }
        order(changes.get_mut(start_of_marks..).unwrap_or_default());
        self.change(if is_composed { composed(changes) } else { changes }, 0);
    }
}

/// Sorts marks by combining class; the order within a class stays.
fn order(marks: &mut [Change]) {
    marks.sort_by_key(|mark| canonical_combining_class(mark.0));
}

/// Composes decomposed characters. A character that is composed into another is dropped.
fn composed(changes: Vec<Change>) -> Vec<Change> {
    let mut out = Vec::with_capacity(changes.len());
    let mut waiting: Vec<Change> = Vec::new();
    let mut starter: Option<Change> = None;
    let mut last_class = None;
    for (c, change) in changes {
        let class = canonical_combining_class(c);
        let Some(onto) = starter else {
            if class == 0 {
                starter = Some((c, change));
            } else {
                out.push((c, change));
            }
            continue;
        };
        let is_blocked = last_class.is_some_and(|last| last >= class);
        if let Some(both) = compose(onto.0, c).filter(|_| !is_blocked) {
            starter = Some((both, onto.1 + change - 1));
        } else if class == 0 {
            out.push(onto);
            out.append(&mut waiting);
            (starter, last_class) = (Some((c, change)), None);
        } else {
            waiting.push((c, change));
            last_class = Some(class);
        }
    }
    out.extend(starter);
    out.append(&mut waiting);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    proptest! {
        #[test]
        fn forms_are_those_of_the_standard_and_come_from_the_text(text in "(\\PC|[e\u{301}\u{327}\u{344}\u{AC00}-\u{AC1F}\u{1100}-\u{1112}\u{1161}\u{11A8}ﬁ½])*") {
            let forms: [(bool, bool, String); 4] = [
                (false, true, text.nfc().collect()),
                (false, false, text.nfd().collect()),
                (true, true, text.nfkc().collect()),
                (true, false, text.nfkd().collect()),
            ];
            for (is_compatible, is_composed, form) in forms {
                let mut aligned = AlignedText::new(&text, 7);
                aligned.unicode(is_compatible, is_composed);
                prop_assert_eq!(&aligned.text, &form);
                prop_assert_eq!(aligned.spans.len(), form.len());
                prop_assert!(aligned.spans.iter().all(|span| span.0 >= 7 && span.1 <= 7 + text.len()));
            }
        }
    }

    #[test]
    fn changes_keep_places() {
        let mut text = AlignedText::new("\u{1}Ae\u{301}ﬁ", 10);
        text.filter(|c| c != '\u{1}');
        text.unicode(true, true);
        text.lowercase();
        assert_eq!(text.text, "aéfi");
        // The accent is dropped after its letter, so the span is that of the letter alone, as in Hugging Face
        // tokenizers.
        assert_eq!(text.spans, [(11, 12), (12, 13), (12, 13), (15, 18), (15, 18)]);
        text.prepend("▁");
        assert_eq!((text.span(0..3), text.span(0..4), text.span(3..8)), ((11, 12), (11, 12), (11, 18)));
    }
}
