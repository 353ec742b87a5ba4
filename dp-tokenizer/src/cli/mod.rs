//! What the user typed, and what becomes of it.

mod arguments;
mod convert;
mod corpus;
mod failure;
mod inspect;
mod private;
mod progress;
mod shape;
mod statement;
mod tokens;
mod train;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

/// Runs the command; 0 done, 2 refused input, 1 anything else.
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
