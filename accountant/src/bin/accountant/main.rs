//! The accountant's command line.

mod answer;
mod cli;
mod correlated;
mod rounding;
mod sampling;
mod search;

use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use ::cli::{arguments, as_line, in_one_line, without_codes};
use clap::CommandFactory;

use self::cli::Cli;

/// Exit code for input that is refused.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    // `--delta -1e-5` is a wrong number, not an unknown argument.
    let number = |argument: clap::Arg| {
        let takes_value = !argument.is_positional() && argument.get_action().takes_values();
        argument.allow_hyphen_values(takes_value)
    };
    let command = Cli::command().mut_subcommands(|command| command.mut_args(number));
    let arguments = match arguments(command) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&in_one_line(&error)),
    };
    match answer_in_time(arguments) {
        Ok(text) => {
            // A closed pipe is the reader's choice, not an error.
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(message) => refuse(&message),
    }
}

fn refuse(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "accountant: {}", as_line(&without_codes(message)));
    ExitCode::from(REFUSED)
}

/// The answer, or a refusal after the longest time that the user allows. Bounds for figures far from those of training can take
/// hours.
fn answer_in_time(arguments: Cli) -> Result<String, String> {
    let (seconds, (send, received)) = (arguments.timeout, channel());
    std::thread::spawn(move || send.send(answer::answer(&arguments)));
    match received.recv_timeout(Duration::from_secs(seconds)) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => Err(format!(
            "no answer within {seconds} s: these figures are far from those of training (noise multipliers from 0.3 to 100, ε from \
             0.01 to 100, δ from 1e-12 to 1e-3 are answered quickly); check them, or allow more time with --timeout SECONDS"
        )),
        Err(RecvTimeoutError::Disconnected) => {
            Err("the computation failed; please report these arguments".to_owned())
        }
    }
}
