//! Makes examples for T5's objectives: span corruption and prefix language modelling.
//!
//! # References
//! Raffel et al. 2020, <https://arxiv.org/abs/1910.10683>, sections 3.1.4 and 3.3; lengths as the authors' code.

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};

use network::lengths::{CorruptionLengths, corrupted};

use super::choose;
use network::Example;

/// Span corruption and its special tokens.
#[derive(Clone, Debug)]
pub(super) struct SpanCorruption {
    /// The sentinels: one for each run, in this order.
    pub sentinels: Vec<u32>,
    /// The token that the decoder starts from.
    pub start: u32,
}

impl SpanCorruption {
    /// Replaces each run of the window by its sentinel. The targets are the runs, each after its
    /// sentinel.
    pub fn example(&self, text: &[u32], eos: u32, stream: &mut Stream) -> Example {
        if text.len() < 2 {
            return Example::default();
        }
        let (mut input, mut targets, mut rest) = (Vec::new(), Vec::new(), text);
        for (Run { kept, cut }, &sentinel) in Run::draw(text.len(), stream).into_iter().zip(&self.sentinels) {
            let (before, after) = rest.split_at(kept);
            let (run, after) = after.split_at(cut);
            input.extend_from_slice(before);
            input.push(sentinel);
            targets.push(sentinel);
            targets.extend_from_slice(run);
            rest = after;
        }
        input.push(eos);
        targets.push(eos);
        answer(input, targets, self.start)
    }

    /// Returns an example up to the token at `place` of the window, which it predicts last. Returns [`None`] if none of
    /// many draws cuts that place out. A window with a single run is cut at its end only.
    pub fn question(&self, text: &[u32], eos: u32, place: usize) -> Option<Example> {
        /// A place that can be cut out is cut out in at least one of ten draws.
        const DRAWS: u32 = 256;
        let rng = TestRng::from_seed(0);
        let stream = |draw| rng.stream(Purpose::Masking, place as u64, draw);
        if text.len() < 2 {
            return None;
        }
        (0..DRAWS).find_map(|draw| {
            let (mut begin, mut targets) = (0, 0);
            for Run { kept, cut } in Run::draw(text.len(), &mut stream(draw)) {
                begin += kept;
                if (begin..begin + cut).contains(&place) {
                    let whole = self.example(text, eos, &mut stream(draw));
                    let read = targets + 2 + place - begin;
                    let decoder_input = whole.decoder_input[..read].to_vec();
                    return Some(Example { input: whole.input, decoder_input, ..Example::default() });
                }
                begin += cut;
                targets += 1 + cut;
            }
            None
        })
    }
}

/// Tokens that are kept, and the run after them that is cut out.
struct Run {
    kept: usize,
    cut: usize,
}

impl Run {
    /// Draws the runs of a window of `length` tokens, at least 2.
    fn draw(length: usize, stream: &mut Stream) -> Vec<Self> {
        let CorruptionLengths { targets, spans, .. } = corrupted(length);
        let noise = targets - spans - 1;
        let (cut, kept) = (segments(noise, spans, stream), segments(length - noise, spans, stream));
        kept.into_iter().zip(cut).map(|(kept, cut)| Self { kept, cut }).collect()
    }
}

/// The place at which a window is divided into the part that is read and the part that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// A random place.
    Random,
    /// A place after `read` tokens of a whole window, and in the same proportion in a shorter one.
    Fixed { read: usize, written: usize },
}

impl Split {
    /// Returns the split of a plan. If it follows from the two contexts, the end-of-text token takes a place in each.
    pub fn of(model: &plan::Model, training: &plan::Training) -> Self {
        match (training.prefix_split, model.decoder_context) {
            (Some(plan::PrefixSplit { read, written }), _) => {
                Self::Fixed { read: read as usize, written: written as usize }
            }
            (None, Some(decoder)) => {
                Self::Fixed { read: model.context as usize - 1, written: decoder as usize - 1 }
            }
            (None, None) => Self::Random,
        }
    }

    /// Returns the number of tokens of a window.
    pub fn window(self, context: usize) -> usize {
        match self {
            Self::Random => context,
            Self::Fixed { read, written } => read + written,
        }
    }

    /// Returns how many of `length` tokens, at least 2, are read.
    fn at(self, length: usize, stream: &mut Stream) -> usize {
        self.fixed(length).unwrap_or_else(|| 1 + stream.below(length as u64 - 1) as usize)
    }

    /// Returns how many of `length` tokens, at least 2, are read, if it is always the same number.
    pub fn fixed(self, length: usize) -> Option<usize> {
        match self {
            Self::Random => None,
            Self::Fixed { read, written } => {
                let share = read as f64 / (read + written) as f64;
                Some(((length as f64 * share).round() as usize).clamp(1, length - 1))
            }
        }
    }
}

/// Makes an example that reads the window up to a cut and predicts the rest.
pub(super) fn prefix(text: &[u32], eos: u32, start: u32, split: Split, stream: &mut Stream) -> Example {
    if text.len() < 2 {
        return Example::default();
    }
    let (read, written) = text.split_at(split.at(text.len(), stream));
    answer([read, &[eos]].concat(), [written, &[eos]].concat(), start)
}

/// Makes an example whose decoder input is its targets, shifted by the start token.
pub(super) fn answer(input: Vec<u32>, targets: Vec<u32>, start: u32) -> Example {
    let read = &targets[..targets.len() - 1];
    let decoder_input = std::iter::once(&start).chain(read).copied().collect();
    Example { input, decoder_input, targets, ..Example::default() }
}

/// Returns the lengths of `count` segments of `n` tokens: at least 1 each, and uniform among all such divisions.
fn segments(n: usize, count: usize, stream: &mut Stream) -> Vec<usize> {
    let mut edges = choose(count - 1, n - 1, stream);
    edges.push(n - 1);
    let mut last = 0;
    edges.into_iter().map(|edge| edge + 1 - std::mem::replace(&mut last, edge + 1)).collect()
}
