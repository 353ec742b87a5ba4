//! The lattice of all segmentations of words into pieces, built once, so that each round of training only walks arrays.

use std::ops::Range;

use super::seeds::{MAX_PIECE_CHARS, MAX_WORD_CHARS, Place};

/// The most pieces that an edge can distinguish.
pub(super) const MAX_PIECES: usize = 1 << (32 - LENGTH_BITS);
const LENGTH_BITS: u32 = 5;
const _: () = assert!(MAX_PIECE_CHARS < 1 << LENGTH_BITS);

/// A piece that ends at a character: its number, and its length in characters.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Edge(u32);

impl Edge {
    fn new(piece: u32, chars: u8) -> Self {
        Self(piece << LENGTH_BITS | u32::from(chars))
    }

    fn piece(self) -> usize {
        (self.0 >> LENGTH_BITS) as usize
    }

    fn chars(self) -> usize {
        (self.0 & ((1 << LENGTH_BITS) - 1)) as usize
    }
}

/// The segmentations of many words.
pub(super) struct Lattices {
    /// The number of each word's first character, counted over all words; one more entry than words.
    words: Vec<usize>,
    /// For each character, the index of the first edge that ends with it; one more entry than characters.
    starts: Vec<usize>,
    edges: Vec<Edge>,
}

/// Consecutive characters of a word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) word: u32,
    pub(super) from: u8,
    pub(super) chars: u8,
}

/// Reusable memory of the searches: an entry for each position between characters.
pub(super) struct Scratch {
    forward: [f64; MAX_WORD_CHARS + 1],
    backward: [f64; MAX_WORD_CHARS + 1],
    last: [u32; MAX_WORD_CHARS + 1],
}

impl Default for Scratch {
    fn default() -> Self {
        let zero = [0.0; MAX_WORD_CHARS + 1];
        Self { forward: zero, backward: zero, last: [0; MAX_WORD_CHARS + 1] }
    }
}

