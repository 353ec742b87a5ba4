//! The text of units: in memory, or left in its files.

use dp_tokenizer::corpus::LineFiles;
use dp_tokenizer::identity::{Passage, Reading};
use dp_tokenizer::unit::PrivacyUnit;

use super::unit_text::{each_text, each_wanted, refused};
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
