//! `dp-tokenizer`: vocabularies learnt from private text, on the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The memory holds private text and the key of the noise, so no core dump is left.
    cli::leave_no_core_dump(true);
    dp_tokenizer::cli::run()
}
