//! The command line.

mod arguments;
mod convert;
mod corpus;
mod count;
mod examples;
mod extension;
mod failure;
mod given;
mod inspect;
mod line;
mod output;
mod private;
mod progress;
mod segmentation;
mod statement;
mod tokens;
mod train;
mod train_options;
mod vocabulary_files;
mod vocabulary_options;

use std::process::ExitCode;

use clap::CommandFactory;

use arguments::Command;
use given::Parsed;

/// Runs the command. Exit codes: 0 for success, 2 for refused input, 1 for other failures.
pub(crate) fn run() -> ExitCode {
    // `--epsilon -1` is a number out of range, not an unknown argument.
    let command =
        arguments::Arguments::command().mut_subcommands(|command| command.allow_negative_numbers(true));
    let Parsed { arguments, given } = match ::cli::arguments(command) {
        Ok(parsed) => parsed,
        Err(error) => return failure::report(&failure::refuse(::cli::in_one_line(&error))),
    };
    // A write beyond the limit of file sizes then fails with an error instead of ending the process without a word.
    #[cfg(unix)]
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default()) {
        return failure::report(&error.into());
    }
    let done = match arguments.command {
        Command::Train(arguments) => train::run(&arguments, &given),
        Command::Count(arguments) => count::run(&arguments, &given),
        Command::Encode(arguments) => tokens::encode(&arguments, &given),
        Command::Decode(arguments) => tokens::decode(&arguments),
        Command::Vocab(arguments) => inspect::list(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
