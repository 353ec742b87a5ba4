//! Makes examples for BERT's objectives: masked tokens, and the order of two sentences.
//!
//! # References
//! Devlin et al. 2019, <https://arxiv.org/abs/1810.04805>, sections 3.1 and A.1. There the second sentence of a
//! wrong pair comes from another document; here it is the same window's other half, swapped (as in Lan et
//! al. 2020, <https://arxiv.org/abs/1909.11942>), since an example must belong to one privacy unit.

use mechanisms::Stream;

use network::lengths::MASKED_SHARE;

use super::choose;
use network::Example;

/// Masked LM with its special tokens.
#[derive(Clone, Debug)]
pub(super) struct MaskedLm {
    /// `[CLS]`, the first token.
    pub classify: u32,
    /// `[SEP]`, after each sentence.
    pub separate: u32,
    /// `[MASK]`, in place of a hidden token.
    pub mask: u32,
    /// Size of the vocabulary that random replacements come from.
    pub vocab_size: u64,
    /// Whether the window is a pair of sentences.
    pub next_sentence: bool,
    /// The tokens after which a text may be divided into two sentences. If none is given, it may be divided anywhere.
    pub sentence_ends: Vec<u32>,
}

impl MaskedLm {
    /// Returns the number of special tokens in the input.
    pub fn special_tokens(&self) -> usize {
        if self.next_sentence { 3 } else { 2 }
    }

    /// Masks the window, which gets its special tokens. 15 % of the window's own tokens are
    /// predicted.
    pub fn example(&self, text: &[u32], stream: &mut Stream) -> Example {
        if text.is_empty() {
            return Example::default();
        }
        let mut example = Example { input: vec![self.classify], ..Example::default() };
        if self.next_sentence && text.len() > 1 {
            let (mut first, mut second) = text.split_at(self.place_between(text, stream));
            let swapped = stream.below(2) == 1;
            if swapped {
                (first, second) = (second, first);
            }
            example.sentence = Some(u32::from(swapped));
            self.push(first, 0, &mut example);
            self.push(second, 1, &mut example);
        } else {
            self.push(text, 0, &mut example);
        }
        self.mask(&mut example, stream);
        example
    }

    /// Makes an example of one sentence with one masked token, between `before` and `after`.
    pub fn question(&self, before: &[u32], after: &[u32]) -> Example {
        Example {
            input: [&[self.classify], before, &[self.mask], after, &[self.separate]].concat(),
            positions: vec![before.len() as u32 + 1],
            ..Example::default()
        }
    }

    /// Returns the place at which the second sentence begins, in a text of at least two tokens.
    fn place_between(&self, text: &[u32], stream: &mut Stream) -> usize {
        let own = text.iter().rposition(|&token| token != self.separate).unwrap_or(0);
        let ends: Vec<usize> =
            (1..=own).filter(|&place| self.sentence_ends.contains(&text[place - 1])).collect();
        match ends[..] {
            [] => 1 + stream.below(text.len() as u64 - 1) as usize,
            _ => ends[stream.below(ends.len() as u64) as usize],
        }
    }

    fn push(&self, sentence: &[u32], segment: u32, example: &mut Example) {
        example.input.extend_from_slice(sentence);
        example.input.push(self.separate);
        example.segments.resize(example.input.len(), segment);
    }

    /// Masks, replaces or keeps each token that is predicted.
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
