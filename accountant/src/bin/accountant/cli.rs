//! The command line.

use core::fmt;
use std::path::PathBuf;

use accountant::DpEvent;
use clap::{Args, Parser, Subcommand, ValueEnum};
use cli::Documentation;

use crate::sampling::{Relation, SamplingArgs};

/// Certified privacy accounting for differentially private training: every figure comes with a lower and an upper bound.
#[derive(Debug, Parser)]
#[command(name = "accountant", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Longest time for an answer, in seconds of CPU time.
    #[arg(long, global = true, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) timeout: u64,
}

/// A whole number from 1, also written as 1e6.
fn whole_number(text: &str) -> Result<u64, String> {
    let as_float =
        || text.parse::<f64>().ok().filter(|x| x.fract() == 0.0 && (1.0..9e15).contains(x)).map(|x| x as u64);
    let number = text.parse().ok().filter(|&number| number >= 1).or_else(as_float);
    number.ok_or_else(|| "allowed: a whole number from 1, such as 1000000 or 1e6".to_owned())
}

const EXAMPLES: &str = "\
Examples:
  accountant epsilon --batch-size 256 --dataset-size 60000 --noise-multiplier 1.1 --steps 14062 --delta 1e-5
  accountant noise --batch-size 256 --dataset-size 60000 --epsilon 3 --steps 14062 --delta 1e-5
  accountant epsilon --sampling-probability 0.01 --sampling shuffle --noise-multiplier 2 --steps 500 --delta 1e-6 --json
  accountant epsilon --batch-size 256 --dataset-size 60000 --noise-multiplier 0.8,1,1.2 --epochs 10,60 --delta 1e-5
  echo '{\"type\": \"gaussian\", \"noise_multiplier\": 2.0}' | accountant events - --delta 1e-6";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compute ε at a given δ.
    Epsilon {
        #[command(flatten)]
        run: Run,
        /// Failure probability δ, or several: 1e-5,1e-6; it should be below 1 / dataset size.
        #[arg(long, value_delimiter = ',', required = true)]
        delta: Vec<f64>,
        /// Accounting method.
        #[arg(long, value_enum, default_value_t = Accountant::Exact)]
        accountant: Accountant,
        /// Number of records in the group to protect, such as one user's; needs --accountant exact.
        #[arg(long, default_value_t = 1)]
        group: u32,
    },
    /// Compute δ at a given ε.
    Delta {
        #[command(flatten)]
        run: Run,
        /// Privacy loss bound ε.
        #[arg(long)]
        epsilon: f64,
        /// Number of records in the group to protect, such as one user's.
        #[arg(long, default_value_t = 1)]
        group: u32,
    },
    /// Find the smallest noise multiplier that meets a target ε.
    Noise {
        #[command(flatten)]
        sampling: SamplingArgs,
        /// Number of steps.
        #[arg(long, required_unless_present = "epochs", conflicts_with = "epochs", value_parser = whole_number)]
        steps: Option<u64>,
        /// Number of passes over the data in place of --steps: E passes in batches of B of N units are E·N/B steps, rounded up.
        #[arg(long)]
        epochs: Option<f64>,
        #[command(flatten)]
        goal: Goal,
    },
    /// Find the largest number of steps that meets a target ε.
    Steps {
        #[command(flatten)]
        sampling: SamplingArgs,
        /// Noise standard deviation divided by the clip norm.
        #[arg(long)]
        noise_multiplier: f64,
        #[command(flatten)]
        goal: Goal,
    },
    /// Find the largest expected batch that meets a target ε.
    Batch {
        #[command(flatten)]
        sampling: SamplingArgs,
        /// Noise standard deviation divided by the clip norm.
        #[arg(long)]
        noise_multiplier: f64,
        /// Number of steps.
        #[arg(long, value_parser = whole_number)]
        steps: u64,
        #[command(flatten)]
        goal: Goal,
    },
    /// Find the batch, with its noise multiplier, that has the least noise on the mean gradient at a target ε.
    Ratio {
        #[command(flatten)]
        sampling: SamplingArgs,
        /// Number of steps, whatever the batch.
        #[arg(long, required_unless_present = "examples", conflicts_with = "examples", value_parser = whole_number)]
        steps: Option<u64>,
        /// Total number of examples, expected batch times steps.
        #[arg(long, value_parser = whole_number)]
        examples: Option<u64>,
        /// Accept a smaller batch whose ratio is at most this fraction above the least.
        #[arg(long, default_value_t = 0.05)]
        slack: f64,
        #[command(flatten)]
        goal: Goal,
    },
    /// Split a target ε between a vocabulary release and training.
    Split {
        #[command(flatten)]
        sampling: SamplingArgs,
        /// Number of training steps.
        #[arg(long, value_parser = whole_number)]
        steps: u64,
        /// The vocabulary's share of the squared μ, between 0 and 1.
        #[arg(long)]
        vocabulary_share: f64,
        /// Failure probability of the vocabulary's threshold, a part of δ [default: δ / 10].
        #[arg(long)]
        threshold_delta: Option<f64>,
        #[command(flatten)]
        goal: Goal,
    },
    /// Compare DP-SGD with correlated noise at equal ε: banded matrix factorization, BISR and DP-λCGD.
    Correlated {
        /// Expected batch size.
        #[arg(long, value_parser = whole_number)]
        batch_size: u64,
        /// Number of units in the data set.
        #[arg(long, value_parser = whole_number)]
        dataset_size: u64,
        /// Number of steps.
        #[arg(long, value_parser = whole_number)]
        steps: u64,
        /// Target ε, or several: 1,3,8.
        #[arg(long, value_delimiter = ',', required = true)]
        epsilon: Vec<f64>,
        /// Failure probability δ; below 1 / dataset size.
        #[arg(long)]
        delta: f64,
        /// Which data sets are neighbours.
        #[arg(long, value_enum, default_value_t = Relation::AddOrRemoveOne)]
        relation: Relation,
    },
    /// Bound what an attacker can tell: the odds of a right guess, and membership tests' true positive rates.
    Tradeoff {
        #[command(flatten)]
        run: Run,
        /// Number of records in the group to protect, such as one user's.
        #[arg(long, default_value_t = 1)]
        group: u32,
    },
    /// Write a privacy statement in words.
    Statement {
        #[command(flatten)]
        run: Run,
        /// Failure probability δ.
        #[arg(long)]
        delta: f64,
        /// Name of one unit.
        #[arg(long, default_value = "record")]
        unit: String,
        /// Also state the guarantee for a group of so many records, such as one user's.
        #[arg(long, default_value_t = 1)]
        group: u32,
    },
    /// Print the ε of a run of Opacus, jax_privacy or dp_accounting beside certified bounds, and say which figure is a bound.
    Compare {
        /// A JSON file: the state of an Opacus accountant, settings by name, or an event of dp_accounting; "-" reads standard input.
        file: PathBuf,
        /// Failure probability δ [default: the file's].
        #[arg(long)]
        delta: Option<f64>,
        /// Which data sets are neighbours.
        #[arg(long, value_enum, default_value_t = Relation::AddOrRemoveOne)]
        relation: Relation,
    },
    /// Compute ε for a JSON file of events, or of Opacus's history.
    Events {
        /// A file with one event, a list of events, or a history [[noise_multiplier, sample_rate, steps], …]; "-" reads standard input.
        file: PathBuf,
        /// Failure probability δ.
        #[arg(long)]
        delta: f64,
        /// Which data sets are neighbours.
        #[arg(long, value_enum, default_value_t = Relation::AddOrRemoveOne)]
        relation: Relation,
    },
    #[command(flatten)]
    Documentation(Documentation),
}

