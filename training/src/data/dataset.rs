//! Tokens by unit, and the windows that each unit owns.

use std::ops::Range;

use tokenizer::Tokenizer;

use super::token_file::TokenFile;
use super::{DrawnUnit, TextIndex, Texts, UnitText, Units, WindowSpec, own};
use crate::RunError;
use crate::disclosure::Private;
use crate::ranks::{Ranks, Share};

/// The windows of a unit that make one example of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledUnit {
    /// Index among what was sampled: the units, or their examples.
    pub index: u64,
    /// Tokens of each window: at most [`WindowSpec::length`], and one more if windows overlap.
    pub windows: Vec<Vec<u32>>,
}

/// The tokens of all units. Units whose tokens are on disk come first.
pub struct Dataset {
    /// The token file, if the plan names one, or text in its files.
    file: Option<TokenFile>,
    /// Number of units in `file` that are used, from the first on.
    on_disk: usize,
    /// The tokens of all other units.
    tokens: Vec<u32>,
    /// The place in `tokens` at which each of the other units begins, and the end of the last one.
    starts: Vec<usize>,
    spec: WindowSpec,
}

impl Dataset {
    /// Creates the data set of a run's text, or of its token file.
    ///
    /// # Errors
    /// [`RunError::Refused`] for a token file of another vocabulary than the run's.
    pub fn new(units: Units, tokenizer: &Tokenizer, spec: WindowSpec) -> Result<Self, RunError> {
        let of_file = |file: TokenFile| {
            let on_disk = file.units();
            Self { file: Some(file), on_disk, ..Self::empty(spec) }
        };
        let Some(data) = units.tokens else {
            return match units.texts {
                Texts::Kept(texts) => Ok(Self::encode(texts.for_mechanism(), tokenizer, spec)),
                Texts::InFiles(text) => {
                    let index = TextIndex::new(text.into_mechanism(), tokenizer)?;
                    Ok(of_file(TokenFile::of_text(index, spec)))
                }
            };
        };
        let data = data.into_mechanism();
        let vocab_size = data.vocab_size();
        if vocab_size != tokenizer.vocab_size() as u64 {
            return Err(RunError::Refused(format!(
                "data.source: the token file has a vocabulary of {vocab_size} tokens, but the run's tokenizer has {}; \
                 restore the files that the run began with",
                tokenizer.vocab_size()
            )));
        }
        Ok(of_file(TokenFile::new(data, spec)))
    }

    fn empty(spec: WindowSpec) -> Self {
        Self { file: None, on_disk: 0, tokens: Vec::new(), starts: vec![0], spec }
    }

    /// Encodes the text of units. Texts may come in any order of units.
    pub fn encode(texts: &[UnitText], tokenizer: &Tokenizer, spec: WindowSpec) -> Self {
        let mut order: Vec<&UnitText> = texts.iter().collect();
        // The sort is stable: a user's records stay in the corpus's order.
        order.sort_by_key(|text| text.piece.unit);
        let mut dataset = Self::empty(spec);
        let mut unit = None;
        for text in order {
            if unit.replace(text.piece.unit).is_some_and(|before| before != text.piece.unit) {
                dataset.starts.push(dataset.tokens.len());
            }
            let begins_unit = dataset.starts.last() == Some(&dataset.tokens.len());
            if spec.starts_with_bos(text.begins_record, begins_unit) {
                dataset.tokens.push(spec.bos);
            }
            dataset.tokens.extend(tokenizer.encode(&text.piece.text));
            if spec.ends_with_eos(text.ends_record) {
                dataset.tokens.push(spec.eos);
            }
        }
        if unit.is_some() {
            dataset.starts.push(dataset.tokens.len());
        }
        dataset
    }

    /// Adds units with these tokens. A unit without tokens contributes nothing.
    pub(crate) fn add_units(&mut self, units: &[Vec<u32>]) {
        for unit in units {
            self.tokens.extend(unit);
            self.starts.push(self.tokens.len());
        }
    }

    /// Replaces the last units by units with these tokens, without changing the number of units.
    pub(crate) fn replace_units(&mut self, units: &[Vec<u32>]) {
        let kept = self.units().saturating_sub(units.len());
        self.on_disk = self.on_disk.min(kept);
        self.starts.truncate(kept - self.on_disk + 1);
        self.tokens.truncate(self.starts[kept - self.on_disk]);
        self.add_units(units);
    }

    /// Returns the tokens of each unit in memory. Units on disk are left out.
    pub fn in_memory(&self) -> impl Iterator<Item = &[u32]> {
        self.starts.windows(2).filter_map(|bounds| self.tokens.get(bounds[0]..bounds[1]))
    }

    /// Returns a data set in which `change` has replaced the tokens of each unit in memory. Units
    /// on disk are left out.
    pub(crate) fn with_tokens(&self, change: impl Fn(&[u32]) -> Vec<u32>) -> Self {
        let mut changed = Self::empty(self.spec);
        for unit in self.in_memory() {
            changed.add_units(&[change(unit)]);
        }
        changed
    }

    /// Returns the number of units, which is private if the text is private.
    pub fn units(&self) -> usize {
        self.on_disk + self.starts.len() - 1
    }

    /// Counts the tokens of units, which has to happen before their windows are counted or read. All ranks call this together, with
    /// the same units, each once.
    ///
    /// # Errors
    /// [`RunError::Failed`] on all ranks if a file can no longer be read.
    pub(crate) fn measure(&mut self, units: &[u64]) -> Result<(), RunError> {
        let on_disk = self.on_disk as u64;
        match &mut self.file {
            None => Ok(()),
            Some(file) if units.iter().all(|unit| *unit < on_disk) => file.measure(units),
            Some(file) => {
                file.measure(&units.iter().copied().filter(|unit| *unit < on_disk).collect::<Vec<_>>())
            }
        }
    }

