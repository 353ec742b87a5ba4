//! All ways to cut strings into pieces, laid out once so that each round of training only walks arrays.

use crate::encode::DoubleArray;

/// Longest string that is cut, in characters; longer ones are left out of training.
pub(super) const MAX_CHARS: usize = 255;

/// A piece at a place: characters `from..to` of its string.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    from: u8,
    to: u8,
    pub(super) piece: u32,
}

/// The cuts of many strings.
pub(super) struct Lattices {
    /// Where each string's edges begin; one more entry than strings.
    starts: Vec<usize>,
    chars: Vec<u8>,
    /// Within a string, in the order of where they end.
    edges: Vec<Edge>,
}

/// Reusable memory of the searches.
#[derive(Default)]
pub(super) struct Scratch {
    forward: Vec<f64>,
    backward: Vec<f64>,
    last: Vec<u32>,
}

impl Lattices {
    /// The places of `pieces` in `strings`.
    pub(super) fn new<S: AsRef<str>>(strings: &[S], pieces: &DoubleArray) -> Self {
        let mut out = Self { starts: vec![0], chars: Vec::new(), edges: Vec::new() };
        let mut char_at = Vec::new();
        for string in strings {
            let text = string.as_ref();
            char_at.clear();
            char_at.resize(text.len() + 1, 0_u8);
            let chars = text.chars().count();
            if chars <= MAX_CHARS {
                for (number, (at, _)) in text.char_indices().enumerate() {
                    char_at[at] = number as u8;
                }
                char_at[text.len()] = chars as u8;
                let first = out.edges.len();
                for (at, _) in text.char_indices() {
                    pieces.prefixes(&text.as_bytes()[at..], |length, piece| {
                        out.edges.push(Edge { from: char_at[at], to: char_at[at + length], piece });
                    });
                }
                out.edges[first..].sort_by_key(|e| e.to);
            }
            out.chars.push(if chars <= MAX_CHARS { chars as u8 } else { 0 });
            out.starts.push(out.edges.len());
        }
        out
    }

    pub(super) fn len(&self) -> usize {
        self.chars.len()
    }

    /// Renumbers pieces, dropping those whose new number is `None`.
    pub(super) fn retain(&mut self, renumber: &[Option<u32>]) {
        let mut kept = 0;
        for string in 0..self.chars.len() {
            let (from, to) = (self.starts[string], self.starts[string + 1]);
            self.starts[string] = kept;
            for at in from..to {
                if let Some(piece) = renumber[self.edges[at].piece as usize] {
                    self.edges[kept] = Edge { piece, ..self.edges[at] };
                    kept += 1;
                }
            }
        }
        if let Some(last) = self.starts.last_mut() {
            *last = kept;
        }
        self.edges.truncate(kept);
    }

    /// Keeps only the strings whose flag is set.
    pub(super) fn retain_strings(&mut self, keep: &[bool]) {
        let (mut edges, mut strings) = (0, 0);
        for (string, _) in keep.iter().enumerate().filter(|(_, keep)| **keep) {
            let (from, to) = (self.starts[string], self.starts[string + 1]);
            self.edges.copy_within(from..to, edges);
            self.chars[strings] = self.chars[string];
            self.starts[strings] = edges;
            edges += to - from;
            strings += 1;
        }
        self.chars.truncate(strings);
        self.starts.truncate(strings);
        self.starts.push(edges);
        self.edges.truncate(edges);
    }

    fn edges(&self, string: usize) -> &[Edge] {
        &self.edges[self.starts[string]..self.starts[string + 1]]
    }

    /// Adds to `counts` how often each piece is expected in string number `string`, times `weight`.
    ///
    /// `probability` may carry a factor a character: each whole path then carries the same power of it, which cancels.
    pub(super) fn add_expected(
        &self,
        string: usize,
        weight: f64,
        probability: &[f64],
        counts: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let n = self.chars[string] as usize;
        let edges = self.edges(string);
        let Scratch { forward, backward, .. } = scratch;
        forward.clear();
        forward.resize(n + 1, 0.0);
        backward.clear();
        backward.resize(n + 1, 0.0);
        forward[0] = 1.0;
        backward[n] = 1.0;
        for e in edges {
            forward[e.to as usize] += forward[e.from as usize] * probability[e.piece as usize];
        }
        for e in edges.iter().rev() {
            backward[e.from as usize] += backward[e.to as usize] * probability[e.piece as usize];
        }
        let total = forward[n];
        if total > f64::MIN_POSITIVE && total.is_finite() {
            let share = weight / total;
            for e in edges {
                counts[e.piece as usize] += share
                    * forward[e.from as usize]
                    * probability[e.piece as usize]
                    * backward[e.to as usize];
            }
        } else if n > 0 {
            self.add_expected_in_logs(string, weight, probability, counts);
        }
    }

