//! BERT's objectives: masked tokens, and how two halves of a text belong together.
//!
//! # References
//! Devlin et al. 2019, <https://arxiv.org/abs/1810.04805>, sections 3.1 and A.1. There the second sentence of a
//! wrong pair comes from another document; here it is the same window's other half, in exchanged order (as Lan et
//! al. 2020, <https://arxiv.org/abs/1909.11942>), since an example must belong to one privacy unit.

use mechanisms::Stream;

use super::choose;
use crate::data::Example;

/// Share of tokens that are predicted.
const MASKED_SHARE: f64 = 0.15;

/// Masked LM with its special tokens.
#[derive(Clone, Debug)]
pub(super) struct MaskedLm {
    /// Comes first.
    pub classify: u32,
    /// Ends each sentence.
    pub separate: u32,
    /// Stands for what is hidden.
    pub mask: u32,
    /// Number of tokens, of which some are exchanged for others.
    pub vocab_size: u64,
    /// Whether the window is a pair of sentences.
    pub next_sentence: bool,
}

/// Most masked places of an example.
#[must_use]
pub fn predictions(context: usize) -> usize {
    (context as f64 * MASKED_SHARE).ceil() as usize
}

impl MaskedLm {
    /// How many tokens of the input are not the window's.
    pub fn special_tokens(&self) -> usize {
        if self.next_sentence { 3 } else { 2 }
    }

    /// The window between its special tokens, with 15 % of its own tokens to be predicted.
    pub fn example(&self, text: &[u32], stream: &mut Stream) -> Example {
        if text.is_empty() {
            return Example::default();
        }
        let mut example = Example { input: vec![self.classify], ..Example::default() };
        if self.next_sentence && text.len() > 1 {
            let (mut first, mut second) = text.split_at(1 + stream.below(text.len() as u64 - 1) as usize);
            let exchanged = stream.below(2) == 1;
            if exchanged {
                (first, second) = (second, first);
            }
            example.sentence = Some(u32::from(exchanged));
            self.push(first, 0, &mut example);
            self.push(second, 1, &mut example);
        } else {
            self.push(text, 0, &mut example);
        }
        self.mask(&mut example, stream);
        example
    }

    fn push(&self, sentence: &[u32], segment: u32, example: &mut Example) {
        example.input.extend_from_slice(sentence);
        example.input.push(self.separate);
        example.segments.resize(example.input.len(), segment);
    }

    /// Hides, exchanges or leaves the tokens that are to be predicted.
    fn mask(&self, example: &mut Example, stream: &mut Stream) {
        let special = |token: u32| token == self.classify || token == self.separate;
        let own: Vec<usize> =
            (0..example.input.len()).filter(|&place| !special(example.input[place])).collect();
        let count = ((own.len() as f64 * MASKED_SHARE).round() as usize).max(1);
        for place in choose(count, own.len(), stream).into_iter().map(|at| own[at]) {
            example.positions.push(place as u32);
            example.targets.push(example.input[place]);
            match stream.below(10) {
                0..8 => example.input[place] = self.mask,
                8 => example.input[place] = stream.below(self.vocab_size) as u32,
                _ => {}
            }
        }
    }
}
