//! The accountant's command line.

mod answer;
mod cli;
mod sampling;
mod search;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

/// Exit code for input that is refused.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    // `--steps -1` is a wrong number, not an unknown argument.
    let command = cli::Cli::command().mut_subcommands(|command| command.allow_negative_numbers(true));
    let cli = match cli::Cli::from_arg_matches(&command.get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match answer::answer(&cli) {
        Ok(text) => {
            // A closed pipe is the reader's choice, not an error.
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "accountant: {message}");
            ExitCode::from(REFUSED)
        }
    }
}