    /// Returns the number of tokens of a unit.
    fn length(&self, unit: usize) -> usize {
        match (&self.file, unit.checked_sub(self.on_disk)) {
            (_, Some(place)) => self.starts[place + 1] - self.starts[place],
            (file, None) => file.as_ref().map_or(0, |file| file.length(unit)),
        }
    }

    /// Returns the number of windows of a unit.
    pub fn windows_of(&self, unit: usize) -> usize {
        self.spec.windows(self.length(unit))
    }

    /// Reads the tokens of one window of a unit. No token is a target in two windows.
    ///
    /// # Errors
    /// [`RunError::Failed`] if a file can no longer be read.
    pub fn window(&self, unit: usize, window: usize) -> Result<Vec<u32>, RunError> {
        self.stretch(unit, window * self.spec.length)
    }

    /// Reads the tokens of one window of a unit as training needs it: see [`WindowSpec::training_begin`].
    ///
    /// # Errors
    /// As [`Self::window`].
    pub(crate) fn full_window(&self, unit: usize, window: usize) -> Result<Vec<u32>, RunError> {
        self.stretch(unit, self.spec.training_begin(self.length(unit), window))
    }

    /// Returns the places of the tokens of the window that begins at this token of a unit.
    fn places(&self, unit: usize, begin: usize) -> Range<usize> {
        let end = begin + self.spec.length + usize::from(self.spec.overlaps);
        begin..end.min(self.length(unit))
    }

    /// Reads the tokens of the window that begins at this token of a unit.
    fn stretch(&self, unit: usize, begin: usize) -> Result<Vec<u32>, RunError> {
        let places = self.places(unit, begin);
        match (&self.file, unit.checked_sub(self.on_disk)) {
            (Some(file), None) => file.read(unit, places),
            (_, place) => Ok(self.tokens[self.starts[place.unwrap_or(0)]..][places].to_vec()),
        }
    }

    /// Returns every window, in order, as evaluation reads them.
    ///
    /// # Errors
    /// As [`Self::window`].
    pub(crate) fn all_windows(&self) -> Result<Vec<Vec<u32>>, RunError> {
        (0..self.units())
            .flat_map(|unit| (0..self.windows_of(unit)).map(move |window| self.window(unit, window)))
            .collect()
    }

    /// Reads the windows of the units of a lot that are in the rank's share. All ranks call this together, with the same lot, of which
    /// each reads what is in its share of the text.
    ///
    /// # Errors
    /// As [`Self::window`], on all ranks.
    pub(crate) fn read_lot(
        &self,
        lot: Private<Vec<DrawnUnit>>,
        share: Share,
    ) -> Result<Private<Vec<SampledUnit>>, RunError> {
        match self.file.as_ref().and_then(|file| Some((file, file.ranks()?))) {
            None => self.read(&own(lot, share)),
            Some((file, ranks)) => self.read_among(lot.for_mechanism(), share, file, ranks).map(Private::new),
        }
    }

    /// Reads windows of text of which each rank has its own share.
    fn read_among(
        &self,
        lot: &[DrawnUnit],
        share: Share,
        file: &TokenFile,
        ranks: &Ranks,
    ) -> Result<Vec<SampledUnit>, RunError> {
        let places = |unit: usize, window: &usize| {
            self.places(unit, self.spec.training_begin(self.length(unit), *window))
        };
        let mut to = vec![Vec::new(); ranks.count()];
        let on_disk = |drawn: &DrawnUnit| (drawn.unit as usize) < self.on_disk;
        let sent = lot.iter().enumerate().filter(|(_, drawn)| on_disk(drawn)).try_for_each(|(at, drawn)| {
            let (unit, to) = (drawn.unit as usize, &mut to[share.rank_of(at)]);
            drawn.places.iter().try_for_each(|window| file.send(unit, places(unit, window), to))
        });
        ranks.agree(sent)?;
        let received = ranks.all_to_all(&to);
        let mut from: Vec<_> = received
            .iter()
            .map(|bytes| bytes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four)))
            .collect();
        let mut sampled = Vec::new();
        for (_, drawn) in lot.iter().enumerate().filter(|(at, _)| share.has(*at)) {
            let unit = drawn.unit as usize;
            let windows = drawn.places.iter().map(|window| {
                if on_disk(drawn) {
                    file.receive(unit, places(unit, window), &mut from)
                } else {
                    self.full_window(unit, *window)
                }
            });
            sampled.push(SampledUnit { index: drawn.index, windows: windows.collect::<Result<_, _>>()? });
        }
        Ok(sampled)
    }

    /// Reads the windows of the drawn units.
    ///
    /// # Errors
    /// As [`Self::window`].
    pub(crate) fn read(
        &self,
        drawn: &Private<Vec<DrawnUnit>>,
    ) -> Result<Private<Vec<SampledUnit>>, RunError> {
        let read = |DrawnUnit { unit, index, places }: &DrawnUnit| {
            let windows = places.iter().map(|&window| self.full_window(*unit as usize, window));
            Ok(SampledUnit { index: *index, windows: windows.collect::<Result<_, RunError>>()? })
        };
        drawn.for_mechanism().iter().map(read).collect::<Result<_, _>>().map(Private::new)
    }
}
