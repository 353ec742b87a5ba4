//! What the user typed.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;

use crate::audit::{self, Settings};
use crate::generate::{self, Sampling};
use crate::run::{self, Request};
use crate::tensor_file::NumberFormat;
use crate::{RunError, device, export, report, verify};

/// Trains a language model under differential privacy from a plan, and certifies what that cost.
#[derive(Debug, Parser)]
#[command(
    name = "trainer-native",
    version,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(flatten)]
    run: RunArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The plan to carry out
    #[arg(long, value_name = "PLAN.json", required = true)]
    plan: Option<PathBuf>,
    /// The run folder [default: runs/<plan name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the run in the folder, if there is one
    #[arg(long)]
    resume: bool,
    /// Where to compute [default: the plan's]
    #[arg(long)]
    device: Option<DeviceName>,
    /// NOT PRIVATE: make all random figures from this known key, so that the run can be repeated
    #[arg(long, value_name = "N")]
    test_key: Option<u64>,
    /// NOT PRIVATE: neither clip nor add noise, as a baseline
    #[arg(long)]
    non_private: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl RunArgs {
    fn request(self) -> Result<Request, RunError> {
        let Self { plan, out, resume, device, test_key, non_private, json: _ } = self;
        let plan = plan.ok_or_else(|| RunError::Refused("give a plan with --plan PLAN.json".to_owned()))?;
        let device = device.map(Into::into);
        Ok(Request { plan, out, resume, device, test_key, non_private, canaries: None })
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Recompute all that a run folder claims, or the ε that a plan file promises
    Verify {
        /// A run folder or a plan file
        #[arg(value_name = "RUN|PLAN.json")]
        path: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Carry a plan out with canaries planted, and try to tell from the model which: the ε that this refutes
    Audit {
        #[command(flatten)]
        run: RunArgs,
        /// Canaries, of which about half are planted, each as one more unit
        #[arg(long, default_value_t = 200)]
        canaries: u32,
        /// Coins to guess, the clearest ones [default: half of the canaries]
        #[arg(long)]
        guesses: Option<u32>,
        /// Probability with which the lower bound on ε holds
        #[arg(long, default_value_t = 0.95)]
        confidence: f64,
    },
    /// Verify a finished run and write it up as one HTML page
    Report {
        /// The run folder
        run: PathBuf,
        /// Where to write it [default: report.html in the run folder]
        #[arg(long, value_name = "FILE.html")]
        out: Option<PathBuf>,
    },
    /// Verify a finished run and write its model, certificate and model card to a folder to publish
    Export {
        /// The run folder
        run: PathBuf,
        /// A new or empty folder
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Number format of the weights
        #[arg(long, default_value = "f32")]
        dtype: DtypeName,
    },
    /// List the devices built into this program, and what a device lacks that cannot be used here
    Devices,
    /// Continue a prompt with a finished run's model
    Generate {
        /// The run folder
        run: PathBuf,
        /// How the text begins
        #[arg(long, default_value = "")]
        prompt: String,
        /// Tokens to draw at most
        #[arg(long, default_value_t = 64)]
        tokens: usize,
        /// Below 1 safer, above 1 wilder; 0 takes the likeliest
        #[arg(long, default_value_t = 0.8)]
        temperature: f64,
        /// Makes the text repeatable
        #[arg(long)]
        seed: Option<u64>,
        /// Where to compute
        #[arg(long, default_value = "cpu")]
        device: DeviceName,
    },
    /// How well a finished run's model predicts a public text: by token, by word, without unknown words
    Eval {
        /// The run folder
        run: PathBuf,
        /// The text, declared public by naming it here
        #[arg(long, value_name = "FILE")]
        text: PathBuf,
        /// Where to compute
        #[arg(long, default_value = "cpu")]
        device: DeviceName,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DeviceName {
    Cpu,
    Wgpu,
    Cuda,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DtypeName {
    F32,
    Bf16,
    F16,
}

impl From<DtypeName> for NumberFormat {
    fn from(name: DtypeName) -> Self {
        match name {
            DtypeName::F32 => Self::F32,
            DtypeName::Bf16 => Self::Bf16,
            DtypeName::F16 => Self::F16,
        }
    }
}

impl From<DeviceName> for plan::Device {
    fn from(name: DeviceName) -> Self {
        match name {
            DeviceName::Cpu => Self::Cpu,
            DeviceName::Wgpu => Self::Wgpu,
            DeviceName::Cuda => Self::Cuda,
        }
    }
}

/// Does what the command line says; results on stdout, everything else on stderr.
#[must_use]
pub fn main() -> ExitCode {
    match Cli::try_parse().map_err(Box::new) {
        Ok(cli) => end(carry_out(cli)),
        Err(error) => match no_command(&error) {
            Some(what) => end(Err(RunError::Refused(what))),
            None => error.exit(),
        },
    }
}

/// What to say where a plan's file stands in place of a command.
fn no_command(error: &clap::Error) -> Option<String> {
    let given = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(given)) => given,
        _ => return None,
    };
    let is_plan = given.ends_with(".json");
    is_plan.then(|| {
        format!("\"{given}\" is no command; to carry out a plan type: trainer-native --plan {given}")
    })
}

fn end(outcome: Result<(), RunError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::progress::note(&format!("trainer-native: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

fn carry_out(cli: Cli) -> Result<(), RunError> {
    match cli.command {
        None => {
            let json = cli.run.json;
            let summary = run::run(&cli.run.request()?)?;
            answer(&summary, summary.to_string(), json)
        }
        Some(Command::Audit { run, canaries, guesses, confidence }) => {
            let json = run.json;
            let findings = audit::audit(&run.request()?, &Settings { canaries, guesses, confidence })?;
            answer(&findings, findings.to_string(), json)
        }
        Some(Command::Verify { path, json }) if path.is_dir() => {
            let summary = verify::verify_run(&path)?;
            answer(&summary, format!("verified: {summary}"), json)
        }
        Some(Command::Verify { path, json }) => {
            let summary = verify::verify_plan(&path)?;
            answer(&summary, summary.to_string(), json)
        }
        Some(Command::Report { run, out }) => {
            say(&report::write(&run, out.as_deref())?.display().to_string())
        }
        Some(Command::Export { run, out, dtype }) => {
            export::export(&run, &out, dtype.into())?;
            say(&out.display().to_string())
        }
        Some(Command::Devices) => say(&device::listing()),
        Some(Command::Generate { run, prompt, tokens, temperature, seed, device }) => {
            say(&generate::generate(&run, device.into(), &Sampling { prompt, tokens, temperature, seed })?)
        }
        Some(Command::Eval { run, text, device, json }) => {
            let figures = generate::evaluate(&run, device.into(), &text)?;
            answer(&figures, figures.to_string(), json)
        }
    }
}

fn answer(figures: &impl Serialize, words: String, json: bool) -> Result<(), RunError> {
    if json {
        say(&serde_json::to_string(figures).map_err(|error| RunError::Failed(error.to_string()))?)
    } else {
        say(&words)
    }
}

/// A closed stdout is the reader's choice, not a failure.
fn say(text: &str) -> Result<(), RunError> {
    match writeln!(stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(RunError::Failed(format!("cannot write the result: {error}")))
        }
        _ => Ok(()),
    }
}