    /// As above where the product of probabilities leaves the range of floats.
    fn add_expected_in_logs(&self, string: usize, weight: f64, probability: &[f64], counts: &mut [f64]) {
        let n = self.chars[string] as usize;
        let edges = self.edges(string);
        let mut forward = vec![f64::NEG_INFINITY; n + 1];
        let mut backward = forward.clone();
        forward[0] = 0.0;
        backward[n] = 0.0;
        let log = |e: &Edge| libm::log(probability[e.piece as usize]);
        for e in edges {
            let step = forward[e.from as usize] + log(e);
            forward[e.to as usize] = log_sum(forward[e.to as usize], step);
        }
        for e in edges.iter().rev() {
            let step = backward[e.to as usize] + log(e);
            backward[e.from as usize] = log_sum(backward[e.from as usize], step);
        }
        if forward[n].is_finite() {
            for e in edges {
                let path = forward[e.from as usize] + log(e) + backward[e.to as usize] - forward[n];
                counts[e.piece as usize] += weight * libm::exp(path);
            }
        }
    }

    /// The pieces of the best path of string number `string`, last first, into `path`; false if there is none.
    /// `avoid_whole` leaves out the piece that covers the whole string.
    pub(super) fn best_path(
        &self,
        string: usize,
        score: &[f64],
        avoid_whole: bool,
        path: &mut Vec<u32>,
        scratch: &mut Scratch,
    ) -> bool {
        const NOWHERE: u32 = u32::MAX;
        let n = self.chars[string] as usize;
        let edges = self.edges(string);
        path.clear();
        scratch.forward.clear();
        scratch.forward.resize(n + 1, f64::NEG_INFINITY);
        scratch.last.clear();
        scratch.last.resize(n + 1, NOWHERE);
        scratch.forward[0] = 0.0;
        for (number, e) in edges.iter().enumerate() {
            if avoid_whole && e.from == 0 && e.to as usize == n {
                continue;
            }
            let candidate = scratch.forward[e.from as usize] + score[e.piece as usize];
            if candidate > scratch.forward[e.to as usize] {
                scratch.forward[e.to as usize] = candidate;
                scratch.last[e.to as usize] = number as u32;
            }
        }
        let mut at = n;
        while at > 0 {
            if scratch.last[at] == NOWHERE {
                path.clear();
                return false;
            }
            let edge = edges[scratch.last[at] as usize];
            path.push(edge.piece);
            at = edge.from as usize;
        }
        n > 0
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

    fn lattice(word: &str) -> Lattices {
        Lattices::new(&[word], &DoubleArray::new(&PIECES))
    }

    fn expected(word: &str, probability: &[f64]) -> Vec<f64> {
        let mut counts = vec![0.0; 5];
        lattice(word).add_expected(0, 2.0, probability, &mut counts, &mut Scratch::default());
        counts
    }

    /// All segmentations with their probabilities; the oracle.
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
    fn the_best_path_can_avoid_the_whole_string() {
        let score: Vec<f64> = PROBABILITY.iter().map(|p| p.ln()).collect();
        let (mut path, mut scratch) = (vec![], Scratch::default());
        assert!(lattice("aba").best_path(0, &score, false, &mut path, &mut scratch));
        assert_eq!(path, [4]);
        assert!(lattice("aba").best_path(0, &score, true, &mut path, &mut scratch));
        assert_eq!(path, [0, 2]);
        assert!(!lattice("a").best_path(0, &score, true, &mut path, &mut scratch));
    }

    #[test]
    fn dropped_pieces_and_strings_leave_the_others_as_they_were() {
        let words = ["ab", "aba", "b"];
        let trie = DoubleArray::new(&PIECES);
        let mut both = Lattices::new(&words, &trie);
        both.retain(&[Some(0), Some(1), None, Some(2), None]);
        both.retain_strings(&[false, true, true]);
        let fewer = DoubleArray::new(&["a", "b", "ba"]);
        let want = Lattices::new(&words[1..], &fewer);
        let list = |l: &Lattices| {
            (0..l.len())
                .map(|s| l.edges(s).iter().map(|e| (e.from, e.to, e.piece)).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        assert_eq!(list(&both), list(&want));
    }
}
