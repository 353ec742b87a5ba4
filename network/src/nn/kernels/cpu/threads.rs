//! Threads that compute one tensor together.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

thread_local! {
    static AVAILABLE: Cell<usize> = const { Cell::new(1) };
}

/// Runs `work`, in which a kernel may use this number of threads.
pub fn on_threads<T>(threads: usize, work: impl FnOnce() -> T) -> T {
    let before = AVAILABLE.replace(threads.max(1));
    let output = work();
    AVAILABLE.set(before);
    output
}

/// The number of threads that a kernel may use here.
pub fn available() -> usize {
    AVAILABLE.get()
}

/// Elements of a tensor that a thread takes at a time, so many that starting a thread costs less than it saves.
pub const PIECE: usize = 1 << 16;

/// Runs `work` on numbered items, each on one of the threads.
pub fn in_parallel<Item: Send>(threads: usize, items: Vec<Item>, work: impl Fn(usize, Item) + Sync) {
    let threads = threads.min(items.len());
    let items = Mutex::new(items.into_iter().enumerate());
    let run = || {
        loop {
            let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, item)) = next else { break };
            work(at, item);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
}
