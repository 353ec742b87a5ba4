//! SentencePiece's BPE: merges neighbors into pieces, starting with the piece of the highest score in the whole text.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use crate::encode::DoubleArray;

/// The data of a piece that merging needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) score: f32,
    /// Whether the piece is merged on the way to longer pieces, but cut up again in the end.
    pub(super) unused: bool,
}

/// A part of the text, linked to its neighbors. A part that was merged into its left neighbor is empty.
struct Symbol {
    start: usize,
    end: usize,
    previous: Option<usize>,
    next: Option<usize>,
    /// Whether this is a user-defined symbol, which never merges.
    frozen: bool,
}

/// Two neighbors that together are a piece.
#[derive(PartialEq)]
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    bytes: usize,
}

impl Eq for Pair {}

impl Ord for Pair {
    /// Orders pairs by score, then by place: the greatest is the leftmost of those with the highest score.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns the characters of `text`, with each longest user-defined symbol as one, as (start, end, whether it is a
/// symbol).
pub(super) fn characters<'a>(
    text: &'a str,
    symbols: &'a DoubleArray,
) -> impl Iterator<Item = (usize, usize, bool)> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        let first = text[at..].chars().next()?;
        let mut longest = 0;
        symbols.prefixes(&text.as_bytes()[at..], |length, _| longest = longest.max(length));
        let start = at;
        at += if longest > 0 { longest } else { first.len_utf8() };
        Some((start, at, longest > 0))
    })
}

struct Merging<'a> {
    text: &'a str,
    pieces: &'a HashMap<String, Candidate>,
    symbols: Vec<Symbol>,
    agenda: BinaryHeap<Pair>,
    /// For each unused piece, where the last pair that formed it divides.
    cuts: HashMap<&'a str, usize>,
}

impl Merging<'_> {
    fn consider(&mut self, left: Option<usize>, right: Option<usize>) {
        let (Some(left), Some(right)) = (left, right) else { return };
        let (a, b) = (&self.symbols[left], &self.symbols[right]);
        if a.frozen || b.frozen {
            return;
        }
        let piece = &self.text[a.start..b.end];
        let Some(found) = self.pieces.get(piece) else { return };
        if found.unused {
            self.cuts.insert(piece, a.end - a.start);
        }
        // Adding 0 turns −0 into 0, which `total_cmp` tells apart.
        self.agenda.push(Pair { score: found.score + 0.0, left, right, bytes: piece.len() });
    }

    /// Merges until no pair is left. A pair is left out for good if `drops` says so.
    fn run(&mut self, drops: &mut dyn FnMut() -> bool) {
        for right in 1..self.symbols.len() {
            self.consider(Some(right - 1), Some(right));
        }
        while let Some(Pair { left, right, bytes, .. }) = self.agenda.pop() {
            let size = |symbol: &Symbol| symbol.end - symbol.start;
            let (a, b) = (size(&self.symbols[left]), size(&self.symbols[right]));
            if a == 0 || b == 0 || a + b != bytes || drops() {
                continue;
            }
            let next = self.symbols[right].next;
            self.symbols[left].end = self.symbols[right].end;
            self.symbols[left].next = next;
            self.symbols[right].end = self.symbols[right].start;
            if let Some(next) = next {
                self.symbols[next].previous = Some(left);
            }
            self.consider(self.symbols[left].previous, Some(left));
            self.consider(Some(left), next);
        }
    }
}

/// Calls `take` with the start and end of each piece of `text`, in order. A merge for which `drops` says so is not made,
/// as in training with dropout.
///
/// # References
/// SentencePiece 0.2, `bpe::Model::SampleEncode`.
pub(super) fn merge(
    text: &str,
    pieces: &HashMap<String, Candidate>,
    of_user: &DoubleArray,
    drops: &mut dyn FnMut() -> bool,
    take: &mut impl FnMut(usize, usize),
) {
    let mut symbols: Vec<Symbol> = characters(text, of_user)
        .enumerate()
        .map(|(at, (start, end, frozen))| Symbol {
            start,
            end,
            previous: at.checked_sub(1),
            next: Some(at + 1),
            frozen,
        })
        .collect();
    let Some(last) = symbols.last_mut() else { return };
    last.next = None;
    let mut merging = Merging { text, pieces, symbols, agenda: BinaryHeap::new(), cuts: HashMap::new() };
    merging.run(drops);
    let mut at = Some(0);
    while let Some(index) = at {
        let Symbol { start, end, next, .. } = merging.symbols[index];
        cut_unused(start, end, &merging, take);
        at = next;
    }
}

/// Splits a piece marked unused into the pieces from which it was merged.
fn cut_unused(start: usize, end: usize, merging: &Merging<'_>, take: &mut impl FnMut(usize, usize)) {
    // A stack instead of recursion: the leftmost part on top.
    let mut parts = vec![(start, end)];
    while let Some((start, end)) = parts.pop() {
        let piece = &merging.text[start..end];
        let is_unused = merging.pieces.get(piece).is_some_and(|found| found.unused);
        match merging.cuts.get(piece).filter(|_| is_unused) {
            Some(&cut) => parts.extend([(start + cut, end), (start, start + cut)]),
            None => take(start, end),
        }
    }
}
