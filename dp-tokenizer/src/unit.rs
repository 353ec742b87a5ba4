//! Cuts records into privacy units.

use std::collections::HashMap;
use std::path::PathBuf;

pub use mechanisms::PrivacyUnit;

use crate::corpus::{CorpusError, Record};

/// A part of a unit's text. No two units share text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of the unit, from 0 in order of first appearance.
    pub unit: u64,
    /// The text.
    pub text: String,
}

/// The reason why records cannot be divided into units.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// User-level privacy was asked for, but a record has no user.
    #[error(
        "record {record} has no user; name the field that holds it (user_field), or choose unit record or words:N"
    )]
    NoUser {
        /// The number of the record, from 1.
        record: u64,
    },
    /// The unit is an owner of records, of which each may have several owners: the text cannot be divided among them.
    #[error(
        "unit owner: a record with several owners belongs to no unit alone; allowed: record, user, words:N"
    )]
    Owners,
    /// The unit is `Words(0)`, which has no words.
    #[error("unit words:0 is empty; allowed: words:N with N >= 1")]
    NoWords,
    /// The corpus could not be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The file of a counted part of a corpus cannot be written or read, or does not fit the others.
    #[error("{}: {reason}", path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// The fault, and what to do.
        reason: String,
    },
    /// The temporary file cannot be written or read back.
    #[error("temporary files in {}: {reason}; name a folder with free space (--spill-folder or TMPDIR), or allow more memory", folder.display())]
    Spill {
        /// The folder of the temporary files.
        folder: PathBuf,
        /// The fault.
        reason: String,
    },
}

/// Accepts a unit into which text can be divided.
///
/// # Errors
/// [`UnitError::NoWords`] for `Words(0)`, [`UnitError::Owners`] for owners.
pub(crate) fn check_divides(unit: PrivacyUnit) -> Result<(), UnitError> {
    match unit {
        PrivacyUnit::Words(0) => Err(UnitError::NoWords),
        PrivacyUnit::Owner => Err(UnitError::Owners),
        PrivacyUnit::Record | PrivacyUnit::User | PrivacyUnit::Words(_) => Ok(()),
    }
}

/// Divides a stream of records into units.
pub struct UnitAssigner {
    unit: PrivacyUnit,
    records: u64,
    units: u64,
    users: HashMap<String, u64>,
}

impl UnitAssigner {
    /// Returns an assigner for a new corpus.
    ///
    /// # Errors
    /// [`UnitError::NoWords`] for `Words(0)`, [`UnitError::Owners`] for owners.
    pub fn new(unit: PrivacyUnit) -> Result<Self, UnitError> {
        check_divides(unit)?;
        Ok(Self { unit, records: 0, units: 0, users: HashMap::new() })
    }

    /// Returns the pieces of one record. A record belongs to one unit, or to several of its own under `Words`.
    ///
    /// # Errors
    /// [`UnitError::NoUser`] if users are the unit and the record names none.
    pub fn assign(&mut self, record: Record) -> Result<Vec<Piece>, UnitError> {
        let texts: Vec<String> = match self.unit {
            PrivacyUnit::Record | PrivacyUnit::User | PrivacyUnit::Owner => vec![record.text],
            PrivacyUnit::Words(n) => cut_words(&record.text, n as usize).map(str::to_owned).collect(),
        };
        let first = self.assign_pieces(record.user, texts.len() as u64)?;
        Ok((first..).zip(texts).map(|(unit, text)| Piece { unit, text }).collect())
    }

    /// Returns the unit of the first piece of a divided record. The other pieces have the following numbers.
    pub(crate) fn assign_pieces(&mut self, user: Option<String>, pieces: u64) -> Result<u64, UnitError> {
        self.records += 1;
        match self.unit {
            PrivacyUnit::Record | PrivacyUnit::Words(_) | PrivacyUnit::Owner => {
                self.units += pieces;
                Ok(self.units - pieces)
            }
            PrivacyUnit::User => {
                let Some(user) = user else { return Err(UnitError::NoUser { record: self.records }) };
                let next = self.units;
                let unit = *self.users.entry(user).or_insert(next);
                self.units += u64::from(unit == next);
                Ok(unit)
            }
        }
    }

