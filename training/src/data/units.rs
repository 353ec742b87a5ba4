//! The training text of a run and the public text beside it, with their digests.

use dp_tokenizer::tokens::TokenDataset;
use sha2::{Digest, Sha256};
use tokenizer::Tokenizer;

use super::digest::{add, add_record};
use super::{LabelledRecord, LabelledRecords, TextIndex, Texts, UnitText};
use crate::RunError;
use crate::disclosure::Private;
use crate::ranks::Ranks;
use durable::hex;

/// The training text, cut into privacy units.
#[derive(Debug)]
pub struct Units {
    /// The texts; empty if the plan names a token file.
    pub texts: Texts,
    /// The token file, if the plan names one.
    pub tokens: Option<Private<TokenDataset>>,
    /// Records with labels or targets, if the objective reads them.
    pub labelled: Option<LabelledRecords>,
}

impl Units {
    /// Returns the SHA-256 of `key`, then of every unit with its text, in order. It is as private as the text to
    /// whoever has the key.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the text is in a file that can no longer be read.
    pub(crate) fn keyed_digest(&self, key: &[u8]) -> Result<String, RunError> {
        let mut digest = Sha256::new();
        add(&mut digest, key);
        self.texts.for_each(|text| {
            let marks = u64::from(text.begins_record) << 1 | u64::from(text.ends_record);
            for number in [text.piece.unit, marks] {
                digest.update(number.to_le_bytes());
            }
            add(&mut digest, text.piece.text.as_bytes());
        })?;
        if let Some(tokens) = &self.tokens {
            digest.update(tokens.for_mechanism().sha256());
        }
        if let Some(records) = &self.labelled {
            records.for_each(|record| add_record(&mut digest, record))?;
        }
        Ok(hex(&digest.finalize()))
    }

    /// Finds the places of text that was left in its files, as [`TextIndex::new`] does.
    ///
    /// # Errors
    /// [`RunError::Refused`] on all ranks if a file can no longer be read on one.
    pub(crate) fn index(self, tokenizer: &Tokenizer, ranks: &Ranks) -> Result<Self, RunError> {
        let texts = match self.texts {
            Texts::InFiles(files, unit) => {
                Texts::Indexed(Box::new(Private::new(TextIndex::new(*files, unit, tokenizer, ranks)?)))
            }
            other => other,
        };
        Ok(Self { texts, ..self })
    }
}

/// Public text to evaluate a model on.
#[derive(Debug)]
pub(crate) enum PublicText {
    /// Text to predict.
    Texts(Vec<UnitText>),
    /// Records with labels or targets.
    Labelled(Vec<LabelledRecord>),
}

impl PublicText {
    /// Returns the first records, at most `most` of them; all without a limit.
    pub(crate) fn first(mut self, most: Option<u64>) -> Self {
        let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        match &mut self {
            Self::Texts(texts) => texts.truncate(most),
            Self::Labelled(records) => records.truncate(most),
        }
        self
    }

    /// Returns the SHA-256 of every record, in order.
    pub(crate) fn digest(&self) -> String {
        let mut digest = Sha256::new();
        match self {
            Self::Texts(texts) => texts.iter().for_each(|text| add(&mut digest, text.piece.text.as_bytes())),
            Self::Labelled(records) => records.iter().for_each(|record| add_record(&mut digest, record)),
        }
        hex(&digest.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Answer;

    fn digest(change: impl FnOnce(&mut LabelledRecord)) -> String {
        let mut record = LabelledRecord {
            unit: 3,
            text: "a b".to_owned(),
            words: vec!["a".to_owned(), "b".to_owned()],
            second: None,
            answer: Answer::Labels(vec![1, 0]),
        };
        change(&mut record);
        let labelled = Some(LabelledRecords::Kept(Private::new(vec![record])));
        Units { texts: Texts::none(), tokens: None, labelled }.keyed_digest(b"key").unwrap()
    }

    #[test]
    fn every_part_of_a_labelled_record_is_in_the_digest() {
        let all = [
            digest(|_| ()),
            digest(|record| record.unit = 4),
            digest(|record| record.text = "a c".to_owned()),
            digest(|record| record.words = vec!["a b".to_owned()]),
            digest(|record| record.second = Some(String::new())),
            digest(|record| record.answer = Answer::Labels(vec![0, 1])),
            digest(|record| record.answer = Answer::Text("a".to_owned())),
        ];
        let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
