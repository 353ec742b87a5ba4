//! The text of units: in memory, or left in its files.

use dp_tokenizer::corpus::{CorpusError, LineFiles, Record};
use dp_tokenizer::identity::{Passage, Reading};
use dp_tokenizer::unit::{PrivacyUnit, UnitAssigner};

use super::{TextIndex, UnitText};
use crate::RunError;
use crate::disclosure::Private;

/// The text of all units.
#[derive(Debug)]
pub enum Texts {
    /// Text in memory, in the corpus's order.
    Kept(Private<Vec<UnitText>>),
    /// Text in files, which are read again whenever it is needed.
    InFiles(Box<LineFiles>, PrivacyUnit),
    /// Text in files, with the place of every stretch.
    Indexed(Box<Private<TextIndex>>),
}

impl Texts {
    /// Returns an empty set of texts.
    pub fn none() -> Self {
        Self::Kept(Private::new(Vec::new()))
    }

    /// Calls `take` with every stretch of text in the corpus's order.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file can no longer be read.
    pub fn for_each(&self, mut take: impl FnMut(&UnitText)) -> Result<(), RunError> {
        let (files, unit) = match self {
            Self::Kept(texts) => {
                texts.for_mechanism().iter().for_each(take);
                return Ok(());
            }
            Self::InFiles(files, unit) => (&**files, *unit),
            Self::Indexed(index) => index.for_mechanism().files(),
        };
        let records = files.records().map_err(|error| refused("data.source", &error))?;
        let records = records.map(|record| record.map(|(_, record)| record));
        let take = |text: UnitText| {
            take(&text);
            Ok(())
        };
        each_text(records, unit, "data.source", take).map(|_| ())
    }

    /// Reads the passages of the text. Each thread reads its own records; others stay unread in
    /// their files.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file can no longer be read.
    pub(crate) fn each_passage(&self, reading: &mut Reading<'_>) -> Result<(), RunError> {
        let files = match self {
            Self::Kept(texts) => {
                texts.for_mechanism().iter().for_each(|text| {
                    reading.take(Passage { text: &text.piece.text, ends_record: text.ends_record });
                });
                return Ok(());
            }
            Self::InFiles(files, _) => &**files,
            Self::Indexed(index) => index.for_mechanism().files().0,
        };
        each_wanted(files, reading, |record| Ok(record.text))
    }
}

/// Passes `reading` the text of the records that it wants.
pub(super) fn each_wanted(
    files: &LineFiles,
    reading: &mut Reading<'_>,
    text: impl Fn(Record) -> Result<String, RunError>,
) -> Result<(), RunError> {
    let failed = |error: CorpusError| refused("data.source", &error);
    let mut records = files.some_records().map_err(failed)?;
    loop {
        if reading.wants() {
            let Some(record) = records.next() else { return Ok(()) };
            reading.take(Passage::record(&text(record.map_err(failed)?)?));
        } else if records.pass_over().map_err(failed)? {
            reading.pass_over();
        } else {
            return Ok(());
        }
    }
}

/// Divides records into the texts of units and returns the number of units. `field` is the plan's field that names the source.
pub(super) fn each_text<E: std::fmt::Display>(
    records: impl Iterator<Item = Result<Record, E>>,
    unit: PrivacyUnit,
    field: &str,
    mut take: impl FnMut(UnitText) -> Result<(), RunError>,
) -> Result<u64, RunError> {
    let mut assigner = UnitAssigner::new(unit).map_err(|error| refused(field, &error))?;
    for record in records {
        let record = record.map_err(|error| refused(field, &error))?;
        let pieces = assigner.assign(record).map_err(|error| refused(field, &error))?;
        let last = pieces.len().saturating_sub(1);
        for (index, piece) in pieces.into_iter().enumerate() {
            take(UnitText { piece, begins_record: index == 0, ends_record: index == last })?;
        }
    }
    Ok(assigner.units())
}

/// Returns the order of texts by unit, and the place in it at which each unit's texts begin,
/// followed by the number of texts. A unit's texts stay in the corpus's order. Every unit has a
/// text, because units are numbered when one of their texts is read.
pub(super) fn by_unit(units: Vec<u64>) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by_key(|&place| units[place]);
    let begins = |&at: &usize| at == 0 || units[order[at]] != units[order[at - 1]];
    let starts = (0..order.len()).filter(begins).chain([order.len()]).collect();
    (order, starts)
}

/// The error for a record that was changed after the run began.
pub(super) const CHANGED: &str =
    "a file was changed while the run read it; restore the text that the run began with, and resume";

pub(super) fn refused(field: &str, error: &dyn std::fmt::Display) -> RunError {
    RunError::Refused(format!("{field}: {error}"))
}
