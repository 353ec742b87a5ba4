//! Functions that the command lines of the programs share: one-line refusals, and the progress of
//! reading.

mod memory;
mod reading;
mod tips;

use std::io;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{FromArgMatches, Subcommand};
pub use clap_complete::Shell;
pub use durable::without_codes;

pub use memory::{keep_memory, leave_no_core_dump};
pub use reading::{FOR_THE_OWNER, Reading};
pub use tips::Tips;

/// The commands by which a program documents itself.
#[derive(Debug, Subcommand)]
pub enum Documentation {
    /// Print a shell completion script
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Write manual pages into a folder
    Man {
        /// The folder; created if missing
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Returns the arguments of this process. Ends the process after `--help` and `--version`, with code 1 if they cannot be
/// written.
///
/// # Errors
/// The first wrong argument.
pub fn arguments<T: FromArgMatches>(command: clap::Command) -> Result<T, clap::Error> {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    let found = command.try_get_matches().and_then(|found| T::from_arg_matches(&found));
    found.map_err(|error| match error.kind() {
        DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand => {
            // If the reader closes the pipe, that is not an error.
            let is_lost = error.print().is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe);
            std::process::exit(if is_lost { 1 } else { error.exit_code() })
        }
        _ => error,
    })
}

/// Returns a refusal of a command line, without the usage that follows it, and with a tip if there is one.
///
/// ```
/// let command = clap::Command::new("p").subcommand(clap::Command::new("run").arg(clap::arg!(--steps <N>)));
/// let said = |line: [&str; 3]| {
///     let refused = command.clone().try_get_matches_from(line).unwrap_err();
///     cli::in_one_line(&refused, &command, &[(&["epochs"], "give --steps")])
/// };
/// assert_eq!(said(["p", "run", "--epochs"]), "unexpected argument '--epochs' found; give --steps");
/// assert_eq!(said(["p", "--steps", "5"]), "unexpected argument '--steps' found; it is an option of `run` and comes after it");
/// assert_eq!(said(["p", "run", "five"]), "unexpected argument 'five' found; --help shows what is allowed");
/// ```
#[must_use]
pub fn in_one_line(error: &clap::Error, command: &clap::Command, tips: Tips) -> String {
    let text = error.to_string();
    let (text, _) = text.split_once("\n\nUsage:").unwrap_or((&text, ""));
    let (text, _) = text.split_once("\n\nFor more").unwrap_or((text, ""));
    let tip = tips::tip(error, command, tips);
    // A similar word is no better than a tip.
    let text = if tip.is_some() { text.split_once("\n\n").map_or(text, |(first, _)| first) } else { text };
    // An option that is meant as an option is no value.
    let (text, similar) = text.split_once("\n\n  tip: ").unwrap_or((text, ""));
    let similar = if similar.starts_with("to pass") { "" } else { similar };
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let tip = tip.unwrap_or_else(|| match joined(similar).as_str() {
        "" => "--help shows what is allowed".to_owned(),
        similar => format!("{similar}; --help shows what is allowed"),
    });
    format!("{}; {tip}", joined(text.trim_start_matches("error: ")))
}

/// Returns a message as one readable line, whatever it quotes: without control characters, and
/// without the middle if it is too long.
///
/// ```
/// assert_eq!(cli::as_line("a\u{1b}[31m\nb"), "a\\u{1b}[31m\\nb");
/// assert_eq!(cli::as_line(&"a".repeat(1 << 20)).chars().count(), 1801);
/// ```
#[must_use]
pub fn as_line(message: &str) -> String {
    /// The number of characters kept at each end.
    const KEPT: usize = 900;
    let escaped = |text: &str| -> String {
        let one = |c: char| match c.is_control() {
            true => c.escape_debug().collect::<String>(),
            false => c.to_string(),
        };
        text.chars().map(one).collect()
    };
    let Some((end, _)) = message.char_indices().nth(2 * KEPT) else { return escaped(message) };
    let start = message.char_indices().nth(KEPT).map_or(end, |(at, _)| at);
    let last = message.char_indices().rev().nth(KEPT - 1).map_or(0, |(at, _)| at);
    format!("{}…{}", escaped(&message[..start]), escaped(&message[last..]))
}

/// Returns the completion script of a program.
#[must_use]
pub fn completions(mut command: clap::Command, shell: Shell) -> String {
    let (name, mut script) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Writes the manual pages of a program into a folder: one of the program, and one of each command.
///
/// # Errors
/// A folder or file that cannot be written.
pub fn write_manual(command: clap::Command, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command, folder)
}

/// Returns a bound with this number of significant digits, rounded up.
///
/// ```
/// assert_eq!([7.999_96, 2.381_501, 0.5, 12.345_1].map(|bound| cli::rounded_up(bound, 4)), ["8.000", "2.382", "0.5000", "12.35"]);
/// assert_eq!([0.000_123_41, f64::INFINITY, 0.0].map(|bound| cli::rounded_up(bound, 4)), ["0.0001235", "inf", "0"]);
/// ```
#[must_use]
pub fn rounded_up(bound: f64, digits: i32) -> String {
    rounded(bound, digits, 0.5, |shown| shown >= bound)
}

/// Returns the decimal digits of a lower bound, rounded down, so that the printed number is a lower bound too.
///
/// ```
/// assert_eq!([0.567_86, 2.0, 12.349].map(|bound| cli::rounded_down(bound, 4)), ["0.5678", "2.000", "12.34"]);
/// ```
#[must_use]
pub fn rounded_down(bound: f64, digits: i32) -> String {
    rounded(bound, digits, -0.5, |shown| shown <= bound)
}

fn rounded(bound: f64, digits: i32, step: f64, holds: impl Fn(f64) -> bool) -> String {
    if !(bound > 0.0 && bound.is_finite()) {
        return bound.to_string();
    }
    let place = digits - 1 - bound.log10().floor() as i32;
    let decimals = place.max(0) as usize;
    let nearest = format!("{bound:.decimals$}");
    if nearest.parse::<f64>().is_ok_and(holds) {
        return nearest;
    }
    format!("{:.decimals$}", bound + step * 10_f64.powi(-place.max(0)))
}
