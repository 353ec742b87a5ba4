//! Exchanges messages among ranks that MPI started.

use std::env;
use std::panic;
use std::sync::{Mutex, PoisonError};

use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::environment::{Universe, processor_name};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};

use super::Messages;
use crate::RunError;

/// Variables that MPI's launchers set: Open MPI, PMIx (Slurm), PMI (MPICH, Intel MPI, Slurm).
const LAUNCHED: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"];

/// The initialized MPI library. Only [`Messages::leave`] finalizes it, because a rank that did so
/// after a failure would wait for the others.
static UNIVERSE: Mutex<Option<Universe>> = Mutex::new(None);

/// All ranks that one launcher started.
pub(super) struct World {
    rank: usize,
    count: usize,
}

impl World {
    /// Joins the other ranks, and also returns this machine's name; `None` if no launcher started
    /// this process.
    ///
    /// # Errors
    /// [`RunError::Refused`] if Slurm started several processes without MPI.
    pub fn join() -> Result<Option<(Self, String)>, RunError> {
        if LAUNCHED.iter().all(|name| env::var_os(name).is_none()) {
            return match env::var("SLURM_STEP_NUM_TASKS") {
                Ok(tasks) if tasks != "1" => Err(RunError::Refused(format!(
                    "srun started {tasks} processes that cannot reach each other; add --mpi=pmix to srun (srun --mpi=list shows \
                     what it supports)"
                ))),
                _ => Ok(None),
            };
        }
        // Several threads compute, but only the main thread sends messages.
        let Some((universe, _)) = mpi::initialize_with_threading(Threading::Funneled) else {
            return Ok(None);
        };
        *UNIVERSE.lock().unwrap_or_else(PoisonError::into_inner) = Some(universe);
        let host = processor_name().unwrap_or_default();
        let world = Self { rank: all().rank() as usize, count: all().size() as usize };
        if world.count == 1 {
            world.leave();
            return Ok(None);
        }
        // Without this, the other ranks would wait for a rank that panicked.
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            print(panic);
            all().abort(101);
        }));
        Ok(Some((world, host)))
    }
}

fn all() -> SimpleCommunicator {
    SimpleCommunicator::world()
}

/// Returns the name and version of the MPI library.
pub(super) fn library() -> String {
    let version = mpi::environment::library_version().unwrap_or_default();
    version.split([',', '\n', '\0']).next().unwrap_or_default().trim().to_owned()
}

impl Messages for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.count
    }

    fn broadcast(&self, bytes: &mut [u8]) {
        all().process_at_rank(0).broadcast_into(bytes);
    }

    fn all_gather(&self, own: &[u8], gathered: &mut [u8]) {
        all().all_gather_into(own, gathered);
    }

    fn gather(&self, own: &[u8], gathered: &mut [u8]) {
        let world = all();
        let first = world.process_at_rank(0);
        if self.rank == 0 {
            first.gather_into_root(own, gathered);
        } else {
            first.gather_into(own);
        }
    }

    fn sum_scatter(&self, blocks: &[i64], own: &mut [i64]) {
        all().reduce_scatter_block_into(blocks, own, SystemOperation::sum());
    }

    fn all_to_all(&self, blocks: &[u8], received: &mut [u8]) {
        all().all_to_all_into(blocks, received);
    }

    fn leave(&self) {
        drop(UNIVERSE.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn abort(&self, code: u8) {
        all().abort(i32::from(code));
    }

    // The launcher ends all ranks when one ends without a farewell. MPI's own abort is for the main thread, which waits.
    fn end(&self, code: u8) {
        std::process::exit(code.into());
    }
}