impl Lattices {
    /// Returns the cuts of words of these lengths into pieces. Each piece is given by its length and its places.
    pub(super) fn new<'a>(
        lengths: impl Iterator<Item = usize>,
        pieces: impl Iterator<Item = (u8, &'a [Place])> + Clone,
    ) -> Self {
        let mut words = vec![0];
        let mut characters = 0;
        for length in lengths {
            characters += length;
            words.push(characters);
        }
        let mut starts = vec![0; characters + 2];
        let last =
            |place: &Place, chars: u8| words[place.word as usize] + usize::from(place.from + chars) - 1;
        for (chars, places) in pieces.clone() {
            places.iter().for_each(|place| starts[last(place, chars) + 2] += 1);
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        // The entry after a character's moves from the beginning of its edges to that of the next one's.
        let mut edges = vec![Edge(0); starts.last().copied().unwrap_or(0)];
        for (piece, (chars, places)) in (0..).zip(pieces) {
            for place in places {
                let next = &mut starts[last(place, chars) + 1];
                edges[*next] = Edge::new(piece, chars);
                *next += 1;
            }
        }
        starts.pop();
        Self { words, starts, edges }
    }

    /// Renumbers pieces, dropping those whose new number is `None`.
    pub(super) fn retain(&mut self, renumber: &[Option<u32>]) {
        let (mut kept, mut from) = (0, 0);
        for end in &mut self.starts[1..] {
            for at in from..*end {
                let edge = self.edges[at];
                if let Some(piece) = renumber[edge.piece()] {
                    self.edges[kept] = Edge::new(piece, edge.chars() as u8);
                    kept += 1;
                }
            }
            from = *end;
            *end = kept;
        }
        self.edges.truncate(kept);
    }

    /// Returns the numbers of all characters of a word.
    fn characters(&self, word: usize) -> Range<usize> {
        self.words[word]..self.words[word + 1]
    }

    fn ending(&self, character: usize) -> &[Edge] {
        &self.edges[self.starts[character]..self.starts[character + 1]]
    }

    /// Adds to `counts` how often each piece is expected in word number `word`, times `weight`.
    ///
    /// `probability` may carry a factor a character: each whole path then carries the same power of it, which cancels.
    pub(super) fn add_expected(
        &self,
        word: usize,
        weight: f64,
        probability: &[f64],
        counts: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let characters = self.characters(word);
        let (first, n) = (characters.start, characters.len());
        let Scratch { forward, backward, .. } = scratch;
        forward[0] = 1.0;
        for to in 1..=n {
            let ways = self.ending(first + to - 1).iter();
            forward[to] = ways.map(|e| forward[to - e.chars()] * probability[e.piece()]).sum();
        }
        let total = forward[n];
        if !(total > f64::MIN_POSITIVE && total.is_finite()) {
            return self.add_expected_in_logs(word, weight, probability, counts);
        }
        backward[..n].fill(0.0);
        backward[n] = weight / total;
        for to in (1..=n).rev() {
            let after = backward[to];
            for e in self.ending(first + to - 1) {
                let from = to - e.chars();
                let onwards = after * probability[e.piece()];
                backward[from] += onwards;
                counts[e.piece()] += forward[from] * onwards;
            }
        }
    }

    /// Does what [`Self::add_expected`] does, where the product of probabilities leaves the range of floats.
    fn add_expected_in_logs(&self, word: usize, weight: f64, probability: &[f64], counts: &mut [f64]) {
        let characters = self.characters(word);
        let (first, n) = (characters.start, characters.len());
        let mut forward = vec![f64::NEG_INFINITY; n + 1];
        let mut backward = forward.clone();
        forward[0] = 0.0;
        backward[n] = 0.0;
        let log = |e: &Edge| libm::log(probability[e.piece()]);
        for to in 1..=n {
            for e in self.ending(first + to - 1) {
                forward[to] = log_sum(forward[to], forward[to - e.chars()] + log(e));
            }
        }
        if !forward[n].is_finite() {
            return;
        }
        for to in (1..=n).rev() {
            for e in self.ending(first + to - 1) {
                let from = to - e.chars();
                backward[from] = log_sum(backward[from], backward[to] + log(e));
                let path = forward[from] + log(e) + backward[to] - forward[n];
                counts[e.piece()] += weight * libm::exp(path);
            }
        }
    }

    /// Writes the pieces of the best path of word number `word` to `path`, last first; none if there is no path.
    pub(super) fn best_path(&self, word: usize, score: &[f64], path: &mut Vec<u32>, scratch: &mut Scratch) {
        self.search(self.characters(word), 0, score, path, scratch);
    }

    /// Does what [`Self::best_path`] does for a part of a word, without the piece that is the whole part.
    pub(super) fn best_parts(&self, span: Span, score: &[f64], path: &mut Vec<u32>, scratch: &mut Scratch) {
        let first = self.words[span.word as usize] + usize::from(span.from);
        let chars = usize::from(span.chars);
        self.search(first..first + chars, chars, score, path, scratch);
    }

    /// Finds the best path through these characters by pieces of any length but `avoid`.
    fn search(
        &self,
        characters: Range<usize>,
        avoid: usize,
        score: &[f64],
        path: &mut Vec<u32>,
        scratch: &mut Scratch,
    ) {
        let (first, n) = (characters.start, characters.len());
        let Scratch { forward, last, .. } = scratch;
        path.clear();
        forward[0] = 0.0;
        for to in 1..=n {
            let (mut best, mut by) = (f64::NEG_INFINITY, 0);
            for e in self.ending(first + to - 1) {
                // A piece that opens before the first character belongs to more of the word.
                if e.chars() <= to && e.chars() != avoid {
                    let candidate = forward[to - e.chars()] + score[e.piece()];
                    if candidate > best {
                        (best, by) = (candidate, e.0);
                    }
                }
            }
            (forward[to], last[to]) = (best, by);
        }
        let mut at = n;
        while at > 0 && forward[n] > f64::NEG_INFINITY {
            let edge = Edge(last[at]);
            path.push(edge.piece() as u32);
            at -= edge.chars();
        }
    }
}

fn log_sum(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + libm::log1p(libm::exp(low - high)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECES: [&str; 5] = ["a", "b", "ab", "ba", "aba"];
    const PROBABILITY: [f64; 5] = [0.3, 0.25, 0.2, 0.15, 0.1];

    fn lattices(words: &[&str], pieces: &[&str]) -> Lattices {
        let places = |piece: &&str| -> Vec<Place> {
            let all = (0..)
                .zip(words)
                .flat_map(|(word, text)| (0..text.len()).map(move |at| (word, at, &text[at..])));
            let found = all.filter(|(.., rest)| rest.starts_with(piece));
            found.map(|(word, at, _)| Place { word, at: at as u16, from: at as u8 }).collect()
        };
        let places: Vec<(u8, Vec<Place>)> = pieces.iter().map(|p| (p.len() as u8, places(p))).collect();
        Lattices::new(
            words.iter().map(|w| w.len()),
            places.iter().map(|(chars, places)| (*chars, &places[..])),
        )
    }

    fn expected(word: &str, probability: &[f64]) -> Vec<f64> {
        let mut counts = vec![0.0; 5];
        lattices(&[word], &PIECES).add_expected(0, 2.0, probability, &mut counts, &mut Scratch::default());
        counts
    }

    /// Returns all segmentations with their probabilities: the oracle.
    fn segmentations(word: &str) -> Vec<(Vec<usize>, f64)> {
        if word.is_empty() {
            return vec![(vec![], 1.0)];
        }
        let mut out = vec![];
        for (i, piece) in PIECES.iter().enumerate().filter(|(_, p)| word.starts_with(**p)) {
            for (mut path, p) in segmentations(&word[piece.len()..]) {
                path.push(i);
                out.push((path, p * PROBABILITY[i]));
            }
        }
        out
    }

    #[test]
    fn expected_counts_are_those_of_all_segmentations() {
        for word in ["a", "ab", "abab", "abaababa"] {
            let all = segmentations(word);
            let total: f64 = all.iter().map(|s| s.1).sum();
            let mut want = [0.0; 5];
            for (path, p) in &all {
                path.iter().for_each(|&i| want[i] += 2.0 * p / total);
            }
            let got = expected(word, &PROBABILITY);
            assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-12), "{word}: {got:?} {want:?}");
        }
    }

