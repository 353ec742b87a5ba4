//! Options of `synthesize`.

use std::path::PathBuf;

use clap::Args;

use super::DeviceName;
use super::generate::DecodingArgs;
use evaluation::synthesis::{Mixture, Synthesis, synthesize};
use training::RunError;

#[derive(Debug, Args)]
pub(super) struct SynthesizeArgs {
    /// The run folder
    run: PathBuf,
    /// Number of records
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// The file to write, as JSON lines with the field names of the run's plan
    #[arg(long, value_name = "FILE.jsonl")]
    out: PathBuf,
    /// Public prompts or labels, one a line: text, or JSON lines with an optional "weight" if it ends in .jsonl [default: the
    /// labels whose counts the run released, as often as counted]
    #[arg(long, value_name = "FILE")]
    prompts: Option<PathBuf>,
    /// The field of the JSON lines that holds the prompt; a.b is field b of field a
    #[arg(long, default_value = "text")]
    field: String,
    #[command(flatten)]
    decoding: DecodingArgs,
    /// Number of records that are drawn at a time
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Seed that makes the records repeatable
    #[arg(long)]
    seed: Option<u64>,
    /// The device
    #[arg(long, default_value = "cpu")]
    device: DeviceName,
}

impl SynthesizeArgs {
    /// Draws the records, and returns the file.
    pub fn run(self) -> Result<PathBuf, RunError> {
        let prompts = match &self.prompts {
            Some(path) => Mixture::read(path, &self.field)?,
            None => Mixture::of_run(&self.run)?.unwrap_or_default(),
        };
        synthesize(&Synthesis {
            options: self.decoding.of_the_model().options(self.batch, self.seed)?,
            run: self.run,
            device: self.device.into(),
            count: self.count,
            out: self.out,
            prompts,
        })
    }
}
