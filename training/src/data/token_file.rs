//! Units whose tokens stay on disk, in the form that they would have in memory.

use std::ops::Range;

use dp_tokenizer::tokens::TokenDataset;

use super::unit_text::Stretch;
use super::{TextIndex, WindowSpec};
use crate::RunError;

/// The units of a token file, or of text in its files, in the form that [`super::Dataset`]
/// describes. Tokens stay on disk.
pub(super) struct TokenFile {
    source: Source,
    spec: WindowSpec,
}

enum Source {
    Tokens(Box<TokenDataset>),
    /// Text that is encoded when it is read.
    Text(Box<TextIndex>),
}

impl TokenFile {
    pub(super) fn new(data: TokenDataset, spec: WindowSpec) -> Self {
        Self { source: Source::Tokens(Box::new(data)), spec }
    }

    pub(super) fn of_text(index: TextIndex, spec: WindowSpec) -> Self {
        Self { source: Source::Text(Box::new(index)), spec }
    }

    pub(super) fn units(&self) -> usize {
        match &self.source {
            Source::Tokens(data) => data.units() as usize,
            Source::Text(index) => index.units(),
        }
    }

    /// Returns the stretches of a unit, each with the places of its tokens among the unit's, end-of-text tokens
    /// included.
    fn stretches(&self, unit: usize) -> impl Iterator<Item = (Range<usize>, Stretch)> {
        let of_file = |data: &TokenDataset, number| {
            let part = data.part(number)?;
            Some(Stretch {
                number,
                tokens: (part.tokens.end - part.tokens.start) as usize,
                begins_record: part.begins_record,
                ends_record: part.ends_record,
            })
        };
        let parts: Box<dyn Iterator<Item = Stretch>> = match &self.source {
            Source::Tokens(data) => Box::new(
                data.parts_of(unit as u64)
                    .into_iter()
                    .flatten()
                    .filter_map(move |number| of_file(data, number)),
            ),
            Source::Text(index) => Box::new(index.stretches_of(unit)),
        };
        let mut end = 0;
        parts.map(move |part| {
            let begin = end;
            let marks = [
                self.spec.starts_with_bos(part.begins_record, begin == 0),
                self.spec.ends_with_eos(part.ends_record),
            ];
            end += part.tokens + marks.map(usize::from).iter().sum::<usize>();
            (begin..end, part)
        })
    }

    /// Returns the number of tokens of a unit.
    pub(super) fn length(&self, unit: usize) -> usize {
        self.stretches(unit).last().map_or(0, |(places, _)| places.end)
    }

    /// Reads the tokens at these places of a unit.
    pub fn read(&self, unit: usize, wanted: Range<usize>) -> Result<Vec<u32>, RunError> {
        let (mut window, mut some) = (Vec::with_capacity(wanted.len()), Vec::new());
        let mut at = wanted.start;
        for (places, stretch) in self.stretches(unit).skip_while(|(places, _)| places.end <= wanted.start) {
            if at >= wanted.end {
                break;
            }
            // The place of the first token of the text itself, after the token before the text if there is one.
            let own = places.start
                + usize::from(self.spec.starts_with_bos(stretch.begins_record, places.start == 0));
            if at < own {
                window.push(self.spec.bos);
                at += 1;
            }
            let to = wanted.end.min(own + stretch.tokens);
            if at < to {
                self.tokens(&stretch, at - own..to - own, &mut some)?;
                window.extend_from_slice(&some);
                at = to;
            }
            if at < places.end.min(wanted.end) {
                window.push(self.spec.eos);
                at += 1;
            }
        }
        Ok(window)
    }

    /// Replaces `out` by some tokens of a stretch.
    fn tokens(&self, stretch: &Stretch, range: Range<usize>, out: &mut Vec<u32>) -> Result<(), RunError> {
        match &self.source {
            Source::Tokens(data) => {
                let begin = data.part(stretch.number).map_or(0, |part| part.tokens.start);
                data.read(begin + range.start as u64..begin + range.end as u64, out)
                    .map_err(|error| RunError::Failed(format!("data.source: {error}")))
            }
            Source::Text(index) => {
                let tokens = index.tokens(stretch.number as usize)?;
                let own = tokens.get(range).ok_or_else(|| {
                    RunError::Failed(
                        "data.source: a record has another number of tokens than before".to_owned(),
                    )
                })?;
                out.clear();
                out.extend_from_slice(own);
                Ok(())
            }
        }
    }
}
