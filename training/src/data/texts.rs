//! The text of units: in memory, or left in its files.

use dp_tokenizer::identity::{Passage, Reading};

use super::UnitText;
use super::divided::Divided;
use super::unit_text::{each_text, each_wanted, refused};
use crate::RunError;
use crate::disclosure::Private;

/// The text of all units.
#[derive(Debug)]
pub enum Texts {
    /// Text in memory, in the corpus's order.
    Kept(Private<Vec<UnitText>>),
    /// Text in files, which each rank reads where it is needed, and of which it knows its share.
    InFiles(Box<Private<Divided>>),
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
        let text = match self {
            Self::Kept(texts) => {
                texts.for_mechanism().iter().for_each(take);
                return Ok(());
            }
            Self::InFiles(text) => text.for_mechanism(),
        };
        let records = text.files().records().map_err(|error| refused("data.source", &error))?;
        let records = records.map(|record| record.map(|(_, record)| record));
        let take = |text: UnitText| {
            take(&text);
            Ok(())
        };
        each_text(records, text.unit(), "data.source", take).map(|_| ())
    }

    /// Reads the passages of the text. Each thread reads its own records; others stay unread in
    /// their files.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file can no longer be read.
    pub(crate) fn each_passage(&self, reading: &mut Reading<'_>) -> Result<(), RunError> {
        let text = match self {
            Self::Kept(texts) => {
                texts.for_mechanism().iter().for_each(|text| {
                    reading.take(Passage { text: &text.piece.text, ends_record: text.ends_record });
                });
                return Ok(());
            }
            Self::InFiles(text) => text.for_mechanism(),
        };
        each_wanted(text.files(), reading, |record| Ok(record.text))
    }
}
