//! Units whose tokens stay on disk, in the form that they would have in memory.

use std::ops::Range;

use dp_tokenizer::tokens::TokenDataset;

use super::unit_text::Stretch;
use super::{TextIndex, WindowSpec};
use crate::RunError;
use crate::ranks::Ranks;

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
                rank: 0,
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
            Source::Text(index) => Box::new(index.stretches_of(unit).iter().copied()),
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

    /// Counts the tokens of units whose text is in files, without which their windows cannot be read. All ranks call this together,
    /// with the same units, each once.
    ///
    /// # Errors
    /// [`RunError::Failed`] on all ranks if a file can no longer be read.
    pub(super) fn measure(&mut self, units: &[u64]) -> Result<(), RunError> {
        match &mut self.source {
            Source::Tokens(_) => Ok(()),
            Source::Text(index) => index.measure(units),
        }
    }

    /// Returns the ranks that each read their own share, if there are several.
    pub(super) fn ranks(&self) -> Option<&Ranks> {
        match &self.source {
            Source::Text(index) if index.ranks().are_several() => Some(index.ranks()),
            _ => None,
        }
    }

    /// Reads the tokens at these places of a unit.
    pub fn read(&self, unit: usize, wanted: Range<usize>) -> Result<Vec<u32>, RunError> {
        self.window(unit, wanted, |stretch, range, window| self.tokens(stretch, range, window))
    }

    /// Appends those of the tokens at these places that this rank reads, as bytes.
    pub(super) fn send(&self, unit: usize, wanted: Range<usize>, to: &mut Vec<u8>) -> Result<(), RunError> {
        let rank = self.ranks().map_or(0, Ranks::rank);
        let mut own = Vec::new();
        self.window(unit, wanted, |stretch, range, _| {
            if stretch.rank == rank { self.tokens(stretch, range, &mut own) } else { Ok(()) }
        })?;
        to.extend(own.iter().flat_map(|token| token.to_le_bytes()));
        Ok(())
    }

    /// Reads the tokens at these places from what each rank has sent of them.
    pub(super) fn receive(
        &self,
        unit: usize,
        wanted: Range<usize>,
        from: &mut [impl Iterator<Item = u32>],
    ) -> Result<Vec<u32>, RunError> {
        let length = wanted.len();
        let window = self.window(unit, wanted, |stretch, range, window| {
            window.extend(from[stretch.rank].by_ref().take(range.len()));
            Ok(())
        })?;
        if window.len() == length {
            return Ok(window);
        }
        Err(RunError::Failed("data.source: a rank sent other tokens than it counted".to_owned()))
    }

    /// Puts a window together. `tokens` appends some tokens of a stretch.
    fn window(
        &self,
        unit: usize,
        wanted: Range<usize>,
        mut tokens: impl FnMut(&Stretch, Range<usize>, &mut Vec<u32>) -> Result<(), RunError>,
    ) -> Result<Vec<u32>, RunError> {
        let mut window = Vec::with_capacity(wanted.len());
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
                tokens(&stretch, at - own..to - own, &mut window)?;
                at = to;
            }
            if at < places.end.min(wanted.end) {
                window.push(self.spec.eos);
                at += 1;
            }
        }
        Ok(window)
    }

    /// Appends some tokens of a stretch.
    fn tokens(&self, stretch: &Stretch, range: Range<usize>, out: &mut Vec<u32>) -> Result<(), RunError> {
        match &self.source {
            Source::Tokens(data) => {
                let begin = data.part(stretch.number).map_or(0, |part| part.tokens.start);
                let mut some = Vec::new();
                data.read(begin + range.start as u64..begin + range.end as u64, &mut some)
                    .map_err(|error| RunError::Failed(format!("data.source: {error}")))?;
                out.extend_from_slice(&some);
            }
            Source::Text(index) => {
                let tokens = index.tokens(stretch)?;
                let own = tokens.get(range).ok_or_else(|| {
                    RunError::Failed(
                        "data.source: a record has another number of tokens than before".to_owned(),
                    )
                })?;
                out.extend_from_slice(own);
            }
        }
        Ok(())
    }
}
