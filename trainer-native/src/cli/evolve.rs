//! Options of `evolve`.

use std::path::PathBuf;

use clap::Args;

use super::DeviceName;
use super::output::print_result;
use training::RunError;
use training::evolution::{EvolutionRequest, evolve};

#[derive(Debug, Args)]
pub(super) struct EvolveArgs {
    /// The evolution file
    #[arg(long, value_name = "EVOLUTION.json")]
    evolution: PathBuf,
    /// The folder of the evolution [default: runs/<its name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume the evolution in the folder
    #[arg(long)]
    resume: bool,
    /// The device of the run that writes candidates
    #[arg(long, default_value = "cpu")]
    device: DeviceName,
    /// NOT PRIVATE: derive all randomness from this known key, so that the evolution can be repeated
    #[arg(long, value_name = "N")]
    test_key: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl EvolveArgs {
    /// Carries out the evolution, and prints its result.
    pub fn run(self) -> Result<(), RunError> {
        let Self { evolution, out, resume, device, test_key, json } = self;
        let summary = evolve(&EvolutionRequest { evolution, out, resume, device: device.into(), test_key })?;
        print_result(&summary, &summary.to_string(), json)
    }
}