    /// Returns the number of units seen so far. This raw count of the corpus is private unless the number of units is
    /// declared public.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }
}

/// Returns the pieces of a stream of records, in order.
///
/// ```
/// use dp_tokenizer::corpus::Record;
/// use dp_tokenizer::unit::{PrivacyUnit, pieces};
/// let record = Record::of_text("one two three four five");
/// let cut: Result<Vec<_>, _> = pieces([Ok(record)], PrivacyUnit::Words(2))?.collect();
/// let texts: Vec<_> = cut?.into_iter().map(|p| (p.unit, p.text)).collect();
/// assert_eq!(texts, [(0, "one two".into()), (1, " three four".into()), (2, " five".into())]);
/// # Ok::<(), dp_tokenizer::unit::UnitError>(())
/// ```
///
/// # Errors
/// As [`UnitAssigner::new`]; the items carry the errors of reading and assigning.
pub fn pieces<I>(
    records: I,
    unit: PrivacyUnit,
) -> Result<impl Iterator<Item = Result<Piece, UnitError>>, UnitError>
where
    I: IntoIterator<Item = Result<Record, CorpusError>>,
{
    let mut assigner = UnitAssigner::new(unit)?;
    Ok(records.into_iter().flat_map(move |record| {
        let assigned = record.map_err(UnitError::from).and_then(|record| assigner.assign(record));
        let (pieces, error) = match assigned {
            Ok(pieces) => (pieces, None),
            Err(error) => (Vec::new(), Some(Err(error))),
        };
        pieces.into_iter().map(Ok).chain(error)
    }))
}

/// Divides a text before the white space that precedes every n-th word. The pieces concatenate to the text.
pub(crate) fn cut_words(text: &str, n: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, tail) = rest.split_at(crate::items::words_end(rest, n));
        rest = tail;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(text: &str, user: Option<&str>) -> Record {
        Record { user: user.map(Into::into), ..Record::of_text(text) }
    }

    #[test]
    fn users_are_grouped_wherever_their_records_stand() {
        let mut assigner = UnitAssigner::new(PrivacyUnit::User).unwrap();
        let mut unit_of = |user| assigner.assign(record("x", Some(user))).unwrap()[0].unit;
        assert_eq!([unit_of("a"), unit_of("b"), unit_of("a"), unit_of("c")], [0, 1, 0, 2]);
        assert_eq!(assigner.units(), 3);
    }

    #[test]
    fn a_record_without_user_is_refused_by_number() {
        let mut assigner = UnitAssigner::new(PrivacyUnit::User).unwrap();
        assigner.assign(record("x", Some("a"))).unwrap();
        let error = assigner.assign(record("y", None)).unwrap_err();
        assert!(error.to_string().starts_with("record 2 has no user"), "{error}");
        assert!(UnitAssigner::new(PrivacyUnit::Words(0)).is_err());
        assert!(UnitAssigner::new(PrivacyUnit::Owner).is_err());
    }

    proptest! {
        #[test]
        fn words_of_any_text_are_told_apart_as_the_standard_library_does(text in "([!-~é中]{0,20}[ \t\n\u{1c}\u{85}\u{2003}]{0,3}){0,12}", n in 1_usize..5) {
            let cut: Vec<&str> = cut_words(&text, n).collect();
            prop_assert_eq!(cut.concat(), text.clone());
            let by_words: Vec<Vec<&str>> = cut.iter().map(|piece| piece.split_whitespace().collect()).collect();
            let all: Vec<&str> = text.split_whitespace().collect();
            let want: Vec<Vec<&str>> = if all.is_empty() && !text.is_empty() { vec![vec![]] } else { all.chunks(n).map(<[&str]>::to_vec).collect() };
            prop_assert_eq!(by_words, want);
        }

        #[test]
        fn word_pieces_are_disjoint_complete_and_of_n_words(text in "[a-c \t\u{a0}\u{3000}]{0,60}", n in 1_usize..5) {
            let cut: Vec<&str> = cut_words(&text, n).collect();
            prop_assert_eq!(cut.concat(), text.clone());
            for (i, piece) in cut.iter().enumerate() {
                let words = piece.split_whitespace().count();
                prop_assert!(words == n || (i + 1 == cut.len() && words <= n), "{:?}", cut);
            }
        }
    }
}
