//! Tokens on disk, as if the units' text had been encoded in memory.

use std::ops::Range;

use dp_tokenizer::tokens::TokenDataset;

use super::WindowSpec;
use crate::RunError;

/// The units of a token file one after the other, each as [`super::Dataset`] describes it. Tokens stay on disk.
pub(super) struct TokenFile {
    data: TokenDataset,
    eos: u32,
    stretches: Vec<Stretch>,
    length: usize,
}

/// A part of the file, in the units' order.
struct Stretch {
    /// Place of its first token.
    begin: usize,
    /// Its tokens in the file, which an end-of-text token may precede.
    tokens: Range<u64>,
    starts_with_eos: bool,
}

impl TokenFile {
    /// Lays out all units, and says where each begins.
    pub(super) fn new(data: TokenDataset, spec: WindowSpec) -> (Self, Vec<usize>) {
        let (mut stretches, mut starts, mut length) = (Vec::new(), Vec::new(), 0);
        for unit in 0..data.units() {
            starts.push(length);
            let numbers = data.parts_of(unit).unwrap_or_default();
            for part in numbers.iter().filter_map(|&number| data.part(number)) {
                let starts_with_eos =
                    spec.starts_with_eos(part.begins_record, starts.last() == Some(&length));
                stretches.push(Stretch { begin: length, tokens: part.tokens.clone(), starts_with_eos });
                let own = (part.tokens.end - part.tokens.start) as usize;
                length +=
                    usize::from(starts_with_eos) + own + usize::from(spec.ends_with_eos(part.ends_record));
            }
        }
        (Self { data, eos: spec.eos, stretches, length }, starts)
    }

    /// Tokens of all units.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The tokens at these places.
    pub(super) fn read(&self, places: Range<usize>) -> Result<Vec<u32>, RunError> {
        let (mut window, mut some) = (Vec::with_capacity(places.len()), Vec::new());
        let mut at = places.start;
        let first = self.stretches.partition_point(|stretch| stretch.begin <= at).saturating_sub(1);
        for (number, stretch) in self.stretches.iter().enumerate().skip(first) {
            let end = self.stretches.get(number + 1).map_or(self.length, |next| next.begin);
            if at >= places.end {
                break;
            }
            // Places count from the end-of-text token before the tokens, if there is one.
            let own = stretch.begin + usize::from(stretch.starts_with_eos);
            if at < own && at < end {
                window.push(self.eos);
                at += 1;
            }
            let after = own + (stretch.tokens.end - stretch.tokens.start) as usize;
            let to = places.end.min(after);
            if at < to {
                let in_file = |place: usize| stretch.tokens.start + (place - own) as u64;
                self.data
                    .read(in_file(at)..in_file(to), &mut some)
                    .map_err(|error| RunError::Failed(format!("data.source: {error}")))?;
                window.extend_from_slice(&some);
                at = to;
            }
            if at < end.min(places.end) {
                window.push(self.eos);
                at += 1;
            }
        }
        Ok(window)
    }
}
