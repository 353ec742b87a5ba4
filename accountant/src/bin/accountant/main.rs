//! The accountant on the command line: parameters in, certified figures out.

mod answer;
mod flags;
mod run;
mod search;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

/// Exit code for input that is refused.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    let flags = flags::Flags::parse();
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
