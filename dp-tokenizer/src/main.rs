//! `dp-tokenizer`: vocabularies learnt from private text, on the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    dp_tokenizer::cli::run()
}
