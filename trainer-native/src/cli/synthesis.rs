//! Options of `evolve` and `paraphrase`.

use std::path::PathBuf;

use clap::Args;

use super::DeviceName;
use super::output::print_result;
use training::RunError;
use training::evolution::evolve;
use training::paraphrase::paraphrase;
use training::synthetic::SynthesisRequest;
use training::verify::synthesis::SynthesisSummary;

#[derive(Debug, Args)]
pub(super) struct EvolveArgs {
    /// The evolution file
    #[arg(long, value_name = "EVOLUTION.json")]
    evolution: PathBuf,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Args)]
pub(super) struct ParaphraseArgs {
    /// The paraphrase file
    #[arg(long, value_name = "PARAPHRASE.json")]
    paraphrase: PathBuf,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Args)]
struct Options {
    /// The folder of the records [default: runs/<name in the file>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume what the folder holds
    #[arg(long)]
    resume: bool,
    /// The device of the run that writes texts
    #[arg(long, default_value = "cpu")]
    device: DeviceName,
    /// NOT PRIVATE: derive all randomness from this known key, so that the records can be made again
    #[arg(long, value_name = "N")]
    test_key: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl EvolveArgs {
    /// Carries out the evolution, and prints its result.
    pub fn run(self) -> Result<(), RunError> {
        self.options.carry_out(self.evolution, evolve)
    }
}

impl ParaphraseArgs {
    /// Carries out the paraphrase, and prints its result.
    pub fn run(self) -> Result<(), RunError> {
        self.options.carry_out(self.paraphrase, paraphrase)
    }
}

impl Options {
    fn carry_out(
        self,
        file: PathBuf,
        work: impl Fn(&SynthesisRequest) -> Result<SynthesisSummary, RunError>,
    ) -> Result<(), RunError> {
        let Self { out, resume, device, test_key, json } = self;
        let summary = work(&SynthesisRequest { file, out, resume, device: device.into(), test_key })?;
        print_result(&summary, &summary.to_string(), json)
    }
}
