//! The command line.

mod arguments;
mod convert;
mod corpus;
mod failure;
mod inspect;
mod private;
mod progress;
mod statement;
mod tokens;
mod train;
mod vocabulary_options;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

/// Runs the command. Exit codes: 0 for success, 2 for refused input, 1 for other failures.
pub(crate) fn run() -> ExitCode {
    let done = match Arguments::parse().command {
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
