//! Adds text to a digest, part by part.

use sha2::{Digest, Sha256};

use super::{Answer, LabelledRecord};

/// Adds the number of bytes and then the bytes, so that no two lists of parts look alike.
pub(super) fn add(digest: &mut Sha256, part: &[u8]) {
    digest.update((part.len() as u64).to_le_bytes());
    digest.update(part);
}

/// Adds all parts of a record.
pub(super) fn add_record(digest: &mut Sha256, record: &LabelledRecord) {
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
