//! `dp-tokenizer`: vocabularies learnt from private text, on the command line.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
