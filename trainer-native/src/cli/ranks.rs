//! What several ranks must have in common before anything else: the program and its command, which only can be a run of a plan.

use super::{Cli, Command, command, print};
use network::device;
use training::RunError;
use training::ranks::Ranks;

const OTHER_COMMAND: &str = "it was started with another command or other options than rank 0; allowed to differ: --plan and --out; start \
                             all ranks alike";

/// Refuses that only some ranks show help or the version, which ends them. If all do, the first one shows it.
pub(super) fn check_help(ranks: &Ranks) -> Result<(), RunError> {
    if !ranks.are_several() {
        return Ok(());
    }
    let ends = command().try_get_matches().is_err_and(|shown| shown.exit_code() == 0);
    ranks.check_same(&[u8::from(ends)], OTHER_COMMAND)?;
    if ends {
        ranks.leave();
        if !ranks.is_first() {
            std::process::exit(0);
        }
    }
    Ok(())
}

/// Refuses ranks that run another program or command than the first one, and commands that take one process. All ranks call this together.
pub(super) fn check(cli: &Cli, ranks: &Ranks) -> Result<(), RunError> {
    if !ranks.are_several() {
        return Ok(());
    }
    // Two builds of one source may round otherwise.
    let program = std::env::current_exe().map_err(|error| {
        RunError::Failed(format!(
            "cannot find this program's own file, to compare it with the other ranks': {error}"
        ))
    });
    let program = ranks.agree(program.and_then(|path| Ok(durable::sha256_of(&path)?)))?;
    ranks.check_same(
        program.as_bytes(),
        "it runs another build of this program than rank 0; copy one executable to all machines",
    )?;
    let given = match &cli.command {
        None => format!("{:?}", cli.run.in_common()),
        Some(Command::Train(run)) => format!("{:?}", run.in_common()),
        Some(other) => format!("{other:?}"),
    };
    ranks.check_same(given.as_bytes(), OTHER_COMMAND)?;
    if matches!(cli.command, None | Some(Command::Train(_) | Command::Devices)) {
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
