//! T5's objectives: span corruption and prefix language modelling.
//!
//! # References
//! Raffel et al. 2020, <https://arxiv.org/abs/1910.10683>, sections 3.1.4 and 3.3; lengths as the authors' code.

use mechanisms::Stream;

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
        let CorruptionLengths { targets, spans, .. } = corrupted(text.len());
        let noise = targets - spans - 1;
        let (cut, kept) = (segments(noise, spans, stream), segments(text.len() - noise, spans, stream));
        let (mut input, mut targets, mut rest) = (Vec::new(), Vec::new(), text);
        for ((cut, kept), &sentinel) in cut.into_iter().zip(kept).zip(&self.sentinels) {
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
}

/// The place at which a window is divided into the part that is read and the part that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// A random place.
    Random,
    /// After this many tokens of a whole window, and in the same proportion in a shorter one.
    Fixed { read: usize, written: usize },
}

impl Split {
    /// Returns the split of a plan. The end-of-text token takes a place in each part.
    pub fn of(model: &plan::Model) -> Self {
        match model.decoder_context {
            None => Self::Random,
            Some(decoder) => Self::Fixed { read: model.context as usize - 1, written: decoder as usize - 1 },
        }
    }

    /// Tokens of a window.
    pub fn window(self, context: usize) -> usize {
        match self {
            Self::Random => context,
            Self::Fixed { read, written } => read + written,
        }
    }

    /// Returns the number of tokens that are read out of `length`, at least 2.
    fn at(self, length: usize, stream: &mut Stream) -> usize {
        match self {
            Self::Random => 1 + stream.below(length as u64 - 1) as usize,
            Self::Fixed { read, written } => {
                let share = read as f64 / (read + written) as f64;
                ((length as f64 * share).round() as usize).clamp(1, length - 1)
            }
        }
    }
}

/// The window up to a cut, and the rest as targets.
pub(super) fn prefix(text: &[u32], eos: u32, start: u32, split: Split, stream: &mut Stream) -> Example {
    if text.len() < 2 {
        return Example::default();
    }
    let (read, written) = text.split_at(split.at(text.len(), stream));
    answer([read, &[eos]].concat(), [written, &[eos]].concat(), start)
}

/// An example whose decoder input is its targets, shifted by the start token.
pub(super) fn answer(input: Vec<u32>, targets: Vec<u32>, start: u32) -> Example {
    let read = &targets[..targets.len() - 1];
    let decoder_input = std::iter::once(&start).chain(read).copied().collect();
    Example { input, decoder_input, targets, ..Example::default() }
}

/// Lengths ≥ 1 of `count` segments of `n` tokens, uniformly among all such divisions.
fn segments(n: usize, count: usize, stream: &mut Stream) -> Vec<usize> {
    let mut edges = choose(count - 1, n - 1, stream);
    edges.push(n - 1);
    let mut last = 0;
    edges.into_iter().map(|edge| edge + 1 - std::mem::replace(&mut last, edge + 1)).collect()
}
