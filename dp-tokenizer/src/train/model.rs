//! The unigram model under training: expectation–maximisation, and pruning.

use super::lattice::{Lattices, MAX_PIECES, Scratch, Span};
use super::seeds::{Place, Seed, Seeds};

/// The least count of a candidate of several characters. A candidate that occurs once would replace parts that many
/// words share.
const LEAST_SEED: f64 = 2.0;

/// The most characters of a candidate that occurs only in invented words. A longer one is more often a chance of the
/// draw than part of a real word.
const MAX_INVENTED_CHARS: u8 = 3;

/// The pieces in training. The first `characters` pieces are single characters and are never dropped.
pub(super) struct Model<'a> {
    words: &'a [(String, f64)],
    /// A place of each piece in some word.
    pieces: Vec<Span>,
    /// The log-probability of each piece.
    scores: Vec<f64>,
    characters: usize,
    lattices: Lattices,
    scratch: Scratch,
}

impl<'a> Model<'a> {
    /// Starts from characters and at most `seed_size` longer pieces, those that cover most. Each piece occurs in some
    /// word and has at most `most_chars` characters.
    ///
    /// `invented` says which words a release did not find; it may be empty.
    pub(super) fn new(
        words: &'a [(String, f64)],
        invented: &[bool],
        seed_size: usize,
        most_chars: Option<u8>,
    ) -> Self {
        let mut seeds = Seeds::of(words);
        let mut longer = std::mem::take(&mut seeds.longer);
        let is_real = |place: &Place| invented.get(place.word as usize) != Some(&true);
        longer.retain(|seed| {
            let is_likely = seed.chars <= MAX_INVENTED_CHARS || seeds.places(seed).iter().any(is_real);
            seed.count >= LEAST_SEED && seed.chars <= most_chars.unwrap_or(u8::MAX) && is_likely
        });
        let value = |seed: &Seed| seed.count * f64::from(seed.chars);
        let seed_size = seed_size.min(MAX_PIECES - seeds.characters.len());
        if longer.len() > seed_size {
            // The sort is stable: of equals the first ones stay.
            longer.sort_by(|a, b| value(b).total_cmp(&value(a)));
            longer.truncate(seed_size);
        }
        let all = || seeds.characters.iter().chain(&longer);
        let total = libm::log(all().map(value).sum());
        let pieces = all().map(|seed| {
            let place = &seeds.places(seed)[0];
            Span { word: place.word, from: place.from, chars: seed.chars }
        });
        let lengths = words.iter().map(|(word, _)| word.chars().count());
        Self {
            words,
            pieces: pieces.collect(),
            scores: all().map(|seed| libm::log(value(seed)) - total).collect(),
            characters: seeds.characters.len(),
            lattices: Lattices::new(lengths, all().map(|seed| (seed.chars, seeds.places(seed)))),
            scratch: Scratch::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn characters(&self) -> usize {
        self.characters
    }

    /// Returns the pieces with their scores, characters first.
    pub(super) fn pieces(&self) -> Vec<(&str, f64)> {
        let text = |span: &Span| {
            let word = &self.words[span.word as usize].0;
            let mut ends = word.char_indices().map(|(at, _)| at).chain([word.len()]).skip(span.from.into());
            let from = ends.next().unwrap_or(0);
            &word[from..ends.nth(usize::from(span.chars) - 1).unwrap_or(word.len())]
        };
        self.pieces.iter().map(text).zip(self.scores.iter().copied()).collect()
    }

    /// Takes one step of expectation–maximisation. Pieces expected less than half a time are dropped, unless fewer than
    /// `least` would stay.
    pub(super) fn em_step(&mut self, least: usize) {
        let probability = self.scaled_probabilities();
        let mut counts = vec![0.0; self.pieces.len()];
        for (word, (_, count)) in self.words.iter().enumerate() {
            self.lattices.add_expected(word, *count, &probability, &mut counts, &mut self.scratch);
        }
        let mut keep: Vec<bool> = (0..).zip(&counts).map(|(i, &n)| i < self.characters || n >= 0.5).collect();
        if keep.iter().filter(|keep| **keep).count() < least {
            keep.fill(true);
        }
        let total = digamma(counts.iter().zip(&keep).filter(|(_, k)| **k).map(|(c, _)| c).sum());
        for (score, &count) in self.scores.iter_mut().zip(&counts) {
            // A piece that no cut uses keeps a score far below the others.
            *score = digamma(count.max(0.1)) - total;
        }
        self.keep(&keep);
    }

    /// Returns the probabilities with a factor per character that brings whole words near 1, so that products stay in
    /// range.
    fn scaled_probabilities(&self) -> Vec<f64> {
        let chars = || self.pieces.iter().map(|span| f64::from(span.chars));
        let (mut bits, mut length) = (0.0, 0.0);
        for (&score, n) in self.scores.iter().zip(chars()) {
            let p = libm::exp(score);
            bits -= p * score;
            length += p * n;
        }
        let factor = bits / length;
        self.scores.iter().zip(chars()).map(|(&s, n)| libm::exp(s + n * factor)).collect()
    }

    fn keep(&mut self, keep: &[bool]) {
        let mut next = 0;
        let renumber: Vec<Option<u32>> = keep
            .iter()
            .map(|&k| {
                k.then(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect();
        self.lattices.retain(&renumber);
        let mut flags = keep.iter();
        self.pieces.retain(|_| flags.next() == Some(&true));
        let mut flags = keep.iter();
        self.scores.retain(|_| flags.next() == Some(&true));
    }

    /// Keeps `target` pieces: all characters, and those without which the best cuts would need the most additional
    /// tokens.
    ///
    /// SentencePiece keeps the pieces without which the words would be least likely, and drops the least probable ones
    /// in the end. Its cuts have more tokens.
    pub(super) fn prune(&mut self, target: usize) {
        let used = self.usage();
        let mut parts = Vec::new();
        let mut saved: Vec<(f64, usize)> = Vec::with_capacity(self.pieces.len());
        for (piece, &count) in used.iter().enumerate().skip(self.characters) {
            let mut tokens = 0.0;
            if count > 0.0 {
                self.lattices.best_parts(self.pieces[piece], &self.scores, &mut parts, &mut self.scratch);
                tokens = count * (parts.len() as f64 - 1.0);
            }
            saved.push((tokens, piece));
        }
        let by_score = |a: usize, b: usize| self.scores[b].total_cmp(&self.scores[a]).then(a.cmp(&b));
        saved.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| by_score(a.1, b.1)));
        let mut keep = vec![false; self.pieces.len()];
        keep[..self.characters].fill(true);
        for &(_, piece) in saved.iter().take(target.saturating_sub(self.characters)) {
            keep[piece] = true;
        }
        self.keep(&keep);
    }

    /// Returns how often the best cuts use each piece.
    fn usage(&mut self) -> Vec<f64> {
        let mut used = vec![0.0; self.pieces.len()];
        let mut path = Vec::new();
        for (word, (_, count)) in self.words.iter().enumerate() {
            self.lattices.best_path(word, &self.scores, &mut path, &mut self.scratch);
            path.iter().for_each(|&p| used[p as usize] += count);
        }
        used
    }
}

/// Returns the derivative of ln Γ, for arguments above 0.
///
/// # References
/// Abramowitz and Stegun 6.3.5 and 6.3.18.
fn digamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 7.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let w = 1.0 / (x * x);
    let series = w * (1.0 / 12.0 - w * (1.0 / 120.0 - w * (1.0 / 252.0 - w * (1.0 / 240.0 - w / 132.0))));
    shift + libm::log(x) - 0.5 / x - series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digamma_has_its_known_values() {
        // Oracle: −γ and −γ − 2 ln 2; mpmath.digamma(100) = 4.600161852738087.
        for (x, want) in
            [(1.0, -0.577_215_664_901_532_9), (0.5, -1.963_510_026_021_423_5), (100.0, 4.600_161_852_738_087)]
        {
            assert!((digamma(x) - want).abs() < 1e-10, "{x}: {}", digamma(x));
        }
    }
}
