//! Options of a run.

use std::path::PathBuf;

use clap::Args;

use super::{DeviceName, print_result};
use training::RunError;
use training::ranks::Ranks;
use training::run::{self, Request};

#[derive(Clone, Debug, Args)]
pub(super) struct RunArgs {
    /// The plan file
    #[arg(long, value_name = "PLAN.json", required = true)]
    plan: Option<PathBuf>,
    /// The run folder [default: runs/<plan name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume the run in the folder
    #[arg(long)]
    resume: bool,
    /// The folder is a copy, and neither the original nor another copy is resumed; the certificate says so
    #[arg(long, requires = "resume")]
    copied: bool,
    /// The device [default: the plan's]
    #[arg(long)]
    device: Option<DeviceName>,
    /// Units per micro-batch, also in a run that has begun [default: the plan's, or what fits into memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    physical_batch: Option<u32>,
    /// NOT PRIVATE: derive all randomness from this known key, so that the run can be repeated
    #[arg(long, value_name = "N")]
    test_key: Option<u64>,
    /// NOT PRIVATE: train a baseline without clipping and noise
    #[arg(long)]
    pub(super) non_private: bool,
    /// Number of parameters above which ranks divide sums, for tests
    #[arg(long, value_name = "N", hide = true, requires = "test_key")]
    divide_sums_above: Option<usize>,
    /// Read and check everything, say what would be done, and write and spend nothing
    #[arg(long, conflicts_with = "resume")]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl RunArgs {
    /// Carries out the plan, or in a dry run says what that would do.
    pub(super) fn run(self, ranks: &Ranks) -> Result<(), RunError> {
        let (json, dry_run) = (self.json, self.dry_run);
        let request = ranks.agree(self.request())?;
        let job = ranks.agree(request.check(ranks))?;
        if dry_run {
            let found = ranks.agree(run::dry_run(&job))?;
            return match ranks.is_first() {
                true => print_result(&found, &found.to_string(), json),
                false => Ok(()),
            };
        }
        let summary = run::carry_out(&job)?;
        summary.map_or(Ok(()), |summary| print_result(&summary, &summary.to_string(), json))
    }

    /// Returns what all ranks of a run must be started with. The contents of their plans are compared where they are read, and the
    /// first rank's folder is the run's.
    pub(super) fn in_common(&self) -> Self {
        Self { plan: None, out: None, ..self.clone() }
    }

    pub(super) fn request(self) -> Result<Request, RunError> {
        let Self {
            plan,
            out,
            resume,
            copied,
            device,
            physical_batch,
            test_key,
            non_private,
            divide_sums_above,
            dry_run: _,
            json: _,
        } = self;
        let plan = plan.ok_or_else(|| RunError::Refused("give a plan with --plan PLAN.json".to_owned()))?;
        let device = device.map(Into::into);
        Ok(Request {
            plan,
            out,
            resume,
            copied,
            device,
            physical_batch,
            test_key,
            non_private,
            canaries: None,
            divide_sums_above,
        })
    }
}
