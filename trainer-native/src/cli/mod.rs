//! The command line.

mod advise;
mod calls;
mod exposure;
mod generate;
mod init;
mod memorization;
mod output;
mod quality;
mod questions;
mod ranks;
mod rehearse;
mod report;
mod scaling;
mod score;
mod synthesis;
mod synthesize;
mod tips;
mod train;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ::cli::Documentation;
use advise::AdviseArgs;
pub use calls::{ProposedPlan, generate, init};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use exposure::ExposureArgs;
use generate::GenerateArgs;
use init::InitArgs;
use memorization::MemorizationArgs;
use output::{print, print_result};
use quality::QualityArgs;
use rehearse::RehearseArgs;
use report::ReportArgs;
use score::ScoreArgs;
use synthesis::{EvolveArgs, ParaphraseArgs};
use synthesize::SynthesizeArgs;
use train::RunArgs;

use crate::runs;
use evaluation::audit::{self, AuditOptions};
use evaluation::export::{self, ExportOptions};
use network::pretrained;
use network::tensor_file::NumberFormat;
use training::infer::{evaluate, predict};
use training::model_card::NO_LICENCE;
use training::progress::Silence;
use training::ranks::Ranks;
use training::store::files;
use training::sweep::{self, SweepRequest};
use training::{RunError, history, stop, verify};

/// Time that a rank waits for the first rank to end it.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

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
    #[command(flatten)]
    screen: ScreenArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What is shown of the work.
