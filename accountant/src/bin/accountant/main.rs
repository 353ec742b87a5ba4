//! The accountant's command line.

mod answer;
mod cli;
mod sampling;
mod search;

use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

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
    let cli = match command.try_get_matches().and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => cli,
        Err(error) if is_help(error.kind()) => error.exit(),
        Err(error) => return refuse(&in_one_line(&error)),
    };
    match answer_in_time(cli) {
        Ok(text) => {
            // A closed pipe is the reader's choice, not an error.
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(message) => refuse(&message),
    }
}

fn refuse(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "accountant: {}", without_codes(message));
    ExitCode::from(REFUSED)
}

/// A message without the system's codes, "(os error N)".
fn without_codes(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// The answer, or a refusal after the longest time that the user allows. Bounds for figures far from those of training can take
/// hours.
fn answer_in_time(cli: Cli) -> Result<String, String> {
    let (seconds, (send, received)) = (cli.timeout, channel());
    std::thread::spawn(move || send.send(answer::answer(&cli)));
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

fn is_help(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// A refusal of the command line, without the usage that follows it.
fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let (text, _) = text.split_once("\n\nUsage:").unwrap_or((&text, ""));
    let (text, _) = text.split_once("\n\nFor more").unwrap_or((text, ""));
    let words: Vec<&str> = text.trim_start_matches("error: ").split_whitespace().collect();
    format!("{}; --help shows what is allowed", words.join(" "))
}
