//! Ranks that are threads of one process, for tests.

use std::cell::Cell;
use std::sync::{Arc, Barrier, Mutex};

use super::{Messages, Ranks};

struct Thread {
    rank: usize,
    shared: Arc<Shared>,
}

struct Shared {
    barrier: Barrier,
    /// The message that each rank sends.
    sent: Mutex<Vec<Vec<u8>>>,
    /// The ranks that ended alone, with their exit codes.
    ended: Mutex<Vec<(usize, u8)>>,
}

thread_local! {
    static MESSAGES: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of messages that the ranks have exchanged so far, as the calling rank sees it.
pub(crate) fn messages() -> u64 {
    MESSAGES.get()
}

/// Runs `work` on each of `count` ranks, and returns the results by rank.
pub(crate) fn on_ranks<T: Send>(count: usize, work: impl Fn(&Ranks) -> T + Sync) -> Vec<T> {
    ended_on_ranks(count, work).0
}

/// Runs `work` as [`on_ranks`] does, and also returns the ranks that would have ended all others, with their exit codes.
pub(crate) fn ended_on_ranks<T: Send>(
    count: usize,
    work: impl Fn(&Ranks) -> T + Sync,
) -> (Vec<T>, Vec<(usize, u8)>) {
    let (sent, ended) = (Mutex::new(vec![Vec::new(); count]), Mutex::default());
    let shared = Arc::new(Shared { barrier: Barrier::new(count), sent, ended });
    let found = std::thread::scope(|scope| {
        let start = |rank| {
            let (shared, work) = (Arc::clone(&shared), &work);
            scope.spawn(move || work(&Ranks::of(Thread { rank, shared })))
        };
        let threads: Vec<_> = (0..count).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let ended = shared.ended.lock().unwrap().clone();
    (found, ended)
}

impl Thread {
    /// Returns the messages of all ranks, by rank.
    fn all(&self, own: &[u8]) -> Vec<Vec<u8>> {
        MESSAGES.set(MESSAGES.get() + 1);
        self.shared.sent.lock().unwrap()[self.rank] = own.to_vec();
        self.shared.barrier.wait();
        let all = self.shared.sent.lock().unwrap().clone();
        self.shared.barrier.wait();
        all
    }
}

impl Messages for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.shared.sent.lock().unwrap().len()
    }

    fn broadcast(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.all(bytes)[0]);
    }

    fn all_gather(&self, own: &[u8], all: &mut [u8]) {
        all.copy_from_slice(&self.all(own).concat());
    }

    fn gather(&self, own: &[u8], gathered: &mut [u8]) {
        let all = self.all(own);
        if self.rank == 0 {
            gathered.copy_from_slice(&all.concat());
        }
    }

    fn sum_scatter(&self, blocks: &[i64], own: &mut [i64]) {
        let numbers = |bytes: &[u8]| -> Vec<i64> {
            bytes.chunks_exact(8).map(|eight| i64::from_le_bytes(eight.try_into().unwrap())).collect()
        };
        let sent: Vec<u8> = blocks.iter().flat_map(|number| number.to_le_bytes()).collect();
        own.fill(0);
        for theirs in self.all(&sent) {
            let block = &numbers(&theirs)[self.rank * own.len()..][..own.len()];
            own.iter_mut().zip(block).for_each(|(sum, number)| *sum += number);
        }
    }

    fn all_to_all(&self, blocks: &[u8], received: &mut [u8]) {
        let length = blocks.len() / self.count();
        for (theirs, block) in self.all(blocks).iter().zip(received.chunks_exact_mut(length)) {
            block.copy_from_slice(&theirs[self.rank * length..][..length]);
        }
    }

    fn leave(&self) {}

    fn abort(&self, code: u8) {
        panic!("aborted with {code}");
    }

    fn end(&self, code: u8) {
        self.shared.ended.lock().unwrap().push((self.rank, code));
    }
}
