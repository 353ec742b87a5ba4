//! Places of all text in its files, so that a rank reads the windows of its own micro-batches and keeps no text.

use dp_tokenizer::Tokenizer;
use dp_tokenizer::corpus::{LineFiles, Position};
use dp_tokenizer::unit::{PrivacyUnit, UnitAssigner};

use super::texts::refused;
use super::{Texts, Units};
use crate::RunError;
use crate::disclosure::Private;
use crate::ranks::Ranks;

/// The place of every stretch of text, by unit, and how many tokens it has.
pub(crate) struct TextIndex {
    files: LineFiles,
    unit: PrivacyUnit,
    tokenizer: Tokenizer,
    places: Vec<Place>,
    lengths: Vec<Length>,
}

/// Where a stretch of text lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    record: Position,
    /// The number of the stretch in its record.
    piece: u32,
    /// Of the text, to notice that a file was changed.
    checksum: u32,
}

/// What the windows of a stretch depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    pub unit: u64,
    pub tokens: u32,
    pub begins_record: bool,
    pub ends_record: bool,
}

/// Records in a row that one rank encodes to count their tokens.
const RECORDS_AT_ONCE: usize = 64;

const CHECKSUM: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

impl Units {
    /// Finds the places of text that was left in its files. All ranks call this together: each encodes its share of the records
    /// once, and all get the numbers of tokens.
    ///
    /// # Errors
    /// [`RunError::Refused`] on all ranks if a file can no longer be read on one.
    pub(crate) fn index(self, tokenizer: &Tokenizer, ranks: &Ranks) -> Result<Self, RunError> {
        let texts = match self.texts {
            Texts::InFiles(files, unit) => {
                let index = ranks.agree(TextIndex::scan(*files, unit, tokenizer, ranks))?;
                Texts::Indexed(Box::new(Private::new(index.with_all_lengths(ranks))))
            }
            other => other,
        };
        Ok(Self { texts, ..self })
    }
}

impl TextIndex {
    /// The places of all text. Numbers of tokens are those of this rank's records; the others are 0.
    fn scan(
        files: LineFiles,
        unit: PrivacyUnit,
        tokenizer: &Tokenizer,
        ranks: &Ranks,
    ) -> Result<Self, RunError> {
        let refused = |error: &dyn std::fmt::Display| refused("data.source", error);
        let share = ranks.share(RECORDS_AT_ONCE);
        let mut assigner = UnitAssigner::new(unit).map_err(|error| refused(&error))?;
        let (mut places, mut lengths) = (Vec::new(), Vec::new());
        for (number, record) in files.records().map_err(|error| refused(&error))?.enumerate() {
            let (position, record) = record.map_err(|error| refused(&error))?;
            let pieces = assigner.assign(record).map_err(|error| refused(&error))?;
            let last = pieces.len().saturating_sub(1);
            for (index, piece) in pieces.into_iter().enumerate() {
                let tokens = if share.has(number) { tokenizer.encode(&piece.text).len() as u32 } else { 0 };
                let checksum = CHECKSUM.checksum(piece.text.as_bytes());
                places.push(Place { record: position, piece: index as u32, checksum });
                let (begins_record, ends_record) = (index == 0, index == last);
                lengths.push(Length { unit: piece.unit, tokens, begins_record, ends_record });
            }
        }
        let tokenizer = Tokenizer::from_json(&tokenizer.to_json()).map_err(|error| refused(&error))?;
        Ok(Self { files, unit, tokenizer, places, lengths })
    }

    /// Adds the other ranks' numbers of tokens, and orders the text by unit.
    fn with_all_lengths(mut self, ranks: &Ranks) -> Self {
        if ranks.are_several() {
            let own: Vec<u8> = self.lengths.iter().flat_map(|length| length.tokens.to_le_bytes()).collect();
            for other in ranks.exchange(&own) {
                for (length, four) in self.lengths.iter_mut().zip(other.chunks_exact(4)) {
                    let theirs = four.try_into().map_or(0, u32::from_le_bytes);
                    length.tokens = length.tokens.max(theirs);
                }
            }
        }
        if self.unit == PrivacyUnit::User {
            let mut both: Vec<(Length, Place)> = self.lengths.into_iter().zip(self.places).collect();
            // Stable: a user's records stay in the corpus's order.
            both.sort_by_key(|(length, _)| length.unit);
            (self.lengths, self.places) = both.into_iter().unzip();
        }
        self
    }

    /// The files, and what their units are.
    pub(super) fn files(&self) -> (&LineFiles, PrivacyUnit) {
        (&self.files, self.unit)
    }

    /// What the windows depend on, of each stretch of text by unit. It is not needed again.
    pub(super) fn take_lengths(&mut self) -> Vec<Length> {
        std::mem::take(&mut self.lengths)
    }

    /// The tokens of a stretch of text, counted by unit.
    ///
    /// # Errors
    /// [`RunError::Failed`] if its file can no longer be read or was changed.
    pub(super) fn tokens(&self, place: usize) -> Result<Vec<u32>, RunError> {
        let Place { record, piece, checksum } = self.places[place];
        let failed = |error: &dyn std::fmt::Display| RunError::Failed(format!("data.source: {error}"));
        let record = self.files.read(record).map_err(|error| failed(&error))?;
        // Its number among the units is known; what it contains does not depend on it.
        let alone = if self.unit == PrivacyUnit::User { PrivacyUnit::Record } else { self.unit };
        let mut assigner = UnitAssigner::new(alone).map_err(|error| failed(&error))?;
        let pieces = assigner.assign(record).map_err(|error| failed(&error))?;
        match pieces.get(piece as usize) {
            Some(found) if CHECKSUM.checksum(found.text.as_bytes()) == checksum => {
                Ok(self.tokenizer.encode(&found.text))
            }
            _ => Err(failed(
                &"a file was changed while the run read it; restore the text that the run began with, and resume",
            )),
        }
    }
}
