//! Chooses the prompts of a model for synthetic records.

use std::ops::Range;
use std::path::Path;

use mechanisms::{PrivacyRng, Purpose, TestRng};
use serde::Serialize;
use serde_json::Value;

use training::RunError;
use training::infer::PromptFile;
use training::label_histogram::LabelCount;
use training::store::ledger::LedgerState;
use training::store::{covered, files};

/// Public prompts with weights. Without prompts, the model begins a text by itself.
#[derive(Debug, Default, Serialize)]
pub struct Mixture {
    prompts: Vec<String>,
    /// For each prompt, the sum of its weight and all weights before it.
    sums: Vec<f64>,
}

impl Mixture {
    /// Reads prompts as `generate` does. In JSON Lines, the number `weight` of a line is the
    /// relative frequency of its prompt, 1 by default.
    ///
    /// # Errors
    /// [`RunError::Refused`] for what `generate` refuses, and for a weight that is not a number above 0.
    pub fn read(path: &Path, field: &str) -> Result<Self, RunError> {
        let prompts = PromptFile { path, field }.read()?;
        let is_json = path.extension().is_some_and(|extension| extension == "jsonl");
        let text = String::from_utf8_lossy(&durable::read_named(path)?).into_owned();
        let mut sums = Vec::with_capacity(prompts.len());
        let mut sum = 0.0;
        for (number, line) in (1..).zip(text.lines()) {
            sum += if is_json { weight(line) } else { Some(1.0) }.ok_or_else(|| {
                let place = path.display();
                RunError::Refused(format!(
                    "{place}: line {number}: \"weight\"; allowed: a number above 0, up to 1e15"
                ))
            })?;
            sums.push(sum);
        }
        Ok(Self { prompts, sums })
    }

    /// Returns the labels of a run that released their counts, weighted by these counts. A count below 0 is noise
    /// around 0. Returns `None` if the run released no counts.
    ///
    /// # Errors
    /// [`RunError`] if the file cannot be read.
    pub fn of_run(folder: &Path) -> Result<Option<Self>, RunError> {
        files::require_finished(folder)?;
        let ledger = LedgerState::read(folder)?;
        let Some(counts) = covered::read(folder, ledger.files(), files::LABELS)? else { return Ok(None) };
        let counts = serde_json::from_slice(&counts).map_err(|_| {
            RunError::Verification(format!("{} is not of this version", folder.join(files::LABELS).display()))
        })?;
        Ok(Some(Self::of_counts(counts)))
    }

    fn of_counts(counts: Vec<LabelCount>) -> Self {
        let mut mixture = Self::default();
        // If no label has a count above 0, all are equally likely.
        let none = counts.iter().all(|counted| counted.count <= 0);
        for LabelCount { label, count } in counts {
            let weight = if none { 1.0 } else { count.max(0) as f64 };
            let before = mixture.sums.last().copied().unwrap_or(0.0);
            mixture.prompts.push(label);
            mixture.sums.push(before + weight);
        }
        mixture
    }

    /// Returns whether there are no prompts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    /// Draws the prompts of the records with these numbers. Each depends only on the seed and the
    /// record's number.
    pub fn draw(&self, seed: u64, numbers: Range<u64>) -> Vec<String> {
        let rng = TestRng::from_seed(seed);
        numbers
            .map(|number| {
                let place =
                    rng.stream(Purpose::Generation, number, 1).uniform() * self.sums.last().unwrap_or(&0.0);
                let at = self.sums.partition_point(|sum| *sum <= place);
                self.prompts.get(at.min(self.prompts.len().saturating_sub(1))).cloned().unwrap_or_default()
            })
            .collect()
    }
}

fn weight(line: &str) -> Option<f64> {
    let line: Value = serde_json::from_str(line).ok()?;
    match &line["weight"] {
        Value::Null => Some(1.0),
        weight => weight.as_f64().filter(|weight| *weight > 0.0 && *weight <= 1e15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_come_as_often_as_their_weights_say_and_the_same_way_from_any_record_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.jsonl");
        std::fs::write(&path, "{\"text\":\"joy\",\"weight\":3}\n{\"text\":\"anger\"}\n").unwrap();
        let mixture = Mixture::read(&path, "text").unwrap();
        let drawn = mixture.draw(7, 0..40_000);
        let joy = drawn.iter().filter(|prompt| *prompt == "joy").count() as f64;
        // Five standard deviations of a binomial of 40,000 and 3/4: wrong once in two million draws.
        assert!((joy - 30_000.0).abs() < 5.0 * 7_500_f64.sqrt(), "{joy}");
        assert_eq!(drawn[100..164], mixture.draw(7, 100..164));
        assert_ne!(drawn[100..164], mixture.draw(8, 100..164));
        let counts = "[{\"label\":\"joy\",\"count\":90},{\"label\":\"grief\",\"count\":-3},{\"label\":\"anger\",\"count\":10}]";
        let of_run = Mixture::of_counts(serde_json::from_str(counts).unwrap());
        assert_eq!(of_run.sums, [90.0, 90.0, 100.0]);
        assert!(!of_run.draw(1, 0..10_000).contains(&"grief".to_owned()));
        assert_eq!(Mixture::default().draw(1, 0..2), ["", ""]);
    }

    #[test]
    fn weights_that_are_none_are_refused_with_their_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.jsonl");
        for weight in ["0", "-1", "\"3\"", "1e16", "true"] {
            std::fs::write(&path, format!("{{\"text\":\"a\"}}\n{{\"text\":\"b\",\"weight\":{weight}}}\n"))
                .unwrap();
            let refused = Mixture::read(&path, "text").unwrap_err().to_string();
            assert!(refused.contains("line 2") && refused.contains("above 0"), "{refused}");
        }
    }
}
