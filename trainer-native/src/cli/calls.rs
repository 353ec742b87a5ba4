//! Commands that other programs call, with the options of the command line.

use std::ffi::OsString;
use std::path::Path;

use clap::FromArgMatches;

use super::init::plan_for;
use super::{Cli, Command, command, tips};
use training::RunError;

/// A plan that [`init`](init()) proposes.
#[derive(Clone, Debug)]
pub struct ProposedPlan {
    /// The content of its file.
    pub text: String,
    /// What was chosen and why, one line each.
    pub reasons: String,
}

/// Proposes a plan for a text as `trainer-native init` with these options does, but asks nothing and writes nothing. The plan
/// names the text `named`, if given.
///
/// # Errors
/// [`RunError::Refused`] with the option that is missing or wrong.
pub fn init(
    options: impl IntoIterator<Item = OsString>,
    named: Option<&Path>,
) -> Result<ProposedPlan, RunError> {
    match parsed("init", options)? {
        Command::Init(arguments) => {
            let (proposal, reasons) = plan_for(arguments, named)?;
            Ok(ProposedPlan { text: proposal.text, reasons })
        }
        _ => Err(another()),
    }
}

/// Continues each prompt with the model of a finished run, as `trainer-native generate` with these options does, and returns the
/// texts without the prompts.
///
/// # Errors
/// [`RunError::Refused`] for a wrong option or prompt; [`RunError`] for a run that cannot be read.
pub fn generate(
    options: impl IntoIterator<Item = OsString>,
    prompts: &[String],
) -> Result<Vec<String>, RunError> {
    match parsed("generate", options)? {
        Command::Generate(arguments) => {
            let texts = arguments.texts(prompts)?;
            Ok(texts.into_iter().map(|generated| generated.text).collect())
        }
        _ => Err(another()),
    }
}

fn parsed(name: &str, options: impl IntoIterator<Item = OsString>) -> Result<Command, RunError> {
    let words = ["trainer-native", name].map(OsString::from).into_iter().chain(options);
    let found = command().try_get_matches_from(words).and_then(|found| Cli::from_arg_matches(&found));
    let cli = found.map_err(|error| RunError::Refused(::cli::in_one_line(&error, &command(), tips::TIPS)))?;
    cli.command.ok_or_else(another)
}

fn another() -> RunError {
    RunError::Refused("the options are those of one command".to_owned())
}
