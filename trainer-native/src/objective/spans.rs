//! T5's objectives: span corruption and prefix language modelling.
//!
//! # References
//! Raffel et al. 2020, <https://arxiv.org/abs/1910.10683>, sections 3.1.4 and 3.3; lengths as the authors' code.

use mechanisms::Stream;

use super::choose;
use crate::data::Example;

/// Share of the tokens that is cut out.
const NOISE_DENSITY: f64 = 0.15;
/// Mean length of a run.
const MEAN_SPAN: f64 = 3.0;

/// Span corruption and its special tokens.
#[derive(Clone, Debug)]
pub(super) struct SpanCorruption {
    /// One for each run, in this order.
    pub sentinels: Vec<u32>,
    /// The token that the decoder starts from.
    pub start: u32,
}

/// Lengths of span corruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CorruptionLengths {
    /// Tokens of a window.
    pub window: usize,
    /// Tokens of the encoder's input, the end-of-text token included.
    pub input: usize,
    /// Targets, the end-of-text token included.
    pub targets: usize,
    /// Runs cut out.
    pub spans: usize,
}

/// The longest window whose corrupted form fits into `context`, with its lengths.
pub(crate) fn corruption_lengths(context: usize) -> CorruptionLengths {
    let mut longest = corrupted(2);
    while corrupted(longest.window + 1).input <= context {
        longest = corrupted(longest.window + 1);
    }
    longest
}

/// Longest input of the decoder for a network with this `context`.
pub(crate) fn decoder_context(objective: plan::Objective, context: usize) -> usize {
    match objective {
        plan::Objective::SpanCorruption => corruption_lengths(context).targets,
        _ => context,
    }
}

/// The lengths for a window of `window` tokens, at least 2.
fn corrupted(window: usize) -> CorruptionLengths {
    let noise = ((window as f64 * NOISE_DENSITY).round() as usize).clamp(1, window - 1);
    let spans = ((noise as f64 / MEAN_SPAN).round() as usize).clamp(1, window - noise);
    CorruptionLengths { window, input: window - noise + spans + 1, targets: noise + spans + 1, spans }
}

impl SpanCorruption {
    /// The window with each run replaced by its sentinel; targets are the runs, each after its sentinel.
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

/// The window up to a random cut, and the rest as targets.
pub(super) fn prefix(text: &[u32], eos: u32, start: u32, stream: &mut Stream) -> Example {
    if text.len() < 2 {
        return Example::default();
    }
    let (read, written) = text.split_at(1 + stream.below(text.len() as u64 - 1) as usize);
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
