//! Asks a run's model for parts of records as the model was trained on them.

use std::path::Path;

use mechanisms::Stream;
use plan::PrivacyUnit;

use super::answers::prompt;
use super::labels::likeliest;
use super::{InferenceModel, Prompt, RunModel};
use crate::RunError;
use crate::data::{Dataset, LabelledFields, UnitText, public_file, read_texts, text_of};
use crate::objective::{Generation, end_of_text};
use network::Example;
use network::nn::Kernels;

/// A record of a file, as training reads it.
#[derive(Clone, Debug)]
pub struct TrainedRecord {
    /// Text of the record. If the objective is a task, the texts that are read and written.
    pub text: String,
    /// The tokens of the first window; empty if the objective is a task.
    window: Vec<u32>,
    /// The example, if the objective is a task.
    example: Option<Example>,
}

/// A question about a record, with its answer.
#[derive(Clone, Debug)]
pub struct Recall {
    /// The question.
    pub asked: Asked,
    /// The tokens that answer the question: at least one.
    pub target: Vec<u32>,
}

/// A question about a record.
#[derive(Clone, Debug)]
pub enum Asked {
    /// What follows the beginning of a text?
    Continued(Prompt),
    /// Which tokens stand at the masked places?
    Filled(Example),
}

impl<B: Kernels> RunModel<B> {
    /// Reads a file with the fields of the run's plan, which `option` of the command line names. If the unit is a piece
    /// of a record, the first window is that of the first piece.
    ///
    /// # Errors
    /// [`RunError::Refused`] if it cannot be read.
    pub fn read_as_trained(&self, path: &Path, option: &str) -> Result<Vec<TrainedRecord>, RunError> {
        let source = public_file(&self.plan, path);
        if let Some(task) = self.objective.task() {
            let fields = LabelledFields { public: false, ..LabelledFields::of(&self.plan) };
            let (records, _) = fields.read(source, PrivacyUnit::Record, option)?;
            let is_chat = self.plan.training().objective == plan::Objective::Chat;
            let trained = |record| TrainedRecord {
                text: text_of(record, is_chat),
                window: Vec::new(),
                example: Some(task.example(record, &self.tokenizer)),
            };
            return Ok(records.iter().map(trained).collect());
        }
        let unit = match self.plan.privacy().unit {
            PrivacyUnit::User | PrivacyUnit::Owner => PrivacyUnit::Record,
            unit => unit,
        };
        let (texts, _) = read_texts(&source, unit, option)?;
        let records = texts.chunk_by(|_, next| !next.begins_record);
        records.map(|pieces| self.of_pieces(pieces)).collect()
    }

    fn of_pieces(&self, pieces: &[UnitText]) -> Result<TrainedRecord, RunError> {
        let text: Vec<&str> = pieces.iter().map(|piece| piece.piece.text.as_str()).collect();
        let dataset = Dataset::encode(&pieces[..1], &self.tokenizer, self.objective.window_spec());
        let has_window = dataset.units() > 0 && dataset.windows_of(0) > 0;
        let window = if has_window { dataset.window(0, 0)? } else { Vec::new() };
        Ok(TrainedRecord { text: text.join(" "), window, example: None })
    }

    /// Returns the examples of records, with the same masks in every run. Records without a target have none.
    pub fn public_examples(&self, records: &[&TrainedRecord]) -> Vec<Example> {
        let mut examples = match self.objective.task() {
            Some(_) => records.iter().filter_map(|record| record.example.clone()).collect(),
            None => {
                let windows = records.iter().map(|record| record.window.clone());
                self.objective
                    .public_examples(&windows.filter(|window| !window.is_empty()).collect::<Vec<_>>())
            }
        };
        examples.retain(|example| !example.targets.is_empty());
        examples
    }

    /// Asks for what training predicts of the record, divided or masked as in training. Returns [`None`] if training
    /// predicts nothing of it.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the tokenizer has no end-of-text token.
    pub fn recall(&self, record: &TrainedRecord, stream: &mut Stream) -> Result<Option<Recall>, RunError> {
        let own = record.example.clone();
        let example = own.unwrap_or_else(|| self.objective.example(&record.window, stream));
        let (mut target, asked) = match self.objective.generation() {
            Generation::None => {
                let hidden = |(place, target): &(u32, u32)| example.input[*place as usize] != *target;
                let places = example.positions.iter().copied().zip(example.targets.iter().copied());
                let (positions, targets) = places.filter(hidden).unzip();
                (targets, Asked::Filled(Example { positions, targets: Vec::new(), ..example }))
            }
            _ => {
                // In a conversation, the first answer.
                let run =
                    example.positions.chunk_by(|place, next| place + 1 == *next).next().map(<[u32]>::len);
                let length = run.unwrap_or(example.targets.len());
                (example.targets[..length].to_vec(), Asked::Continued(prompt(&example)))
            }
        };
        let end = match self.objective.generation() {
            Generation::Turn { end } => end,
            _ => end_of_text(&self.tokenizer)?,
        };
        target.truncate(target.iter().position(|&token| token == end).unwrap_or(target.len()));
        Ok((!target.is_empty()).then_some(Recall { asked, target }))
    }

    /// Asks for the `continuation` tokens after the first `prefix` tokens of the record's first window. Returns
    /// [`None`] if the window has fewer.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the model generates no text.
    pub fn recall_after(
        &self,
        record: &TrainedRecord,
        prefix: usize,
        continuation: usize,
    ) -> Result<Option<Recall>, RunError> {
        let spec = self.objective.window_spec();
        let window = record.window.strip_suffix(&[spec.eos]).unwrap_or(&record.window);
        let text = window.get(usize::from(spec.overlaps)..).unwrap_or_default();
        let Some(text) = text.get(..prefix + continuation) else { return Ok(None) };
        let (read, written) = text.split_at(prefix);
        Ok(Some(Recall { asked: Asked::Continued(self.prompt(read)?), target: written.to_vec() }))
    }
}

impl<B: Kernels> InferenceModel<B> {
    /// Returns the likeliest token at each of the example's positions.
    ///
    /// # Errors
    /// [`RunError::Failed`] for an example that does not fit the network.
    pub fn filled(&self, example: &Example) -> Result<Vec<u32>, RunError> {
        let logits = self.logits(example).map_err(|error| RunError::Failed(error.to_string()))?;
        Ok(logits.iter().map(|logits| likeliest(logits)).collect())
    }
}