    #[test]
    fn a_factor_a_character_and_underflow_change_nothing() {
        let word = "ab".repeat(120);
        let usual = expected(&word, &PROBABILITY);
        for factor in [1e-3_f64, 1e-30, 1e30] {
            let scaled: Vec<f64> =
                PROBABILITY.iter().zip(PIECES).map(|(p, s)| p * factor.powi(s.len() as i32)).collect();
            let got = expected(&word, &scaled);
            assert!(
                got.iter().zip(&usual).all(|(g, u)| (g - u).abs() < 1e-9 * u.max(1.0)),
                "{factor}: {got:?}"
            );
        }
    }

    #[test]
    fn the_best_path_is_that_of_all_segmentations_and_parts_leave_the_whole_out() {
        let score: Vec<f64> = PROBABILITY.iter().map(|p| p.ln()).collect();
        let (mut path, mut scratch) = (vec![], Scratch::default());
        let words = ["b", "babab", "abaababa"];
        let all = lattices(&words, &PIECES);
        for (number, word) in words.iter().enumerate() {
            all.best_path(number, &score, &mut path, &mut scratch);
            let best = segmentations(word).into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0;
            assert_eq!(path.iter().map(|&p| p as usize).collect::<Vec<_>>(), best, "{word}");
        }
        // The part is the "aba" within "babab": "a" and "ba" are better than "ab" and "a".
        let span = Span { word: 1, from: 1, chars: 3 };
        all.best_parts(span, &score, &mut path, &mut scratch);
        assert_eq!(path, [0, 2]);
        all.best_parts(Span { word: 0, from: 0, chars: 1 }, &score, &mut path, &mut scratch);
        assert!(path.is_empty());
    }

    #[test]
    fn dropped_pieces_leave_the_others_as_they_were() {
        let words = ["ab", "aba", "b"];
        let mut all = lattices(&words, &PIECES);
        all.retain(&[Some(0), Some(1), None, Some(2), None]);
        let fewer = lattices(&words, &["a", "b", "ba"]);
        assert_eq!((all.words, all.starts, all.edges), (fewer.words, fewer.starts, fewer.edges));
    }
}
