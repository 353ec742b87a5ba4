//! Threads that compute one tensor together.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

use super::super::portable::piece_length;

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

/// Bytes that the system maps at once.
const PAGE: usize = 4096;

/// Returns zeros that are in memory, and not only reserved there. The system maps reserved memory when it is first read and again when it
/// is first written, and the second mapping interrupts the other cores.
pub fn zeros_in_memory<T: Clone + Default + Send>(length: usize) -> Vec<T> {
    let mut zeros = vec![T::default(); length];
    let pieces: Vec<_> = zeros.chunks_mut(piece_length(length)).collect();
    in_parallel(usize::MAX, pieces, |_, piece| {
        for page in piece.chunks_mut(PAGE / size_of::<T>()) {
            page[0] = black_box(T::default());
        }
    });
    zeros
}
