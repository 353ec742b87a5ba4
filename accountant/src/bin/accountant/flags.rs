//! What the user typed.

use std::path::PathBuf;

use accountant::{DpEvent, NeighboringRelation};
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Certified privacy accounting for sampled Gaussian training.
#[derive(Debug, Parser)]
#[command(name = "accountant", version, arg_required_else_help = true)]
pub(crate) struct Flags {
    /// The question.
    #[command(subcommand)]
    pub(crate) question: Question,
    /// Answer in JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The questions.
#[derive(Debug, Subcommand)]
pub(crate) enum Question {
    /// ε at δ.
    Epsilon(AtDelta),
    /// δ at ε.
    Delta {
        #[command(flatten)]
        run: Run,
        /// Noise over clip norm.
        #[arg(long)]
        noise_multiplier: f64,
        /// Number of steps.
        #[arg(long)]
        steps: u64,
        /// The ε to hold.
        #[arg(long)]
        epsilon: f64,
    },
    /// The smallest noise multiplier that meets a target ε.
    Noise {
        #[command(flatten)]
        run: Run,
        /// Number of steps.
        #[arg(long)]
        steps: u64,
        /// The ε not to exceed.
        #[arg(long)]
        epsilon: f64,
        /// The failure probability.
        #[arg(long)]
        delta: f64,
    },
    /// The largest number of steps that meets a target ε.
    Steps {
        #[command(flatten)]
        run: Run,
        /// Noise over clip norm.
        #[arg(long)]
        noise_multiplier: f64,
        /// The ε not to exceed.
        #[arg(long)]
        epsilon: f64,
        /// The failure probability.
        #[arg(long)]
        delta: f64,
    },
    /// The best membership test's true positive rates.
    Tradeoff(AtDelta),
    /// A privacy statement in words.
    Statement(AtDelta),
    /// ε of a file of events in JSON, "-" for standard input.
    Events {
        /// The file: one event, or a list of them.
        file: PathBuf,
        /// The failure probability.
        #[arg(long)]
        delta: f64,
        /// Which data sets are neighbours.
        #[arg(long, value_enum, default_value_t = Relation::AddOrRemoveOne)]
        relation: Relation,
    },
}

/// A run at a δ.
#[derive(Debug, Args)]
pub(crate) struct AtDelta {
    #[command(flatten)]
    pub(crate) run: Run,
    /// Noise over clip norm.
    #[arg(long)]
    pub(crate) noise_multiplier: f64,
    /// Number of steps.
    #[arg(long)]
    pub(crate) steps: u64,
    /// The failure probability.
    #[arg(long)]
    pub(crate) delta: f64,
    /// The method: `exact` and `pld` certify both sides, `rdp` is an upper bound as most papers report it.
    #[arg(long, value_enum, default_value_t = Accountant::Exact)]
    pub(crate) accountant: Accountant,
    /// Records of one user: the group to protect.
    #[arg(long, default_value_t = 1)]
    pub(crate) group: u32,
    /// What one unit is called in a statement.
    #[arg(long, default_value = "record")]
    pub(crate) unit: String,
}

/// How batches are drawn.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Expected batch size; needs --dataset-size.
    #[arg(
        long,
        requires = "dataset_size",
        conflicts_with = "sampling_probability",
        required_unless_present = "sampling_probability"
    )]
    batch_size: Option<f64>,
    /// Number of units.
    #[arg(long, requires = "batch_size")]
    dataset_size: Option<f64>,
    /// Probability with which each unit takes part in a step.
    #[arg(long)]
    sampling_probability: Option<f64>,
    /// How batches are drawn.
    #[arg(long, value_enum, default_value_t = Sampling::Poisson)]
    sampling: Sampling,
    /// Which data sets are neighbours.
    #[arg(long, value_enum, default_value_t = Relation::AddOrRemoveOne)]
    pub(crate) relation: Relation,
}

impl Run {
    /// The event of `steps` steps.
    pub(crate) fn event(&self, noise_multiplier: f64, steps: u64) -> DpEvent {
        let probability = match (self.sampling_probability, self.batch_size, self.dataset_size) {
            (Some(probability), ..) => probability,
            (None, Some(batch), Some(units)) => batch / units,
            _ => f64::NAN,
        };
        match self.sampling {
            Sampling::Poisson => {
                let step =
                    DpEvent::PoissonSampledGaussian { sampling_probability: probability, noise_multiplier };
                DpEvent::SelfComposed { event: Box::new(step), count: steps }
            }
            Sampling::Full => DpEvent::SelfComposed {
                event: Box::new(DpEvent::Gaussian { noise_multiplier }),
                count: steps,
            },
            Sampling::Shuffled => {
                // An epoch that is not finished is charged whole; the lower bound then speaks of the whole one.
                let batches = (1.0 / probability).ceil().max(1.0) as u64;
                DpEvent::ShuffledGaussian { noise_multiplier, batches, epochs: steps.div_ceil(batches) }
            }
        }
    }
}

/// How batches are drawn.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Sampling {
    /// Each unit independently.
    Poisson,
    /// Every unit in every step.
    Full,
    /// Epochs cut into batches after a shuffle.
    Shuffled,
}

/// Which data sets are neighbours.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Relation {
    /// One unit more or less.
    AddOrRemoveOne,
    /// One unit exchanged.
    ReplaceOne,
    /// One unit emptied.
    ZeroOut,
}

impl From<Relation> for NeighboringRelation {
    fn from(relation: Relation) -> Self {
        match relation {
            Relation::AddOrRemoveOne => Self::AddOrRemoveOne,
            Relation::ReplaceOne => Self::ReplaceOne,
            Relation::ZeroOut => Self::ZeroOut,
        }
    }
}

/// The method.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Accountant {
    /// Certified bounds from the transform or the lattice.
    Exact,
    /// The same: the lattice is one of its engines.
    Pld,
    /// Rényi orders and the improved conversion.
    Rdp,
}
