//! Prints results on stdout.

use std::io::{Write, stdout};

use serde::Serialize;

use training::RunError;

/// Prints a result as text, or as JSON.
pub(super) fn print_result(figures: &impl Serialize, text: &str, json: bool) -> Result<(), RunError> {
    if json {
        print(&serde_json::to_string(figures).map_err(|error| RunError::Failed(error.to_string()))?)
    } else {
        print(text)
    }
}

/// Prints a result. A reader that closed stdout is no failure.
pub(super) fn print(text: &str) -> Result<(), RunError> {
    match writeln!(stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(RunError::Failed(format!("cannot write the result: {error}")))
        }
        _ => Ok(()),
    }
}
