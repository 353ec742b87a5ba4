//! The text of privacy units, as it is read from the records of a corpus.

use dp_tokenizer::corpus::{CorpusError, LineFiles, Record};
use dp_tokenizer::identity::{Passage, Reading};
use dp_tokenizer::unit::{Piece, PrivacyUnit, UnitAssigner};

use crate::RunError;

/// A stretch of a unit's text, with its place in the record that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitText {
    /// The unit and its text.
    pub piece: Piece,
    /// Whether the record begins here.
    pub begins_record: bool,
    /// Whether the record ends here.
    pub ends_record: bool,
}

/// A stretch of a unit's text whose tokens are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// The rank that reads it; 0 in a token file, which all ranks read.
    pub rank: usize,
    /// Index of the stretch in the token file, or in the rank's share of the text. That of another rank is not known.
    pub number: u64,
    pub tokens: usize,
    pub begins_record: bool,
    pub ends_record: bool,
}

/// Passes `reading` the text of the records that it wants: those of its own share of the files.
pub(super) fn each_wanted(
    files: &LineFiles,
    reading: &mut Reading<'_>,
    text: impl Fn(Record) -> Result<String, RunError>,
) -> Result<(), RunError> {
    let failed = |error: CorpusError| refused("data.source", &error);
    let (number, stretches) = reading.stretch();
    let files = files.again();
    let sizes = files.sizes().map_err(failed)?;
    let mut records = files.share_of(&sizes, number, stretches).map_err(failed)?;
    while let Some(record) = records.next() {
        if !records.is_in_share() {
            reading.end_stretch();
        }
        if !reading.wants() {
            break;
        }
        let (_, record) = record.map_err(failed)?;
        reading.take(Passage::record(&text(record)?));
    }
    Ok(())
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
