//! Predicts labels for the records of a file with a trained model.

use std::fmt::Write;
use std::path::Path;

use plan::{Device, Objective, PrivacyUnit};
use serde::Serialize;

use super::labels::{decide, tags_of};
use super::{ModelTask, RunModel, with_model};
use crate::RunError;
use crate::data::{LabelledFields, LabelledRecord, public_file};
use network::Example;
use network::nn::Kernels;

/// Predicts the labels of each record of a file: one JSON object a line, in the order of the records. Fields have the names
/// of the run's plan; labels in the file are not read.
///
/// # Errors
/// [`RunError::Refused`] if the folder holds no finished model, the model predicts no labels, or the file cannot be read.
pub fn predict(folder: &Path, device: Device, input: &Path) -> Result<String, RunError> {
    with_model(folder, device, Predict(input))
}

struct Predict<'a>(&'a Path);

/// The prediction for a record, in the form in which it is written.
#[derive(Serialize)]
#[serde(untagged)]
enum Predicted<'a> {
    Label { label: &'a str, probability: f64 },
    Labels { labels: Vec<&'a str> },
    Tags { words: &'a [String], tags: Vec<&'a str> },
}

impl ModelTask for Predict<'_> {
    type Output = String;

    fn run<B: Kernels>(self, run: &RunModel<B>) -> Result<String, RunError> {
        let RunModel { model, tokenizer, objective, plan, .. } = run;
        let (kind, names) = (plan.training().objective, plan.training().labels());
        let Some(task) = objective.task().filter(|_| kind.has_labels()) else {
            let what = "this run's model predicts tokens, not labels; use generate, or eval";
            return Err(RunError::Refused(what.to_owned()));
        };
        let fields = LabelledFields { answers: false, public: true, ..LabelledFields::of(plan) };
        let (records, _) = fields.read(public_file(plan, self.0), PrivacyUnit::Record, "--input")?;
        let examples: Vec<Example> = records.iter().map(|record| task.example(record, tokenizer)).collect();
        let logits = model.label_logits(&examples).map_err(|error| RunError::Failed(error.to_string()))?;
        let predicted = |(record, logits): (&LabelledRecord, &Vec<Vec<f32>>)| -> String {
            let names_of = |logits: &[f32]| {
                decide(kind, logits)
                    .into_iter()
                    .map(|label| names[label as usize].as_str())
                    .collect::<Vec<_>>()
            };
            let of_text = logits.first().map(Vec::as_slice).unwrap_or_default();
            let predicted = match kind {
                Objective::TokenClassification => {
                    let places = task.predicted_words(&record.words, tokenizer);
                    Predicted::Tags { words: &record.words, tags: tags_of(logits, &places, names) }
                }
                Objective::MultiLabelClassification => Predicted::Labels { labels: names_of(of_text) },
                _ => {
                    let label = names_of(of_text).first().copied().unwrap_or_default();
                    Predicted::Label { label, probability: largest_probability(of_text) }
                }
            };
            serde_json::to_string(&predicted).unwrap_or_default()
        };
        let mut lines = String::new();
        for line in records.iter().zip(&logits).map(predicted) {
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{line}");
        }
        Ok(lines.trim_end().to_owned())
    }
}

/// Returns the largest probability of a softmax.
fn largest_probability(logits: &[f32]) -> f64 {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    1.0 / logits.iter().map(|&logit| (f64::from(logit) - largest).exp()).sum::<f64>()
}