#[derive(Debug, Args)]
struct ScreenArgs {
    /// Show no progress and no notes, only the result and errors
    #[arg(long, global = true)]
    quiet: bool,
    /// Also append progress, notes and errors to this file, without figures that are private to the owner of this machine
    #[arg(long, global = true, value_name = "FILE")]
    log_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Carry out a plan: the same as without a command
    Train(#[command(flatten)] RunArgs),
    /// Look at a text, ask what the plan needs, and write a plan that runs
    Init(#[command(flatten)] InitArgs),
    /// List the runs and sweeps in a folder with their state, ε and score
    Runs {
        /// The folder
        #[arg(default_value = "runs", value_name = "DIR")]
        folder: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Verify the folder of a run or a sweep, or compute the ε that a plan file promises
    Verify {
        /// The folder of a run or a sweep, or a plan file
        #[arg(value_name = "RUN|PLAN.json")]
        path: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Propose the model, the batch size, the steps and the noise for a budget of privacy and of computing time
    Advise(#[command(flatten)] AdviseArgs),
    /// Estimate the time, memory and messages of a plan on several ranks, from measured times or a machine's data sheet
    Scaling(#[command(flatten)] scaling::ScalingArgs),
    /// Train with planted canaries, guess from the model which were planted, and report the ε this rules out
    Audit {
        #[command(flatten)]
        run: RunArgs,
        /// Number of canaries; about half are planted, each as an additional unit
        #[arg(long, default_value_t = 200)]
        canaries: u32,
        /// Make each canary of a token of its own that no text has, which is easier to find
        #[arg(long)]
        new_tokens: bool,
        /// Number of canaries to guess, the clearest ones [default: half of them]
        #[arg(long)]
        guesses: Option<u32>,
        /// Confidence of the lower bound on ε
        #[arg(long, default_value_t = 0.95)]
        confidence: f64,
    },
    /// Train a plan with several settings, all of them charged together
    Sweep {
        /// The sweep file
        #[arg(long, value_name = "SWEEP.json")]
        sweep: PathBuf,
        /// The folder of the sweep [default: runs/<plan name>-sweep]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Resume the sweep in the folder
        #[arg(long)]
        resume: bool,
        /// The device [default: the plan's]
        #[arg(long)]
        device: Option<DeviceName>,
        /// NOT PRIVATE: derive all randomness from this known key, so that the sweep can be repeated
        #[arg(long, value_name = "N")]
        test_key: Option<u64>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Verify a finished run and write a report as one HTML page or as Markdown, or a statement to sign
    Report(#[command(flatten)] ReportArgs),
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
        /// Also write model.gguf, which llama.cpp and the programs built on it load
        #[arg(long)]
        gguf: bool,
        /// The licence that the model card states, such as apache-2.0
        #[arg(long, alias = "license", value_name = "ID", default_value = NO_LICENCE)]
        licence: String,
    },
    /// Add up all runs and vocabularies that were made from one text
    History {
        /// Folders of finished runs, exports and private vocabularies on the same units
        #[arg(required = true, value_name = "DIR")]
        folders: Vec<PathBuf>,
        /// The δ at which ε is stated [default: the largest of the folders' own]
        #[arg(long)]
        delta: Option<f64>,
        /// Longest time for an ε, in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 300)]
        timeout: u64,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Choose learning rate and clip norm on public text, with the noise of the plan
    Rehearse(#[command(flatten)] RehearseArgs),
    /// Print the model part of a plan that starts from a checkpoint
    Describe {
        /// The folder of the checkpoint, as the plan is to name it
        #[arg(value_name = "CHECKPOINT")]
        folder: PathBuf,
    },
    #[command(flatten)]
    Documentation(Documentation),
    /// List the devices built into this program, and why one cannot be used here
    Devices,
    /// Continue prompts with the model of a finished run
    Generate(#[command(flatten)] GenerateArgs),
    /// Draw synthetic records from the model of a finished run, with its certificate and a data card; spends no ε
    Synthesize(#[command(flatten)] SynthesizeArgs),
    /// Choose and vary public texts by noisy votes of private records, and write them as synthetic records with a certificate
    Evolve(#[command(flatten)] EvolveArgs),
    /// Let a public model write texts by several private records at once, whose effect is bounded, with a certificate
    Paraphrase(#[command(flatten)] ParaphraseArgs),
    /// Compare synthetic records with real, public ones: words, lengths, labels, embeddings, and what a classifier learns
    Quality(#[command(flatten)] QualityArgs),
    /// NOT PRIVATE: measure how much of its training text the model of a finished run continues word for word
    Memorization(#[command(flatten)] MemorizationArgs),
    /// NOT PRIVATE: train with planted secrets, with privacy and without, and measure how well each model knows them
    Exposure(#[command(flatten)] ExposureArgs),
    /// Score hypotheses against references with BLEU and chrF, as sacreBLEU does
    Score(#[command(flatten)] ScoreArgs),
    /// Predict the labels of each record of a file with the model of a finished run, one JSON object a line
    Predict {
        /// The run folder
        run: PathBuf,
        /// The records, with the field names of the run's plan: .jsonl, .csv, .tsv or .iob
        #[arg(long, value_name = "FILE")]
        input: PathBuf,
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

/// Returns the commands and their options.
fn command() -> clap::Command {
    // `--tokens -1` is a number out of range, not an unknown argument.
    Cli::command()
        .allow_negative_numbers(true)
        .mut_subcommands(|command| command.allow_negative_numbers(true))
}

/// Runs the command line on the ranks that the program was started with. Results go to stdout, everything else to stderr.
#[must_use]
pub fn main() -> ExitCode {
    ::cli::keep_memory();
    ::cli::leave_no_core_dump(!cfg!(feature = "mpi"));
    let ranks = match Ranks::join() {
        Ok(ranks) => ranks,
        Err(error) => return exit_code(error),
    };
    let silence = (!ranks.is_first()).then(Silence::begin);
    let arguments = ranks.agree(ranks::check_help(&ranks).and_then(|()| arguments()));
    let outcome = arguments.and_then(|arguments| dispatch(arguments, &ranks));
    drop(silence);
    match outcome {
        Ok(()) => {
            ranks.leave();
            ExitCode::SUCCESS
        }
        Err(error) => {
            let code = error.exit_code();
            if let RunError::Elsewhere { .. } = error {
                // The first rank shows the reason, and then ends this one.
                std::thread::sleep(LONGEST_WAIT);
            }
            let shown = exit_code(error);
            // Any further message is the launcher's.
            let _silence = Silence::begin();
            ranks.abort(code);
            shown
        }
    }
}

fn arguments() -> Result<Cli, RunError> {
    ::cli::arguments(command()).map_err(|error| {
        let message =
            tips::of_file(&error).unwrap_or_else(|| ::cli::in_one_line(&error, &command(), tips::TIPS));
        RunError::Refused(message)
    })
}

fn dispatch(cli: Cli, all: &Ranks) -> Result<(), RunError> {
    all.agree(training::progress::configure(cli.screen.quiet, cli.screen.log_file.as_deref()))?;
    ranks::check(&cli, all)?;
    match cli.command {
        None => cli.run.run(all),
        Some(Command::Train(arguments)) => arguments.run(all),
        Some(Command::Init(arguments)) => arguments.run(),
        Some(Command::Runs { folder, json }) => {
            let listing = runs::list(&folder)?;
            print_result(&listing, &listing.to_string(), json)
        }
        Some(Command::Documentation(Documentation::Completions { shell })) => {
            print(&::cli::completions(command(), shell))
        }
        Some(Command::Documentation(Documentation::Man { folder })) => {
            ::cli::write_manual(command(), &folder)
                .map_err(|error| RunError::storage("write", &folder, &error))
        }
        Some(Command::Advise(arguments)) => arguments.run(),
        Some(Command::Scaling(arguments)) => arguments.run(),
        Some(Command::Audit { run, canaries, new_tokens, guesses, confidence }) => {
            let json = run.json;
            let options = AuditOptions { canaries, new_tokens, guesses, confidence };
            let findings = audit::audit(&run.request()?, &options)?;
            print_result(&findings, &findings.to_string(), json)
        }
        Some(Command::Sweep { sweep, out, resume, device, test_key, json }) => {
            let device = device.map(Into::into);
            let summary = sweep::sweep(&SweepRequest { sweep, out, resume, device, test_key })?;
            print_result(&summary, &summary.to_string(), json)
        }
        Some(Command::Verify { path, json }) => verify(&path, json),
        Some(Command::Report(arguments)) => print(&arguments.run()?.display().to_string()),
        Some(Command::Export { run, out, dtype, gguf, licence }) => {
            export::export(&run, &out, &ExportOptions { format: dtype.into(), gguf, licence })?;
            print(&out.display().to_string())
        }
        Some(Command::History { folders, delta, timeout, json }) => {
            let found = history::history(&folders, delta, Duration::from_secs(timeout))?;
            print_result(&found, &found.to_string(), json)
        }
        Some(Command::Describe { folder }) => print(&describe(&folder)?),
        Some(Command::Rehearse(arguments)) => arguments.run(),
        Some(Command::Devices) => ranks::list_devices(all),
        Some(Command::Memorization(arguments)) => arguments.run(),
        Some(Command::Exposure(arguments)) => arguments.run(),
        Some(Command::Score(arguments)) => arguments.run(),
        Some(Command::Generate(arguments)) => print(&arguments.run()?),
        Some(Command::Synthesize(arguments)) => print(&arguments.run()?.display().to_string()),
        Some(Command::Evolve(arguments)) => arguments.run(),
        Some(Command::Paraphrase(arguments)) => arguments.run(),
        Some(Command::Quality(arguments)) => arguments.run(),
        Some(Command::Predict { run, input, device }) => print(&predict(&run, device.into(), &input)?),
        Some(Command::Eval { run, text, device, json }) => {
            let figures = evaluate(&run, device.into(), &text)?;
            print_result(&figures, &figures.to_string(), json)
        }
    }
}

/// Returns the model of a checkpoint's folder as a plan writes it.
fn describe(folder: &Path) -> Result<String, RunError> {
    init::check_checkpoint(folder, "describe")?;
    let model = pretrained::describe(folder)?;
    serde_json::to_string_pretty(&model).map_err(|error| RunError::Failed(error.to_string()))
}

/// Shows why a command failed, and returns its exit code.
fn exit_code(error: RunError) -> ExitCode {
    let said = match &error {
        RunError::Interrupted { .. } if !stop::is_first_to_show() => {
            "interrupted; everything done so far is saved; the command above continues".to_owned()
        }
        error => error.to_string(),
    };
    training::progress::error(&format!("trainer-native: {said}"));
    ExitCode::from(error.exit_code())
}

/// Verifies a sweep, an evolution, a paraphrase, a run or a plan.
fn verify(path: &Path, json: bool) -> Result<(), RunError> {
    if sweep::is_sweep(path) {
        let summary = sweep::verify_sweep(path)?;
        print_result(&summary, &format!("verified: {summary}"), json)
    } else if files::synthesis_in(path).is_some() {
        let summary = verify::synthesis::verify_synthesis(path)?;
        print_result(&summary, &format!("verified: {summary}"), json)
    } else if path.is_dir() {
        let verification = verify::explain(path)?;
        print_result(&verification, &verification.to_string(), json)
    } else {
        let summary = verify::verify_plan(path)?;
        print_result(&summary, &summary.to_string(), json)
    }
}
