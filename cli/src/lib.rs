//! What the command lines of the programs share: a refusal is one line.

use clap::FromArgMatches;
use clap::error::ErrorKind;

/// The arguments of this process. Ends the process after `--help` and `--version`.
///
/// # Errors
/// The first wrong argument.
pub fn arguments<T: FromArgMatches>(command: clap::Command) -> Result<T, clap::Error> {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    let found = command.try_get_matches().and_then(|found| T::from_arg_matches(&found));
    found.map_err(|error| match error.kind() {
        DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
        _ => error,
    })
}

/// A refusal of the command line, without the usage that follows it.
///
/// ```
/// let command = clap::Command::new("p").arg(clap::arg!(--steps <N>).required(true));
/// let refused = command.try_get_matches_from(["p", "--step", "5"]).unwrap_err();
/// assert!(!cli::in_one_line(&refused).contains('\n'));
/// ```
#[must_use]
pub fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let (text, _) = text.split_once("\n\nUsage:").unwrap_or((&text, ""));
    let (text, _) = text.split_once("\n\nFor more").unwrap_or((text, ""));
    let words: Vec<&str> = text.trim_start_matches("error: ").split_whitespace().collect();
    format!("{}; --help shows what is allowed", words.join(" "))
}

/// A message without the system's codes, "(os error N)".
///
/// ```
/// assert_eq!(cli::without_codes("a: No such file (os error 2); check the path"), "a: No such file; check the path");
/// ```
#[must_use]
pub fn without_codes(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
}
