//! The command line.

mod arguments;
mod convert;
mod corpus;
mod extension;
mod failure;
mod inspect;
mod output;
mod private;
mod progress;
mod statement;
mod tokens;
mod train;
mod vocabulary_options;

use std::process::ExitCode;

use clap::CommandFactory;

use arguments::{Arguments, Command};

/// Runs the command. Exit codes: 0 for success, 2 for refused input, 1 for other failures.
pub(crate) fn run() -> ExitCode {
    // `--epsilon -1` is a number out of range, not an unknown argument.
    let command = Arguments::command().mut_subcommands(|command| command.allow_negative_numbers(true));
    let arguments: Arguments = match ::cli::arguments(command) {
        Ok(arguments) => arguments,
        Err(error) => return failure::report(&failure::refuse(::cli::in_one_line(&error))),
    };
    // A write beyond the limit of file sizes then fails with an error instead of ending the process without a word.
    #[cfg(unix)]
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default()) {
        return failure::report(&error.into());
    }
    let done = match arguments.command {
        Command::Train(arguments) => train::run(&arguments),
        Command::Encode(arguments) => tokens::encode(&arguments),
        Command::Decode(arguments) => tokens::decode(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
