//! Measures how well a model predicts the labels of public text.

use std::collections::BTreeMap;

use plan::Objective;
use tokenizer::Tokenizer;

use super::entities::count_mentions;
use super::scores::{Counts, binary_f1, count, macro_f1, majority, matthews};
use super::{EntityEvaluation, Evaluation, InferenceModel, LabelEvaluation, LabelScore};
use crate::RunError;
use crate::data::{Answer, LabelledRecord};
use crate::disclosure::Released;
use crate::objective::Task;
use network::Example;
use network::nn::Kernels;

/// Public text whose labels are predicted.
pub(crate) struct HeldOutLabels {
    objective: Objective,
    names: Vec<String>,
    examples: Vec<Example>,
    /// The true labels of each text, or the tags of its words.
    actual: Vec<Vec<u32>>,
    /// The index of each word's prediction. Empty if texts have labels.
    words: Vec<Vec<Option<usize>>>,
}

impl HeldOutLabels {
    pub fn new(records: &[LabelledRecord], tokenizer: &Tokenizer, task: &Task, plan: &plan::Plan) -> Self {
        let answer = |record: &LabelledRecord| match &record.answer {
            Answer::Labels(labels) => labels.clone(),
            Answer::Text(_) => Vec::new(),
        };
        Self {
            objective: plan.training().objective,
            names: plan.training().labels().to_vec(),
            examples: records.iter().map(|record| task.example(record, tokenizer)).collect(),
            actual: records.iter().map(answer).collect(),
            words: records.iter().map(|record| task.predicted_words(&record.words, tokenizer)).collect(),
        }
    }

    /// Evaluates a model on this text.
    ///
    /// # Errors
    /// [`RunError::Failed`] if an example does not fit the model.
    pub fn evaluate<B: Kernels>(&self, model: &InferenceModel<B>) -> Result<Evaluation, RunError> {
        let logits =
            model.label_logits(&self.examples).map_err(|error| RunError::Failed(error.to_string()))?;
        Ok(match self.objective {
            Objective::TokenClassification => Evaluation::Entities(self.entities(&logits)),
            _ => Evaluation::Labels(self.texts(&logits)),
        })
    }

    fn texts(&self, logits: &[Vec<Vec<f32>>]) -> LabelEvaluation {
        let any_number = self.objective == Objective::MultiLabelClassification;
        let (mut pairs, mut nats, mut decisions) = (Vec::new(), 0.0, 0_u64);
        for (logits, example) in logits.iter().flatten().zip(&self.examples) {
            nats += if any_number {
                binary_nll(logits, &example.targets)
            } else {
                nll(logits, example.targets[0])
            };
            decisions += example.targets.len() as u64;
        }
        let found = logits.iter().flatten().map(|logits| decide(self.objective, logits));
        pairs.extend(self.actual.iter().cloned().map(sorted).zip(found));
        let counts = count(self.names.len(), &pairs);
        let texts = pairs.len() as f64;
        let correct = pairs.iter().filter(|(actual, predicted)| actual == predicted).count();
        let released = Released::from_public_text;
        LabelEvaluation {
            texts: pairs.len() as u64,
            nll: released(nats / decisions as f64),
            accuracy: released(correct as f64 / texts),
            majority_accuracy: majority(&pairs),
            macro_f1: released(macro_f1(&counts, any_number)),
            micro_f1: released(Counts::total(&counts).f1()),
            matthews: (!any_number).then(|| released(matthews(&counts))),
            f1: binary_f1(self.names.len(), &counts).filter(|_| !any_number).map(released),
            labels: self
                .names
                .iter()
                .zip(counts)
                .map(|(name, counts)| LabelScore::of(name, counts))
                .collect(),
        }
    }

    fn entities(&self, logits: &[Vec<Vec<f32>>]) -> EntityEvaluation {
        let (mut by_type, mut nats, mut predicted, mut words, mut correct) =
            (BTreeMap::<&str, Counts>::new(), 0.0, 0_u64, 0_u64, 0_u64);
        for (((logits, example), actual), places) in
            logits.iter().zip(&self.examples).zip(&self.actual).zip(&self.words)
        {
            nats += logits.iter().zip(&example.targets).map(|(logits, &tag)| nll(logits, tag)).sum::<f64>();
            predicted += example.targets.len() as u64;
            let found = tags_of(logits, places, &self.names);
            let actual: Vec<&str> = actual.iter().map(|&tag| self.names[tag as usize].as_str()).collect();
            words += actual.len() as u64;
            correct += actual.iter().zip(&found).filter(|(a, b)| a == b).count() as u64;
            count_mentions(&actual, &found, &mut by_type);
        }
        let all = Counts::total(by_type.values());
        let released = Released::from_public_text;
        EntityEvaluation {
            sentences: self.examples.len() as u64,
            words,
            nll: released(nats / predicted.max(1) as f64),
            accuracy: released(correct as f64 / words.max(1) as f64),
            precision: released(all.precision()),
            recall: released(all.recall()),
            f1: released(all.f1()),
            types: by_type.into_iter().map(|(name, counts)| LabelScore::of(name, counts)).collect(),
        }
    }
}

fn sorted(mut labels: Vec<u32>) -> Vec<u32> {
    labels.sort_unstable();
    labels.dedup();
    labels
}

/// Returns the labels that logits stand for, in ascending order: the likeliest, or all above a probability of ½.
pub(super) fn decide(objective: Objective, logits: &[f32]) -> Vec<u32> {
    if objective == Objective::MultiLabelClassification {
        return (0..).zip(logits).filter(|(_, logit)| **logit > 0.0).map(|(label, _)| label).collect();
    }
    vec![likeliest(logits)]
}

/// Returns the index of the largest logit, and the first of equal ones.
pub(super) fn likeliest(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (label, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = label;
        }
    }
    best as u32
}

/// Returns the predicted tag of each word. Words without a prediction are outside of all mentions.
pub(super) fn tags_of<'a>(
    logits: &[Vec<f32>],
    places: &[Option<usize>],
    names: &'a [String],
) -> Vec<&'a str> {
    let tag = |place: &Option<usize>| {
        let logits = place.and_then(|place| logits.get(place));
        logits.map_or("O", |logits| names[likeliest(logits) as usize].as_str())
    };
    places.iter().map(tag).collect()
}

/// Returns the negative log-likelihood of a class under a softmax, in nats.
fn nll(logits: &[f32], class: u32) -> f64 {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let total: f64 = logits.iter().map(|&logit| (f64::from(logit) - largest).exp()).sum();
    total.ln() + largest - f64::from(logits[class as usize])
}

/// Returns the summed negative log-likelihood of independent labels, in nats: ln(1 + e⁻ˣ) for a label that the text
/// has.
fn binary_nll(logits: &[f32], targets: &[u32]) -> f64 {
    let one = |(&logit, &target): (&f32, &u32)| {
        let x = if target == 1 { -f64::from(logit) } else { f64::from(logit) };
        x.max(0.0) + (-x.abs()).exp().ln_1p()
    };
    logits.iter().zip(targets).map(one).sum()
}
