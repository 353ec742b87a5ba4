//! The command line.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;

use crate::audit::{self, Settings};
use crate::infer::{Sampling, evaluate, generate};
use crate::run::{self, Request};
use crate::tensor_file::NumberFormat;
use crate::{RunError, device, export, report, verify};

/// Trains a language model under differential privacy from a plan, and certifies the ε it spent.
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
    /// The plan file
    #[arg(long, value_name = "PLAN.json", required = true)]
    plan: Option<PathBuf>,
    /// The run folder [default: runs/<plan name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume the run in the folder, if there is one
    #[arg(long)]
    resume: bool,
    /// The device [default: the plan's]
    #[arg(long)]
    device: Option<DeviceName>,
    /// NOT PRIVATE: derive all randomness from this known key, so that the run can be repeated
    #[arg(long, value_name = "N")]
    test_key: Option<u64>,
    /// NOT PRIVATE: train a baseline without clipping and noise
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
    /// Verify a run folder, or compute the ε that a plan file promises
    Verify {
        /// A run folder or a plan file
        #[arg(value_name = "RUN|PLAN.json")]
        path: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Train with planted canaries, guess from the model which were planted, and report the ε this rules out
    Audit {
        #[command(flatten)]
        run: RunArgs,
        /// Number of canaries; about half are planted, each as an additional unit
        #[arg(long, default_value_t = 200)]
        canaries: u32,
        /// Number of canaries to guess, the clearest ones [default: half of them]
        #[arg(long)]
        guesses: Option<u32>,
        /// Confidence of the lower bound on ε
        #[arg(long, default_value_t = 0.95)]
        confidence: f64,
    },
    /// Verify a finished run and write a report as one HTML page
    Report {
        /// The run folder
        run: PathBuf,
        /// The report's file [default: report.html in the run folder]
        #[arg(long, value_name = "FILE.html")]
        out: Option<PathBuf>,
    },
    /// Verify a finished run and write its model, certificate and model card to a new folder
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
    /// Add up all runs and vocabularies that were made from one text
    History {
        /// Folders of finished runs, exports and private vocabularies on the same units
        #[arg(required = true, value_name = "DIR")]
        folders: Vec<PathBuf>,
        /// The δ at which ε is stated
        #[arg(long)]
        delta: f64,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the devices built into this program, and why one cannot be used here
    Devices,
    /// Continue a prompt with the model of a finished run
    Generate {
        /// The run folder
        run: PathBuf,
        /// The beginning of the text
        #[arg(long, default_value = "")]
        prompt: String,
        /// Maximum number of tokens to generate
        #[arg(long, default_value_t = 64)]
        tokens: usize,
        /// Sampling temperature; 0 always takes the most likely token
        #[arg(long, default_value_t = 0.8)]
        temperature: f64,
        /// Seed that makes the text repeatable
        #[arg(long)]
        seed: Option<u64>,
        /// The device
        #[arg(long, default_value = "cpu")]
        device: DeviceName,
    },
    /// Measure how well the model of a finished run predicts a public text
    Eval {
        /// The run folder
        run: PathBuf,
        /// The text, which you declare public by naming it here
        #[arg(long, value_name = "FILE")]
        text: PathBuf,
        /// The device
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

/// Runs the command line. Results go to stdout, everything else to stderr.
#[must_use]
pub fn main() -> ExitCode {
    match Cli::try_parse().map_err(Box::new) {
        Ok(cli) => exit_code(dispatch(cli)),
        Err(error) => match plan_as_command(&error) {
            Some(message) => exit_code(Err(RunError::Refused(message))),
            None => error.exit(),
        },
    }
}

/// The refusal for a plan file in place of a command.
fn plan_as_command(error: &clap::Error) -> Option<String> {
    let given = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(given)) => given,
        _ => return None,
    };
    let is_plan = given.ends_with(".json");
    is_plan.then(|| {
        format!("\"{given}\" is not a command; to carry out a plan, run: trainer-native --plan {given}")
    })
}

fn exit_code(outcome: Result<(), RunError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::progress::note(&format!("trainer-native: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch(cli: Cli) -> Result<(), RunError> {
    match cli.command {
        None => {
            let json = cli.run.json;
            let summary = run::run(&cli.run.request()?)?;
            print_result(&summary, &summary.to_string(), json)
        }
        Some(Command::Audit { run, canaries, guesses, confidence }) => {
            let json = run.json;
            let findings = audit::audit(&run.request()?, &Settings { canaries, guesses, confidence })?;
            print_result(&findings, &findings.to_string(), json)
        }
        Some(Command::Verify { path, json }) if path.is_dir() => {
            let verification = verify::explain(&path)?;
            print_result(&verification, &verification.to_string(), json)
        }
        Some(Command::Verify { path, json }) => {
            let summary = verify::verify_plan(&path)?;
            print_result(&summary, &summary.to_string(), json)
        }
        Some(Command::Report { run, out }) => {
            print(&report::write(&run, out.as_deref())?.display().to_string())
        }
        Some(Command::Export { run, out, dtype }) => {
            export::export(&run, &out, dtype.into())?;
            print(&out.display().to_string())
        }
        Some(Command::History { folders, delta, json }) => {
            let history = verify::history(&folders, delta)?;
            print_result(&history, &history.to_string(), json)
        }
        Some(Command::Devices) => print(&device::listing()),
        Some(Command::Generate { run, prompt, tokens, temperature, seed, device }) => {
            print(&generate(&run, device.into(), &Sampling { prompt, tokens, temperature, seed })?)
        }
        Some(Command::Eval { run, text, device, json }) => {
            let figures = evaluate(&run, device.into(), &text)?;
            print_result(&figures, &figures.to_string(), json)
        }
    }
}

fn print_result(figures: &impl Serialize, text: &str, json: bool) -> Result<(), RunError> {
    if json {
        print(&serde_json::to_string(figures).map_err(|error| RunError::Failed(error.to_string()))?)
    } else {
        print(text)
    }
}

/// Prints a result. A closed stdout is the reader's choice, not a failure.
fn print(text: &str) -> Result<(), RunError> {
    match writeln!(stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(RunError::Failed(format!("cannot write the result: {error}")))
        }
        _ => Ok(()),
    }
}