/// A run whose parameters are all known.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    /// Noise standard deviation divided by the clip norm; `epsilon` takes several: 0.8,1,1.2.
    #[arg(long, value_delimiter = ',', required = true)]
    noise_multiplier: Vec<f64>,
    /// Number of steps; `epsilon` takes several.
    #[arg(long, value_delimiter = ',', required_unless_present = "epochs", conflicts_with = "epochs", value_parser = whole_number)]
    steps: Vec<u64>,
    /// Number of passes over the data in place of --steps: E passes in batches of B of N units are E·N/B steps, rounded up.
    #[arg(long, value_delimiter = ',')]
    epochs: Vec<f64>,
}

impl Run {
    /// Returns all runs: every noise multiplier with every number of steps.
    pub(crate) fn settings(&self) -> Result<Vec<Setting>, String> {
        let scheme = self.sampling.scheme()?;
        let of_epochs = self.epochs.iter().map(|epochs| scheme.steps_of(*epochs));
        let steps = self.steps.iter().copied().map(Ok).chain(of_epochs).collect::<Result<Vec<u64>, _>>()?;
        let settings = self.noise_multiplier.iter().flat_map(|&noise_multiplier| {
            let event = move |&steps: &u64| Setting {
                noise_multiplier,
                steps,
                event: scheme.event(noise_multiplier, steps),
            };
            steps.iter().map(event).collect::<Vec<_>>()
        });
        Ok(settings.collect())
    }

    /// Returns the event of a single run.
    pub(crate) fn event(&self) -> Result<DpEvent, String> {
        self.setting().map(|setting| setting.event)
    }

    /// Returns a single run.
    pub(crate) fn setting(&self) -> Result<Setting, String> {
        let mut settings = self.settings()?;
        match settings.pop() {
            Some(setting) if settings.is_empty() => Ok(setting),
            _ => Err("several noise multipliers or numbers of steps; allowed: one of each here, and lists in `accountant epsilon`".to_owned()),
        }
    }
}

/// One run of a table.
pub(crate) struct Setting {
    pub(crate) noise_multiplier: f64,
    pub(crate) steps: u64,
    pub(crate) event: DpEvent,
}

/// The ε to meet.
#[derive(Debug, Args)]
pub(crate) struct Goal {
    /// Target ε, not to be exceeded.
    #[arg(long)]
    pub(crate) epsilon: f64,
    /// Failure probability δ.
    #[arg(long)]
    pub(crate) delta: f64,
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ε ≤ {} at δ = {:e}", self.epsilon, self.delta)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Accountant {
    /// Certified bounds from the tightest engine, and ε to nine digits by inversion where two contours agree on it.
    Exact,
    /// Certified bounds from privacy loss distributions composed by FFT, the method of privacy random variables (prv).
    #[value(alias = "prv")]
    Pld,
    /// The looser upper bound of most papers: Rényi orders and the improved conversion.
    Rdp,
}
