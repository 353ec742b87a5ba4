//! Places of all text in its files, so that a rank reads the windows of its own micro-batches and keeps no text.

use dp_tokenizer::corpus::{LineFiles, Position};
use dp_tokenizer::unit::{PrivacyUnit, UnitAssigner};
use tokenizer::Tokenizer;

use super::unit_text::{CHANGED, Stretch, by_unit, refused};
use crate::RunError;
use crate::ranks::Ranks;

/// The place of every stretch of text, by unit, and its number of tokens.
pub struct TextIndex {
    files: LineFiles,
    unit: PrivacyUnit,
    tokenizer: Tokenizer,
    places: Vec<Place>,
    /// Index of each user's first stretch, and the number of stretches at the end. Empty if each
    /// stretch is a unit.
    starts: Vec<usize>,
}

/// The place of a stretch of text in its file.
#[derive(Clone, Copy, Debug)]
struct Place {
    record: Position,
    /// The number of the stretch in its record, times 2, plus 1 if the record ends with it.
    piece: u32,
    /// Checksum of the text, which shows whether the file was changed.
    checksum: u32,
    tokens: u32,
}

/// Number of consecutive records that one rank encodes to count their tokens.
const RECORDS_AT_ONCE: usize = 64;

const CHECKSUM: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

impl TextIndex {
    /// Finds the places of all text. All ranks call this together: each encodes its share of the records once, and all get the
    /// numbers of tokens.
    ///
    /// # Errors
    /// [`RunError::Refused`] on all ranks if a file can no longer be read on one.
    pub(super) fn new(
        files: LineFiles,
        unit: PrivacyUnit,
        tokenizer: &Tokenizer,
        ranks: &Ranks,
    ) -> Result<Self, RunError> {
        let (mut index, users) = ranks.agree(Self::scan(files, unit, tokenizer, ranks))?;
        index.add_lengths(ranks);
        if unit == PrivacyUnit::User {
            let (order, starts) = by_unit(users);
            index.places = order.into_iter().map(|place| index.places[place]).collect();
            index.starts = starts;
        }
        Ok(index)
    }

    /// Returns the places of all text in the corpus's order, and the user of each if users are the
    /// units. Numbers of tokens are those of this rank's records; the others are 0.
    fn scan(
        files: LineFiles,
        unit: PrivacyUnit,
        tokenizer: &Tokenizer,
        ranks: &Ranks,
    ) -> Result<(Self, Vec<u64>), RunError> {
        let refused = |error: &dyn std::fmt::Display| refused("data.source", error);
        let share = ranks.share(RECORDS_AT_ONCE);
        let mut assigner = UnitAssigner::new(unit).map_err(|error| refused(&error))?;
        let (mut places, mut users) = (Vec::new(), Vec::new());
        for (number, record) in files.records().map_err(|error| refused(&error))?.enumerate() {
            let (position, record) = record.map_err(|error| refused(&error))?;
            let pieces = assigner.assign(record).map_err(|error| refused(&error))?;
            let last = pieces.len().saturating_sub(1);
            for (index, piece) in pieces.into_iter().enumerate() {
                let tokens = if share.has(number) { tokenizer.encode(&piece.text).len() as u32 } else { 0 };
                let checksum = CHECKSUM.checksum(piece.text.as_bytes());
                let piece_of_record = (index as u32) << 1 | u32::from(index == last);
                places.push(Place { record: position, piece: piece_of_record, checksum, tokens });
                if unit == PrivacyUnit::User {
                    users.push(piece.unit);
                }
            }
        }
        let tokenizer = Tokenizer::from_json(&tokenizer.to_json()).map_err(|error| refused(&error))?;
        Ok((Self { files, unit, tokenizer, places, starts: Vec::new() }, users))
    }

    /// Adds the numbers of tokens that the other ranks counted.
    fn add_lengths(&mut self, ranks: &Ranks) {
        if !ranks.are_several() {
            return;
        }
        let own: Vec<u8> = self.places.iter().flat_map(|place| place.tokens.to_le_bytes()).collect();
        for other in ranks.exchange(&own) {
            for (place, four) in self.places.iter_mut().zip(other.chunks_exact(4)) {
                let theirs = four.try_into().map_or(0, u32::from_le_bytes);
                place.tokens = place.tokens.max(theirs);
            }
        }
    }

    pub(super) fn units(&self) -> usize {
        if self.starts.is_empty() { self.places.len() } else { self.starts.len() - 1 }
    }

    /// Returns the stretches of a unit's text, in the corpus's order.
    pub(super) fn stretches_of(&self, unit: usize) -> impl Iterator<Item = Stretch> {
        let numbers = match self.starts.get(unit..unit + 2) {
            Some(bounds) => bounds[0]..bounds[1],
            None => unit..unit + 1,
        };
        (numbers.start as u64..).zip(&self.places[numbers]).map(|(number, place)| Stretch {
            number,
            tokens: place.tokens as usize,
            begins_record: place.piece >> 1 == 0,
            ends_record: place.piece & 1 != 0,
        })
    }

    /// Returns the files, and the kind of their units.
    pub(super) fn files(&self) -> (&LineFiles, PrivacyUnit) {
        (&self.files, self.unit)
    }

    /// Reads and encodes a stretch of text. Stretches are numbered unit by unit.
    ///
    /// # Errors
    /// [`RunError::Failed`] if its file can no longer be read or was changed.
    pub(super) fn tokens(&self, place: usize) -> Result<Vec<u32>, RunError> {
        let Place { record, piece, checksum, .. } = self.places[place];
        let failed = |error: &dyn std::fmt::Display| RunError::Failed(format!("data.source: {error}"));
        let record = self.files.read(record).map_err(|error| failed(&error))?;
        // Users are not told apart here: the unit of this stretch is known, and its contents do not depend on it.
        let alone = if self.unit == PrivacyUnit::User { PrivacyUnit::Record } else { self.unit };
        let mut assigner = UnitAssigner::new(alone).map_err(|error| failed(&error))?;
        let pieces = assigner.assign(record).map_err(|error| failed(&error))?;
        match pieces.get((piece >> 1) as usize) {
            Some(found) if CHECKSUM.checksum(found.text.as_bytes()) == checksum => {
                Ok(self.tokenizer.encode(&found.text))
            }
            _ => Err(failed(&CHANGED)),
        }
    }
}
