//! The private records of a paraphrase: one of each unit, in batches. This is the only file that opens them before the mechanism.

use std::collections::BTreeMap;

use mechanisms::PrivacyRng;
use plan::ParaphraseFile;
use sha2::{Digest, Sha256};

use super::ends;
use crate::RunError;
use crate::data::Units;
use crate::disclosure::Private;
use crate::label_histogram::with_noise;
use crate::synthetic::inputs::each_record;

/// The record that a unit gives.
struct Reference {
    unit: u64,
    /// Index of its label, or 0 without labels.
    label: usize,
    text: String,
}

/// One record of each unit. They stay in the memory of this process.
pub(super) struct References(Private<Vec<Reference>>);

/// A batch: the references of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// Index of the label, or 0 without labels.
    pub label: usize,
    pub texts: Vec<String>,
}

impl References {
    /// Takes one record of each unit, which a hash of the unit's number with `key` chooses.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the text is in a file that can no longer be read.
    pub fn new(units: Units, key: &str) -> Result<Self, RunError> {
        let mut by_unit: BTreeMap<u64, Vec<(usize, String)>> = BTreeMap::new();
        each_record(units, |unit, label, text| {
            by_unit.entry(unit).or_default().push((label, text.to_owned()))
        })?;
        let chosen = |(unit, mut own): (u64, Vec<(usize, String)>)| {
            let (label, text) = own.swap_remove(hashed(key, "record", unit, own.len() as u64) as usize);
            Reference { unit, label, text }
        };
        Ok(Self(Private::new(by_unit.into_iter().map(chosen).collect())))
    }

    /// Releases the counts of labels, which the ledger has charged. A unit adds 1 to one count.
    ///
    /// # Errors
    /// [`RunError::Failed`] for noise that is out of range.
    pub fn label_counts(&self, file: &ParaphraseFile, rng: &dyn PrivacyRng) -> Result<Vec<i64>, RunError> {
        let Some(histogram) = file.label_histogram() else { return Ok(Vec::new()) };
        let mut counts = vec![0; histogram.labels.len()];
        self.0.for_mechanism().iter().for_each(|reference| counts[reference.label] += 1);
        let released = histogram.mechanism().and_then(|mechanism| with_noise(counts, &mechanism, rng));
        released.map_err(|error| RunError::Failed(format!("label counts: {error}")))
    }

    /// Divides the references into the batches of each label. A unit is in one batch, which follows from its number, its label and the
    /// key; in none if its label has no text.
    pub fn batches(&self, texts_by_label: &[u64], key: &str) -> Private<Vec<Batch>> {
        let ends = ends(texts_by_label);
        let labels = texts_by_label.iter().enumerate();
        let mut batches: Vec<Batch> = labels
            .flat_map(|(label, count)| (0..*count).map(move |_| Batch { label, texts: Vec::new() }))
            .collect();
        for Reference { unit, label, text } in self.0.for_mechanism() {
            let count = texts_by_label[*label];
            if count > 0 {
                let first = ends[*label] - count;
                batches[(first + hashed(key, "batch", *unit, count)) as usize].texts.push(text.clone());
            }
        }
        Private::new(batches)
    }
}

/// Returns a number below `n` ≥ 1 that follows from a unit's number, and is as good as random to whoever does not know the key.
fn hashed(key: &str, purpose: &str, unit: u64, n: u64) -> u64 {
    let digest = Sha256::new()
        .chain_update(key)
        .chain_update([0])
        .chain_update(purpose)
        .chain_update([0])
        .chain_update(unit.to_le_bytes())
        .finalize();
    let number = digest.iter().take(16).fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
    (number % u128::from(n.max(1))) as u64
}

#[cfg(test)]
impl References {
    /// Returns references with these units, labels and texts.
    pub fn of(references: &[(u64, usize, &str)]) -> Self {
        let reference = |(unit, label, text): &(u64, usize, &str)| Reference {
            unit: *unit,
            label: *label,
            text: (*text).to_owned(),
        };
        Self(Private::new(references.iter().map(reference).collect()))
    }
}
