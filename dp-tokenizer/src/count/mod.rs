//! Counts the items of a text, and which of them each unit holds, on several threads and within a bound on memory.
//!
//! 1. `parallel` distributes blocks of lines over threads.
//! 2. Each thread collects `run`s: its own numbers for items (`intern`), and lists of these numbers for units.
//! 3. `merge` brings the items of all runs under one numbering.
//! 4. `group` brings the parts of each user together.
//!
//! Several processes can count a corpus together: `shard` writes what one of them counted to a file, and `all_shards` reads the
//! files of all. Processes that exchange messages send what they counted (`share`).
//!
//! Throughout, `spill` moves data that exceeds the memory to a temporary file.

#[cfg(not(target_arch = "wasm32"))]
mod all_shards;
mod group;
mod intern;
mod merge;
mod parallel;
mod run;
#[cfg(not(target_arch = "wasm32"))]
mod shard;
#[cfg(not(target_arch = "wasm32"))]
mod share;
mod spill;
#[cfg(test)]
mod tests;
mod units;

pub(crate) use crate::items::{MAX_ITEM_CHARS, is_public_item, public_items};
pub use crate::items::{is_boundary, items, word_of_label, words_of_pair};
pub use mechanisms::Words;
#[cfg(not(target_arch = "wasm32"))]
pub use shard::{Shard, ShardOptions, UnknownShard, count_shard};
#[cfg(not(target_arch = "wasm32"))]
pub use share::{CountedShare, GatheredShares};
pub use units::UnitItems;

use std::path::PathBuf;

/// The use of the machine for counting. The result does not depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountOptions {
    /// The number of threads that process the text, beside one that reads it. With 1, there is no other thread.
    pub threads: usize,
    /// Limit on memory in bytes, as far as the longest line and the largest unit allow. The rest goes to a temporary file
    /// without a name, which only this process can open and which ends with it. Less than 64 KiB counts as 64 KiB.
    pub memory: usize,
    /// The folder of that file. `None` takes the system's temporary folder.
    pub spill_folder: Option<PathBuf>,
}

impl Default for CountOptions {
    /// Returns the default: all cores, 2 GiB.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { threads, memory: i32::MAX as usize, spill_folder: None }
    }
}
