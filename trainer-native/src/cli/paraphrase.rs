//! Options of `paraphrase`.

use std::path::PathBuf;

use clap::Args;

use super::DeviceName;
use super::output::print_result;
use training::RunError;
use training::paraphrase::{ParaphraseRequest, paraphrase};

#[derive(Debug, Args)]
pub(super) struct ParaphraseArgs {
    /// The paraphrase file
    #[arg(long, value_name = "PARAPHRASE.json")]
    paraphrase: PathBuf,
    /// The folder of the paraphrase [default: runs/<its name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume the paraphrase in the folder
    #[arg(long)]
    resume: bool,
    /// The device of the model that writes
    #[arg(long, default_value = "cpu")]
    device: DeviceName,
    /// NOT PRIVATE: derive all randomness from this known key, so that the paraphrase can be repeated
    #[arg(long, value_name = "N")]
    test_key: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl ParaphraseArgs {
    /// Carries out the paraphrase, and prints its result.
    pub fn run(self) -> Result<(), RunError> {
        let Self { paraphrase: file, out, resume, device, test_key, json } = self;
        let request = ParaphraseRequest { paraphrase: file, out, resume, device: device.into(), test_key };
        let summary = paraphrase(&request)?;
        print_result(&summary, &summary.to_string(), json)
    }
}
