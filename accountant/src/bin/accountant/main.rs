//! The accountant's command line.

mod answer;
mod cli;
mod compare;
mod correlated;
mod input;
mod rounding;
mod sampling;
mod search;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ::cli::{Tips, arguments, as_line, in_one_line, without_codes};
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
    let arguments = match arguments(command.clone()) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&in_one_line(&error, &command, TIPS)),
    };
    match answer_in_time(arguments) {
        Ok(text) => match writeln!(std::io::stdout(), "{text}") {
            // If the reader closes the pipe, that is not an error.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                say(&format!("the answer cannot be written: {error}"));
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        },
        Err(message) => refuse(&message),
    }
}

/// Tips for arguments of other accountants.
const TIPS: Tips = &[
    (
        &[
            "prv",
            "pld",
            "rdp",
            "gdp",
            "dpsgd",
            "dp-sgd",
            "compute",
            "get-epsilon",
            "compute-dp-sgd-privacy",
            "compute-epsilon",
        ],
        "`accountant epsilon` gives certified bounds, and `--accountant rdp` those of Rényi orders",
    ),
    (&["opacus", "jax-privacy", "dp-accounting"], "`accountant compare FILE` reads their settings"),
    (&["get-noise-multiplier", "calibrate"], "`accountant noise` gives the noise multiplier for an ε"),
    (&["alphas", "orders"], "`--accountant rdp` chooses its orders itself"),
    (&["verify", "plan", "run"], "`trainer-native verify` checks a run or a plan"),
    (&["sigma", "noise", "std", "z"], "give --noise-multiplier, the standard deviation over the clip norm"),
    (&["n", "number-of-examples", "num-examples", "sample-size", "dataset"], "give --dataset-size"),
    (&["q", "sample-rate", "sampling-rate", "sampling-prob", "p"], "give --sampling-probability"),
    (&["batch", "lot-size", "b"], "give --batch-size with --dataset-size"),
    (&["num-epochs"], "give --epochs"),
    (&["epochs"], "give --steps: E epochs of N units in batches of B are E·N/B steps"),
    (&["target-epsilon", "eps"], "give --epsilon to `accountant noise`, `steps` or `batch`"),
    (&["target-delta"], "give --delta"),
    (&["iterations", "t", "compositions", "num-compositions"], "give --steps"),
];

fn refuse(message: &str) -> ExitCode {
    say(message);
    ExitCode::from(REFUSED)
}

fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "accountant: {}", as_line(&without_codes(message)));
}

/// Returns the answer, or a refusal after the longest time that the user allows. Bounds for figures far from those of
/// training can take hours.
fn answer_in_time(arguments: Cli) -> Result<String, String> {
    let (seconds, (send, received)) = (arguments.timeout, channel());
    std::thread::spawn(move || send.send(answer::answer(&arguments)));
    let started = Instant::now();
    let mut answer = received.recv_timeout(POLL);
    while answer == Err(RecvTimeoutError::Timeout) && spent(started) < Duration::from_secs(seconds) {
        answer = received.recv_timeout(POLL);
    }
    match answer {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => Err(format!(
            "no answer within {seconds} s of CPU time: these figures are far from those of training (noise multipliers from 0.3 to 100, ε from \
             0.01 to 100, δ from 1e-12 to 1e-3 are answered quickly); check them, or allow more time with --timeout SECONDS"
        )),
        Err(RecvTimeoutError::Disconnected) => {
            Err("the computation failed; please report these arguments".to_owned())
        }
    }
}

/// How often the CPU time is looked at.
const POLL: Duration = Duration::from_millis(50);

/// CPU time of this process, so that an answer does not depend on what else the machine does; time since `started` where Linux does not
/// tell it.
fn spent(started: Instant) -> Duration {
    // The fields follow the program's name, which is in parentheses; ticks are hundredths of a second on every architecture of Linux.
    let ticks = std::fs::read_to_string("/proc/self/stat").ok().and_then(|text| {
        let mut fields = text.rsplit(')').next()?.split_whitespace().skip(11);
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    });
    ticks.map_or_else(|| started.elapsed(), |ticks| Duration::from_millis(10 * ticks))
}
