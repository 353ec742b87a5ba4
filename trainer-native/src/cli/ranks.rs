//! Commands on several ranks: only a run of a plan uses them.

use std::process::ExitCode;
use std::time::Duration;

use super::{Cli, Command, dispatch, exit_code, print};
use network::device;
use training::RunError;
use training::progress::Silence;
use training::ranks::Ranks;

/// Carries out a command on the ranks that the program was started with.
pub(super) fn carry_out(arguments: Cli) -> ExitCode {
    let ranks = match Ranks::join() {
        Ok(ranks) => ranks,
        Err(error) => return exit_code(Err(error)),
    };
    let silence = (!ranks.is_first()).then(Silence::begin);
    let outcome = dispatch(arguments, &ranks);
    drop(silence);
    match outcome {
        Ok(()) => ranks.leave(),
        Err(error) => {
            let code = error.exit_code();
            if let RunError::Elsewhere { .. } = error {
                // The first rank shows why, and then ends this one.
                std::thread::sleep(LONGEST_WAIT);
            }
            let shown = exit_code(Err(error));
            // What is left to say is the launcher's.
            let _silence = Silence::begin();
            ranks.abort(code);
            return shown;
        }
    }
    ExitCode::SUCCESS
}

/// Time that a rank waits for the first rank to end it.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Refuses commands that take one process.
pub(super) fn check(cli: &Cli, ranks: &Ranks) -> Result<(), RunError> {
    if !ranks.are_several() || matches!(cli.command, None | Some(Command::Train(_) | Command::Devices)) {
        return Ok(());
    }
    ranks.agree(Err(RunError::Refused(
        "only a run of a plan (--plan) uses several ranks; start this command without mpirun".to_owned(),
    )))
}

/// Prints the devices, and the ranks in a program with MPI.
pub(super) fn list_devices(ranks: &Ranks) -> Result<(), RunError> {
    if !ranks.is_first() {
        return Ok(());
    }
    let lines: Vec<String> = [device::listing()].into_iter().chain(ranks.listing()).collect();
    print(&lines.join("\n"))
}
