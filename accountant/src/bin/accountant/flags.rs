//! What the user typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::run::{Relation, Run};

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
    /// The largest expected batch that meets a target ε.
    Batch {
        #[command(flatten)]
        run: Run,
        /// Noise over clip norm.
        #[arg(long)]
        noise_multiplier: f64,
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
    /// The batch, and its noise multiplier, with the least noise on the mean gradient for a target ε.
    Ratio {
        #[command(flatten)]
        run: Run,
        /// Number of steps, whatever the batch.
        #[arg(long, required_unless_present = "examples", conflicts_with = "examples")]
        steps: Option<u64>,
        /// Examples in all, expected batch times steps.
        #[arg(long)]
        examples: Option<u64>,
        /// How far above the least ratio a cheaper batch may lie, as a part of it.
        #[arg(long, default_value_t = 0.05)]
        slack: f64,
        /// The ε not to exceed.
        #[arg(long)]
        epsilon: f64,
        /// The failure probability.
        #[arg(long)]
        delta: f64,
    },
    /// Noise for a vocabulary release and for training that together meet a target ε.
    Split {
        #[command(flatten)]
        run: Run,
        /// Number of training steps.
        #[arg(long)]
        steps: u64,
        /// The vocabulary's part of the squared μ, between 0 and 1.
        #[arg(long)]
        vocabulary_share: f64,
        /// The part of δ that the vocabulary's threshold may fail with; a tenth of δ unless given.
        #[arg(long)]
        threshold_delta: Option<f64>,
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
    /// A script that completes these commands in a shell.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
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
