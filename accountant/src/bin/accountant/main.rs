//! The accountant on the command line: parameters in, certified figures out.

mod answer;
mod flags;
mod run;
mod search;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

/// Exit code for input that is refused.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    // `--steps -1` is a wrong number, not an unknown flag.
    let command = flags::Flags::command().mut_subcommands(|question| question.allow_negative_numbers(true));
    let flags = match flags::Flags::from_arg_matches(&command.get_matches()) {
        Ok(flags) => flags,
        Err(error) => error.exit(),
    };
    match answer::answer(&flags) {
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
