//! Options of `exposure`.

use std::path::PathBuf;

use clap::Args;

use super::{RunArgs, print_result};
use evaluation::exposure::exposure;
use training::RunError;
use training::data::{Occurrences, Pattern, Secrets};
use training::store::files;

#[derive(Debug, Args)]
pub(super) struct ExposureArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Places of hints (H) and the secret (S)
    #[arg(long, value_delimiter = ',', default_value = "HS,HSH,HHSHH", value_name = "PATTERN,…")]
    patterns: Vec<Pattern>,
    /// Secrets of each pattern and number of occurrences
    #[arg(long, default_value_t = 4, value_name = "N")]
    secrets: u32,
    /// Plant each secret so many times, each time as an additional unit [default: 1,4,16,64]
    #[arg(long, value_delimiter = ',', value_name = "N,…", conflicts_with = "probabilities")]
    copies: Vec<u32>,
    /// Insert each secret at a random place of each unit with this probability instead
    #[arg(long, value_delimiter = ',', value_name = "P,…")]
    probabilities: Vec<f64>,
    /// Draw the curve, in a new file
    #[arg(long, value_name = "FILE.svg")]
    chart: Option<PathBuf>,
}

impl ExposureArgs {
    /// Trains, measures, and prints the result.
    pub fn run(self) -> Result<(), RunError> {
        let Self { run, patterns, secrets: each, copies, probabilities, chart } = self;
        if run.non_private {
            return Err(RunError::Refused(
                "--non-private: the curve needs a run with privacy and trains one without it too; leave the option out"
                    .to_owned(),
            ));
        }
        if let Some(chart) = &chart {
            files::check_new(chart, false)?;
        }
        let occurrences = match (copies, probabilities) {
            (copies, p) if copies.is_empty() && p.is_empty() => Occurrences::Copies(vec![1, 4, 16, 64]),
            (copies, p) if p.is_empty() => Occurrences::Copies(copies),
            (_, p) => Occurrences::Probabilities(p),
        };
        let json = run.json;
        let curve = exposure(&run.request()?, &Secrets { patterns, each, occurrences })?;
        if let Some(chart) = &chart {
            curve.draw(chart)?;
        }
        print_result(&curve, &curve.to_string(), json)
    }
}
