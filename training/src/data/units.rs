//! The training text of a run and the public text beside it, with their digests.

use dp_tokenizer::tokens::TokenDataset;
use sha2::{Digest, Sha256};

use super::digest::{ContentDigest, add, add_record, sha256_of_text};
use super::{LabelledRecord, LabelledRecords, Texts, UnitText};
use crate::disclosure::Private;
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
    /// Returns the SHA-256 of `key` and of a digest of every unit with its text, in order. It is as private as the text to
    /// whoever has the key. It does not depend on whether text is in memory or in files, or on the number of ranks.
    pub(crate) fn keyed_digest(&self, key: &[u8]) -> String {
        let mut digest = match &self.texts {
            Texts::InFiles(text) => text.for_mechanism().digest(),
            Texts::Kept(texts) => {
                let mut digest = ContentDigest::default();
                for UnitText { piece, begins_record, ends_record } in texts.for_mechanism() {
                    digest.push(sha256_of_text(&piece.text, *begins_record, *ends_record));
                    digest.push_unit(piece.unit);
                }
                digest
            }
        };
        if let Some(records) = &self.labelled {
            digest.append(&records.digest());
        }
        digest.keyed(key, self.tokens.as_ref().map(|tokens| tokens.for_mechanism().sha256().as_slice()))
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
        Units { texts: Texts::none(), tokens: None, labelled }.keyed_digest(b"key")
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
