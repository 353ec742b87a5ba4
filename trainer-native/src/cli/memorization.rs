//! Options of `memorization`.

use std::path::PathBuf;

use clap::Args;

use super::{DeviceName, print_result};
use evaluation::memorization::{MemorizationOptions, memorization};
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
    /// Tokens of a record that the model is given [default: as in training; 32 of a decoder]
    #[arg(long, value_name = "N")]
    prefix: Option<usize>,
    /// Tokens after them that it should continue with [default: as in training; 16 of a decoder]
    #[arg(long, value_name = "N")]
    continuation: Option<usize>,
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
        for (option, given) in [("--examples", Some(self.examples)), ("--beams", self.beams)] {
            if given == Some(0) {
                return Err(RunError::Refused(format!("{option}: 0 is out of range; allowed: at least 1")));
            }
        }
        let options = MemorizationOptions {
            train: &self.train,
            valid: &self.valid,
            prefix: self.prefix,
            continuation: self.continuation,
            examples: self.examples,
            similarity: self.similarity,
            beams: self.beams,
            references: &self.reference,
        };
        let figures = memorization(&self.run, self.device.into(), &options)?;
        print_result(&figures, &figures.to_string(), self.json)
    }
}
