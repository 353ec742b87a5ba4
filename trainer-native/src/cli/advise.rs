//! Options of `advise`.

use std::fmt;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use plan::{
    Advice, CHECKPOINTS, Candidate, Compute, Initial, MACHINES, Plan, PlanError, SIZES, Size, Start, Trained,
    UnitsWith, UserScheme, advise,
};
use serde::Serialize;

use super::print_result;
use training::RunError;
use training::plan_file::read_uncertified;

#[derive(Debug, Args)]
pub(super) struct AdviseArgs {
    /// A plan with the data, the privacy and the tokenizer; its batch size, steps and noise are ignored
    #[arg(long, value_name = "PLAN.json")]
    plan: PathBuf,
    #[command(flatten)]
    budget: Budget,
    /// The machine of --hours
    #[arg(long, default_value = "cpu")]
    machine: MachineName,
    /// The size of a model with random weights [default: the plan's checkpoint, or a proposed size]
    #[arg(long, value_parser = PossibleValuesParser::new(SIZES.map(|size| size.name)))]
    size: Option<String>,
    /// A public checkpoint to start from, in the folder of this name beside the plan [default: the plan's]
    #[arg(long, value_parser = PossibleValuesParser::new(CHECKPOINTS.map(|known| known.name)), conflicts_with = "size")]
    checkpoint: Option<String>,
    /// What of the checkpoint is trained [default: the plan's, or lora with --checkpoint]
    #[arg(long, conflicts_with = "size")]
    train: Option<TrainedName>,
    /// How many units have how many windows or records, declared public: compares sampling of units with sampling of examples
    #[arg(long, value_name = "EXAMPLES:UNITS", value_delimiter = ',', value_parser = units_with)]
    examples_per_unit: Vec<UnitsWith>,
    /// Write the proposed plan to this new file
    #[arg(long, value_name = "PLAN.json")]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Budget {
    /// Time for training
    #[arg(long)]
    hours: Option<f64>,
    /// Training tokens
    #[arg(long)]
    tokens: Option<f64>,
    /// Floating-point operations
    #[arg(long)]
    flops: Option<f64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum MachineName {
    /// A processor with 8 cores
    Cpu,
    T4,
    #[value(name = "rtx4090")]
    Rtx4090,
    A100,
    H100,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TrainedName {
    /// Adapters beside the usual matrices
    Lora,
    /// The head for labels alone
    Head,
    /// All weights
    All,
}

impl From<TrainedName> for Trained {
    fn from(name: TrainedName) -> Self {
        match name {
            TrainedName::Lora => Self::Lora,
            TrainedName::Head => Self::Head,
            TrainedName::All => Self::All,
        }
    }
}

impl AdviseArgs {
    /// Proposes a plan, and prints it with the reasons.
    pub fn run(self) -> Result<(), RunError> {
        let given = read_uncertified(&self.plan)?;
        let machine = MACHINES[self.machine as usize];
        let compute = match (self.budget.hours, self.budget.tokens, self.budget.flops) {
            (Some(hours), ..) => Compute::Time { machine, seconds: hours * 3600.0 },
            (_, Some(tokens), _) => Compute::Tokens(tokens),
            (.., flops) => Compute::Flops(flops.unwrap_or(f64::NAN)),
        };
        let start = self.start();
        let refused = |error: PlanError| RunError::Refused(format!("{}: {error}", self.plan.display()));
        let mut advice = advise(given.file(), compute, start).map_err(refused)?;
        let schemes = match self.examples_per_unit.as_slice() {
            [] => Vec::new(),
            units => advice.certified.plan().file().user_schemes(units).map_err(refused)?,
        };
        if let Some(best) = UserScheme::best(&schemes) {
            let mut file = advice.certified.plan().file().clone();
            best.apply(&mut file);
            advice.certified = Plan::try_from(file).and_then(Plan::certify).map_err(refused)?;
        }
        if let Some(path) = &self.out {
            let text = advice.certified.plan().file().text();
            if path.exists() {
                return Err(RunError::Refused(format!(
                    "{}: the file exists; name a new one with --out",
                    path.display()
                )));
            }
            durable::write_public(path, text.as_bytes())?;
        }
        let proposal = Proposal::of(&advice, schemes, self.out);
        print_result(&proposal, &proposal.to_string(), self.json)
    }

    fn start(&self) -> Start {
        let checkpoint = self.checkpoint.as_deref();
        let checkpoint = checkpoint.and_then(|name| CHECKPOINTS.iter().find(|known| known.name == name));
        match (self.size.as_deref().and_then(Size::named), checkpoint, self.train) {
            (Some(size), ..) => Start::Random(size),
            (None, None, None) => Start::Proposed,
            (None, checkpoint, trained) => {
                Start::Checkpoint(checkpoint, trained.map_or(Trained::Lora, Trained::from))
            }
        }
    }
}

/// Reads a number of examples and the number of units that have so many.
fn units_with(text: &str) -> Result<UnitsWith, String> {
    let number = |text: &str| text.trim().parse().ok();
    let read = text.split_once(':').and_then(|(examples, units)| Some((number(examples)?, number(units)?)));
    let (examples, units) = read.ok_or(
        "allowed: EXAMPLES:UNITS, two whole numbers, such as 12:300 for 300 units with 12 examples each",
    )?;
    Ok(UnitsWith { examples, units })
}

/// A proposal as it is printed.
#[derive(Debug, Serialize)]
struct Proposal {
    size: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    expected_batch_size: u64,
    steps: u64,
    epochs: f64,
    noise_multiplier: f64,
    epsilon: accountant::Bounds,
    flops: f64,
    memory: f64,
    reasons: Vec<String>,
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prediction: Option<plan::Prediction>,
    candidates: Vec<Candidate>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    user_schemes: Vec<UserScheme>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<PathBuf>,
}

impl Proposal {
    fn of(advice: &Advice, user_schemes: Vec<UserScheme>, plan: Option<PathBuf>) -> Self {
        let (certified, file) = (&advice.certified, advice.certified.plan().file());
        let phase = certified.phases().first();
        Self {
            size: Size::of(file).map(|size| size.name),
            checkpoint: match &file.model.initial {
                Initial::Checkpoint(folder) => Some(folder.clone()),
                Initial::Random => None,
            },
            expected_batch_size: phase.map_or(0, |phase| phase.expected_batch_size),
            steps: certified.total_steps(),
            epochs: file.epochs(),
            noise_multiplier: phase.map_or(0.0, plan::Phase::noise_multiplier),
            epsilon: certified.epsilon(),
            flops: advice.cost.flops,
            memory: advice.memory,
            reasons: advice.reasons.clone(),
            warnings: advice.warnings.clone(),
            prediction: advice.prediction.clone(),
            candidates: advice.candidates.clone(),
            user_schemes,
            plan,
        }
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: batch size {}, {} steps, {:.1} passes over the data, noise σ = {:.4}, ε ≤ {:.4}, {:.1e} operations, {:.1} GB of memory",
            self.size.or(self.checkpoint.as_deref()).unwrap_or("custom"),
            self.expected_batch_size,
            self.steps,
            self.epochs,
            self.noise_multiplier,
            self.epsilon.upper,
            self.flops,
            self.memory / 1e9
        )?;
        let lines = self.reasons.iter().map(|reason| format!("- {reason}"));
        let warnings = self.warnings.iter().map(|warning| format!("! {warning}"));
        let schemes = self.user_schemes.iter().map(|scheme| {
            let proposed =
                if UserScheme::best(&self.user_schemes) == Some(scheme) { " (proposed)" } else { "" };
            format!("- {scheme}{proposed}")
        });
        let written = self.plan.iter().map(|path| format!("written to {}", path.display()));
        let all: Vec<String> = lines.chain(schemes).chain(warnings).chain(written).collect();
        write!(f, "{}", all.join("\n"))
    }
}
