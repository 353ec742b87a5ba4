//! Options of `rehearse`.

use std::path::PathBuf;

use clap::Args;

use super::{DeviceName, print_result};
use crate::rehearsal::{RehearsalRequest, rehearse};
use training::RunError;

#[derive(Debug, Args)]
pub(super) struct RehearseArgs {
    /// The plan for the private text, with public text for evaluation
    #[arg(long, value_name = "PLAN.json")]
    plan: PathBuf,
    /// PUBLIC text like the private one: the same fields, and at least as many units as a batch has
    #[arg(long, required = true, num_args = 1.., value_name = "FILE|DIR")]
    public: Vec<PathBuf>,
    /// Accept equal records of fewer than 8 words but 18 letters or more: the public and the private text are parts of one corpus
    #[arg(long)]
    accept_equal_phrases: bool,
    /// Learning rates to try at the plan's clip norm [default: a third of the plan's, the plan's, and three times it]
    #[arg(long, value_delimiter = ',', value_name = "RATE,…")]
    learning_rate: Vec<f64>,
    /// Clip norms to try at the best learning rate [default: a third of the plan's, the plan's, and three times it]
    #[arg(long, value_delimiter = ',', value_name = "NORM,…")]
    clip_norm: Vec<f64>,
    /// Where the runs are kept; a rehearsal that was interrupted continues there [default: runs/NAME-rehearsal]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The plan file to write [default: PLAN-rehearsed.json beside the plan]
    #[arg(long, value_name = "PLAN.json")]
    write: Option<PathBuf>,
    /// The device
    #[arg(long)]
    device: Option<DeviceName>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl RehearseArgs {
    /// Tries the settings, writes the chosen plan, and prints what was found.
    pub fn run(self) -> Result<(), RunError> {
        let Self {
            plan,
            public,
            accept_equal_phrases,
            learning_rate: learning_rates,
            clip_norm: clip_norms,
            out,
            write,
            device,
            json,
        } = self;
        let device = device.map(Into::into);
        let found = rehearse(&RehearsalRequest {
            plan,
            public,
            accept_equal_phrases,
            learning_rates,
            clip_norms,
            out,
            write,
            device,
        })?;
        print_result(&found, &found.to_string(), json)
    }
}
