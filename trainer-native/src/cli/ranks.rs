//! Refuses commands that cannot run on several ranks: only a run of a plan can.

use super::{Cli, Command, print};
use network::device;
use training::RunError;
use training::ranks::Ranks;

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
