//! Tokens by unit, and the windows that each unit owns.

use tokenizer::Tokenizer;

use super::token_file::TokenFile;
use super::{DrawnUnit, Texts, UnitText, Units, WindowSpec};
use crate::RunError;
use crate::disclosure::Private;

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
                Texts::Indexed(index) => Ok(of_file(TokenFile::of_text((*index).into_mechanism(), spec))),
                Texts::InFiles(..) => Err(RunError::Failed("the text was not indexed".to_owned())),
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

    /// Reads the tokens of the window that begins at this token of a unit.
    fn stretch(&self, unit: usize, begin: usize) -> Result<Vec<u32>, RunError> {
        let end = begin + self.spec.length + usize::from(self.spec.overlaps);
        let places = begin..end.min(self.length(unit));
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
