//! Options of `memorization`.

use std::path::PathBuf;

use clap::Args;

use super::{DeviceName, print_result};
use evaluation::memorization::{MemorizationOptions, Question, memorization};
use training::RunError;

#[derive(Debug, Args)]
pub(super) struct MemorizationArgs {
    /// The run folder; nothing is written to it
    run: PathBuf,
    /// The text that the model was trained on
    #[arg(long, value_name = "FILE")]
    train: PathBuf,
    /// Text that the model was not trained on
    #[arg(long, value_name = "FILE")]
    valid: PathBuf,
    /// Tokens of a record that the model is given
    #[arg(long, default_value_t = 32)]
    prefix: usize,
    /// Tokens after them that it should continue with
    #[arg(long, default_value_t = 16)]
    continuation: usize,
    /// Have the model fill spans that were cut out, as in training, instead of continuing prefixes
    #[arg(long)]
    span: bool,
    /// Most examples of each split
    #[arg(long, default_value_t = 200)]
    examples: usize,
    /// Jaccard similarity of runs of five words from which two records are near-duplicates
    #[arg(long, default_value_t = 0.8)]
    similarity: f64,
    /// Measure the texts of a beam search beside the greedy ones
    #[arg(long, value_name = "N")]
    beams: Option<usize>,
    /// A run on other text, with the same tokenizer and context: what it finds easy as well tells nothing about membership; may
    /// be repeated
    #[arg(long, value_name = "RUN")]
    reference: Vec<PathBuf>,
    /// The device
    #[arg(long, default_value = "cpu")]
    device: DeviceName,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl MemorizationArgs {
    /// Measures, and prints the result.
    pub fn run(self) -> Result<(), RunError> {
        let question = match self.span {
            true => Question::Span,
            false => Question::Prefix { prefix: self.prefix, continuation: self.continuation },
        };
        for (option, given) in [("--examples", Some(self.examples)), ("--beams", self.beams)] {
            if given == Some(0) {
                return Err(RunError::Refused(format!("{option}: 0 is out of range; allowed: at least 1")));
            }
        }
        let options = MemorizationOptions {
            train: &self.train,
            valid: &self.valid,
            question,
            examples: self.examples,
            similarity: self.similarity,
            beams: self.beams,
            references: &self.reference,
        };
        let figures = memorization(&self.run, self.device.into(), &options)?;
        print_result(&figures, &figures.to_string(), self.json)
    }
}
