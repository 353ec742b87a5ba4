//! A digest of the training text.

use sha2::{Digest, Sha256};

use super::{Answer, LabelledRecord, PublicText, Units};
use crate::RunError;
use durable::hex;

impl Units {
    /// SHA-256 of `key`, then of every unit with its text, in order. It is as private as the text to whoever has the key.
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
}

impl PublicText {
    /// SHA-256 of every record, in order.
    pub(crate) fn digest(&self) -> String {
        let mut digest = Sha256::new();
        match self {
            Self::Texts(texts) => texts.iter().for_each(|text| add(&mut digest, text.piece.text.as_bytes())),
            Self::Labelled(records) => records.iter().for_each(|record| add_record(&mut digest, record)),
        }
        hex(&digest.finalize())
    }
}

/// Adds bytes after their number, so that no two lists of parts look alike.
fn add(digest: &mut Sha256, part: &[u8]) {
    digest.update((part.len() as u64).to_le_bytes());
    digest.update(part);
}

fn add_record(digest: &mut Sha256, record: &LabelledRecord) {
    digest.update(record.unit.to_le_bytes());
    add(digest, record.text.as_bytes());
    digest.update((record.words.len() as u64).to_le_bytes());
    record.words.iter().for_each(|word| add(digest, word.as_bytes()));
    digest.update([u8::from(record.second.is_some())]);
    add(digest, record.second.as_deref().unwrap_or_default().as_bytes());
    match &record.answer {
        Answer::Labels(labels) => {
            let bytes: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
            digest.update([0]);
            add(digest, &bytes);
        }
        Answer::Text(text) => {
            digest.update([1]);
            add(digest, text.as_bytes());
        }
    }
}

/// Returns a checksum, by which a later reading detects a changed record.
pub(super) fn checksum(record: &LabelledRecord) -> u32 {
    let mut digest = Sha256::new();
    add_record(&mut digest, record);
    let [a, b, c, d, ..] = <[u8; 32]>::from(digest.finalize());
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{LabelledRecords, Texts};
    use crate::disclosure::Private;

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
